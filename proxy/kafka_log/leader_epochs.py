"""By which leader's epoch each partition was read last, and how far: docs/design/0068-where-a-leader-ended.md."""

from dataclasses import dataclass

from aiokafka import TopicPartition, errors


class NewLeaderError(errors.KafkaError):  # type: ignore[misc]  # the library is untyped
    """What comes next was written under a later leader: first it is to be known where the one before ended."""


@dataclass(slots=True)
class _Read:
    epoch: int
    """The highest."""
    end: int
    """The offset behind all that was read."""


class LeaderEpochs:
    """Of the partitions that one consumer has read."""

    def __init__(self) -> None:
        self._read: dict[TopicPartition, _Read] = {}

    def pass_on(self, at: TopicPartition, epoch: int, end: int) -> None:
        """Note that a batch is read that ends before `end`. Raises `NewLeaderError` if it is of a later epoch.

        An epoch below 0 says nothing.
        """
        if epoch < 0:
            return
        read = self._read.get(at)
        if read is None:
            self._read[at] = _Read(epoch, end)
        elif epoch > read.epoch:
            raise NewLeaderError(f"epoch {epoch} follows {read.epoch}")
        elif end > read.end:
            read.end = end

    def of(self, at: TopicPartition) -> int | None:
        """Return the highest epoch that was read; None: it is not known."""
        read = self._read.get(at)
        return None if read is None else read.epoch

    def believe(self, at: TopicPartition, epoch: int | None, offset: int) -> None:
        """Know this, and nothing else: no later leader has written what stands before the offset; None: who knows."""
        if epoch is None:
            self.forget(at)
        else:
            self._read[at] = _Read(epoch, offset)

    def forget(self, at: TopicPartition) -> None:
        """Take the next batch as it comes: it is known where the leaders before it ended."""
        self._read.pop(at, None)

    def move(self, at: TopicPartition, offset: int) -> None:
        """Note that reading goes on elsewhere; of what lies beyond all that was read nothing is known."""
        read = self._read.get(at)
        if read is not None and offset > read.end:
            del self._read[at]
