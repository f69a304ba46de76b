"""Who waits for in-flight slots, in which order, and how many slots there are.

Pure: the lane asks, nothing here waits. The smallest rank goes first, within it who came first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from proxy.bridge.broker import Batch

_SERVED_SHARE = 4
"""A waiter is served when a quarter of the window is free: many slots at once make few, large writes."""


@dataclass(slots=True)
class Window:
    """How much may be sent and unconfirmed. An event larger than all the bytes goes alone."""

    max_events: int
    max_bytes: int
    events: int = 0
    bytes: int = 0

    @property
    def free(self) -> int:
        """Slots for events."""
        return self.max_events - self.events

    def serves(self, want: int) -> bool:
        """Return whether enough slots are free to begin serving someone who wants `want`."""
        return self.events == 0 or self.free >= max(1, min(want, self.max_events // _SERVED_SHARE))

    def admits(self, size: int) -> bool:
        """Return whether one more event, of `size` bytes, may be written now."""
        return self.events == 0 or (self.free > 0 and self.bytes + size <= self.max_bytes)

    def take(self, events: int, size: int) -> None:
        """Count events as written."""
        self.events += events
        self.bytes += size

    def give(self, events: int, size: int) -> None:
        """Count events as resolved."""
        self.events -= events
        self.bytes -= size


@dataclass(slots=True, eq=False)
class Request:
    """One call that waits until its batches, all of one topic, are written or withdrawn."""

    batches: Sequence[Batch]
    end: Callable[[], None]
    """Called when nothing of it is left to write."""
    _at: int = 0

    @property
    def rank(self) -> int:
        """Place of its class."""
        return self.batches[0].rank

    @property
    def topic(self) -> str:
        """Where its events come from; a topic is an event type."""
        return self.batches[0].partition.topic

    @property
    def batch(self) -> Batch | None:
        """The batch to write from next, asked in the step in which it is written; None when nothing is left."""
        while self._at < len(self.batches):
            batch = self.batches[self._at]
            if not batch.withdrawn and batch.done < len(batch.events):
                return batch
            self._at += 1
        return None

    @property
    def want(self) -> int:
        """Events left to write, some of them perhaps withdrawn."""
        return sum(len(batch.events) - batch.done for batch in self.batches[self._at :])


@dataclass(slots=True)
class Line:
    """The waiting requests."""

    _ranks: dict[int, dict[Request, None]] = field(default_factory=dict)

    @property
    def first(self) -> Request | None:
        """Who is next."""
        return next(iter(self._ranks[min(self._ranks)])) if self._ranks else None

    def add(self, request: Request) -> None:
        """Put a request at the end of its rank."""
        self._ranks.setdefault(request.rank, {})[request] = None

    def remove(self, request: Request) -> None:
        """Take a request out; one that is not in is passed over."""
        rank = self._ranks.get(request.rank, {})
        rank.pop(request, None)
        if not rank:
            self._ranks.pop(request.rank, None)

    def of(self, topic: str) -> list[Request]:
        """Return the requests of one topic, in their order."""
        return [request for rank in self._ranks.values() for request in rank if request.topic == topic]
