"""What is kept: event types, their partitions, and events under offsets that say nothing to whoever reads them.

An event's *index* counts from the partition's first event on, without gaps; it never leaves this package. Its *offset*
is the text that clients get: the order of its timeline and its number there. Numbers begin anew with each timeline and
may leave some out, so that nobody can calculate with them. A cursor says the last event that is done with; `BEGIN` is
the one before the first.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

BEGIN = "BEGIN"
RETENTION_MS = 345_600_000
"""Four days: what an event type gets that does not say how long it keeps its events."""
Category = Literal["undefined", "data", "business"]


class Problem(Exception):  # noqa: N818 -- the API's own word for it
    """What a request is refused with."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Segment:
    """Indexes from `first` on have the numbers from `number` on, in the timeline `order`."""

    first: int
    order: int
    number: int


class PartitionLog:
    """The events of one partition that are still kept."""

    def __init__(self) -> None:
        self.first = 0
        """Index of the oldest event that is kept."""
        self._events: list[bytes] = []
        self._times = array("d")
        self._segments = [Segment(0, 1, 0)]

    @property
    def end(self) -> int:
        """Return the index that the next event gets."""
        return self.first + len(self._events)

    def append(self, events: Sequence[bytes], now: float) -> None:
        """Take events in, each one JSON object."""
        self._events.extend(events)
        self._times.extend([now] * len(events))

    def truncate(self, before: int) -> None:
        """Let the events before an index go, as retention does."""
        gone = max(min(before, self.end) - self.first, 0)
        del self._events[:gone]
        del self._times[:gone]
        self.first += gone

    def expire(self, before: float) -> None:
        """Let go what was published before a time."""
        self.truncate(self.first + bisect_right(self._times, before))

    def switch_timeline(self) -> None:
        """Begin the next timeline: its numbers start at zero."""
        self._segments.append(Segment(self.end, self._segments[-1].order + 1, 0))

    def leave_gap(self, numbers: int) -> None:
        """Use up numbers that no event gets, as compaction does."""
        last = self._segments[-1]
        self._segments.append(Segment(self.end, last.order, last.number + self.end - last.first + numbers))

    def events(self, first: int, end: int) -> list[bytes]:
        """Return the events of a range of indexes that are kept."""
        return self._events[first - self.first : end - self.first]

    def published_at(self, index: int) -> float:
        """Return when an event that is kept was published."""
        return self._times[index - self.first]

    def offset(self, index: int) -> str:
        """Return the offset of an event, whether it is there or not; -1 is `BEGIN`."""
        if index < 0:
            return BEGIN
        segment = self._segments[bisect_right(self._segments, index, key=lambda each: each.first) - 1]
        return f"001-{segment.order:04x}-{segment.number + index - segment.first:018d}"

    def index(self, offset: str) -> int:
        """Return the index of the last event up to an offset, or raise a Problem if it is none that ever was."""
        if offset == BEGIN:
            return -1
        version, _, rest = offset.partition("-")
        order, _, number = rest.partition("-")
        try:
            at = int(order, 16), int(number)
        except ValueError:
            raise Problem(422, f"offset {offset!r} is none") from None
        place = bisect_right(self._segments, at, key=lambda each: (each.order, each.number)) - 1
        segment = self._segments[max(place, 0)]
        after = self._segments[place + 1] if 0 <= place < len(self._segments) - 1 else None
        index = segment.first + at[1] - segment.number
        if after is not None and after.order == at[0]:
            index = min(index, after.first - 1)  # a number that was left out stands for the event before
        end = self.end if after is None else after.first
        if version != "001" or place < 0 or segment.order != at[0] or index >= end:
            raise Problem(422, f"offset {offset!r} is not available")
        return index


@dataclass(slots=True)
class EventType:
    """One event type; `partitions` have their places for names."""

    name: str
    partitions: list[PartitionLog]
    owning_application: str = "nobody"
    category: Category = "undefined"
    partition_strategy: str = "random"
    partition_key_fields: list[str] = field(default_factory=list)
    cleanup_policy: str = "delete"
    retention_ms: int = RETENTION_MS
    created_at: float = 0.0
    is_forbidden: bool = False
    """Nobody may read it: 403."""
    turn: int = 0
    """Where the next event of no partition goes."""

    def partition(self, name: str) -> PartitionLog:
        """Return a partition by its name, or raise a Problem."""
        if not name.isdecimal() or int(name) >= len(self.partitions):
            raise Problem(404, f"partition {name!r} of {self.name!r} does not exist")
        return self.partitions[int(name)]
