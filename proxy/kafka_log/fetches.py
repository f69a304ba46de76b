"""What the library's consumer fetches next, for `positions`."""

from typing import Any

from aiokafka import TopicPartition

from proxy.model import Partition, Position


class ConsumerFetches:
    """`positions.port.Fetches` over the library's consumer, which knows partitions of its own kind only."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def seek(self, partition: Partition, offset: int) -> None:
        """Go on at the offset."""
        self._consumer.seek(TopicPartition(*partition), offset)

    def pause(self, partition: Partition) -> None:
        """Fetch no more from the partition."""
        self._consumer.pause(TopicPartition(*partition))

    def resume(self, partition: Partition) -> None:
        """Fetch again from the partition."""
        self._consumer.resume(TopicPartition(*partition))

    def leader_epoch(self, partition: Partition) -> int | None:
        """Return that of the last leader whose events were read."""
        epoch: int | None = self._consumer._fetcher.leaders.of(TopicPartition(*partition))  # noqa: SLF001  # it is ours
        return epoch

    def believe(self, partition: Partition, epoch: int | None, offset: int) -> None:
        """Know which leader has written, at the latest, what stands before the offset; None: nobody knows."""
        self._consumer._fetcher.leaders.believe(TopicPartition(*partition), epoch, offset)  # noqa: SLF001  # as above

    def trust(self, partition: Partition) -> None:
        """Read on, whichever leader has written it."""
        self._consumer._fetcher.leaders.forget(TopicPartition(*partition))  # noqa: SLF001  # as above

    def offset_of(self, position: Position) -> int | None:
        """Return the position itself, which is the offset."""
        return position if isinstance(position, int) else None
