"""What the bridge gives account of; `recording` answers it, and makes counts and records of it.

Every call returns at once and never raises. None is made for each event: they come for each batch and each outcome.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from proxy.bridge.event_log import Beginning
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.move import Moved
from proxy.model import Event, Outcome, Partition, Position, Reason, Stance


class Counts(Protocol):
    """What happens to the events of one event type."""

    def on_received(self, count: int, size: int) -> None:
        """Count records read from the log, `size` bytes in all."""
        ...

    def on_confirmed(
        self, events: Sequence[Event], seconds: float | None, overtaken: int, wall: float, *, old: bool = False
    ) -> None:
        """Count confirmed events, `old` if they went behind what is live.

        `wall` is the time of the confirm in seconds since 1970.
        """
        ...

    def on_failed(self, outcome: Outcome, count: int) -> None:
        """Count events that have to be sent again."""
        ...

    def on_undeliverable(self, count: int) -> None:
        """Count events that can't be delivered."""
        ...

    def on_dead_lettered(self, reason: Reason, count: int) -> None:
        """Count events whose dead letter is confirmed."""
        ...

    def on_uncommitted(self, count: int) -> None:
        """Count events that the broker has, or may have, of an epoch that ended before they were committed."""
        ...


class Account(Protocol):
    """Where the positions of the log go, and what goes wrong on the way."""

    def on_begun(self, event_type: str, flow: PartitionFlow, beginning: Beginning) -> None:
        """Be told where an epoch begins."""
        ...

    def on_dead_lettered(self, flow: PartitionFlow, first: int, events: Sequence[Event], reason: Reason) -> None:
        """Be told of confirmed dead letters of contiguous sequence numbers, before the watermark passes them."""
        ...

    def on_discarded(self, flow: PartitionFlow, first: int, events: Sequence[Event], stance: Stance) -> None:
        """Be told of discarded events of contiguous sequence numbers, before the watermark passes them."""
        ...

    def on_committed(self, flow: PartitionFlow, resolved: int, end: int) -> None:
        """Be told that the log has taken a commit of the first `resolved` events, up to the position `end`."""
        ...

    def on_moved(self, event_type: str, moved: Moved) -> None:
        """Be told that the log has moved the cursor of a partition, whether an epoch of it has begun here or not."""
        ...

    def on_ended(self, flows: Collection[PartitionFlow]) -> None:
        """Be told that epochs have ended; nothing more is committed of them."""
        ...

    def on_truncated(self, partition: Partition, at_most: int, first: int) -> None:
        """Be told that the log dropped records unread, so many at most, all before the position `first`."""
        ...

    def on_assignment_lost(self, why: str) -> None:
        """Be told that the group has fenced this replica."""
        ...

    def on_letter_refused(self, event_type: str, partition: Partition, position: Position, why: str) -> None:
        """Be told that a dead letter was refused by its destination."""
        ...

    def on_type_stopped(self, event_type: str, partition: Partition, position: Position, why: str) -> None:
        """Be told that an event type has stopped at an event that it has no destination for."""
        ...
