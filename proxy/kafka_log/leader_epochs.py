"""By which leader's epoch each partition was read last, and how far: docs/design/0068-where-a-leader-ended.md."""

from aiokafka import TopicPartition, errors


class NewLeaderError(errors.KafkaError):  # type: ignore[misc]  # the library is untyped
    """What comes next was written under a later leader: first it is to be known where the one before ended."""


class LeaderEpochs:
    """Of the partitions that one consumer has read."""

    def __init__(self) -> None:
        self._read: dict[TopicPartition, tuple[int, int]] = {}
        """The highest epoch, and the offset behind the last batch."""

    def pass_on(self, at: TopicPartition, epoch: int, end: int) -> None:
        """Note that a batch is read that ends before `end`. Raises `NewLeaderError` if it is of a later epoch.

        An epoch below 0 says nothing.
        """
        if epoch < 0:
            return
        known, read = self._read.get(at, (epoch, end))
        if epoch > known:
            raise NewLeaderError(f"epoch {epoch} follows {known}")
        self._read[at] = known, max(read, end)

    def of(self, at: TopicPartition) -> int | None:
        """Return the highest epoch that was read; None: it is not known."""
        found = self._read.get(at)
        return None if found is None else found[0]

    def believe(self, at: TopicPartition, epoch: int, offset: int) -> None:
        """Know that nothing before the offset was written by a later leader."""
        known, read = self._read.get(at, (epoch, offset))
        self._read[at] = max(known, epoch), max(read, offset)

    def forget(self, at: TopicPartition) -> None:
        """Take the next batch as it comes: it is known where the leaders before it ended."""
        self._read.pop(at, None)

    def move(self, at: TopicPartition, offset: int) -> None:
        """Note that reading goes on elsewhere; of what lies beyond all that was read nothing is known."""
        found = self._read.get(at)
        if found is not None and offset > found[1]:
            del self._read[at]
