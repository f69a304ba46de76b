"""One partition of the log: how far it reaches, how far it is done with at an instant, and what lies at each position.

Everything is a closed form of the time, of positions, and of the few things that happen to a partition. Positions are
counted as Kafka counts offsets; a range is `first` to `end - 1`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from load.metric_fleet.flow import INBOX_S, Flow, work, work_at
from load.metric_fleet.kinds import CLASSES, Kind

REASONS = ("unroutable", "too_large", "expired", "refused", "bad_property", "too_many_headers", "internal")
"""Of dead letters."""
LETTERS_EVERY = 200
"""Positions from one range of dead letters to the next, of a type that has some."""
LETTERS_AT = 3
MARKER_EVERY = 20
"""Positions from one marker of a transaction to the next; `LETTERS_EVERY` is a multiple, so that they never meet."""


class Range(NamedTuple):
    """Positions."""

    first: int
    end: int

    def within(self, first: int, end: int) -> int:
        """Return how many of them lie between two positions."""
        return max(0, min(self.end, end) - max(self.first, first))


_NOWHERE = Range(0, 0)


class Letters(NamedTuple):
    """Neighbouring dead letters."""

    first: int
    end: int
    reason: str


@dataclass(frozen=True)
class Hold:
    """A partition is behind for a reason of its own: by `seconds`, which fall by one a second if it `falls`.

    One that `stands` gets nothing done meanwhile, whatever else there is; `seconds` does not count then.
    """

    from_ms: int
    until_ms: int
    seconds: float
    falls: bool = False
    stands: bool = False

    def has(self, t_ms: float) -> bool:
        """Return whether it lasts at an instant."""
        return self.from_ms <= t_ms < self.until_ms

    def at(self, t_ms: float) -> float:
        """Return by how many seconds at an instant."""
        if not self.has(t_ms):
            return 0.0
        return max(0.0, self.seconds - (t_ms - self.from_ms) / 1000) if self.falls else self.seconds


@dataclass(frozen=True)
class Topic:
    """A topic, from its making on; another of the same name may follow."""

    id: str
    from_ms: int
    base: float
    """Position at its beginning, or at 0 ms for the first; the fraction is the partition's phase."""
    begun: float | None
    """`work` at its beginning; None: it was there before."""


@dataclass
class Log:
    """A partition."""

    kind: Kind
    number: int
    topics: list[Topic]
    holds: list[Hold] = field(default_factory=list)
    void: list[Range] = field(default_factory=list)
    """Positions that nobody reads: compacted, or dropped by retention; apart from one another."""
    truncated: list[tuple[int, Range]] = field(default_factory=list)
    """Those dropped by retention, of `void`, and when that was found."""
    discarded: list[Range] = field(default_factory=list)
    """Positions that were read while the type was in mode `discard`."""
    has_markers: bool = False
    letters_width: int = 0
    """Of each range of dead letters; 0: there are none."""
    burst: Range = _NOWHERE
    """Where every second event is a dead letter."""
    mended_ms: int | None = None
    """From when on nothing of it is a dead letter any more."""

    @property
    def rank(self) -> int:
        """Return the rank of its class."""
        return CLASSES.index(self.kind.priority)

    def topic_at(self, t_ms: float) -> Topic:
        """Return the topic that has the name at an instant."""
        return next(topic for topic in reversed(self.topics) if topic.from_ms <= t_ms or topic is self.topics[0])

    def end(self, t_ms: float) -> int:
        """Return one past the last position at an instant."""
        return self._at(t_ms, t_ms)

    def done(self, t_ms: float, flow: Flow) -> int:
        """Return the position up to which it is done with, as long as somebody owns it."""
        return self._at(t_ms, t_ms - 1000 * self.behind_s(t_ms, flow))

    def read(self, t_ms: float, flow: Flow) -> int:
        """Return the position up to which it is read."""
        return self._at(t_ms, t_ms - 1000 * max(0.0, self.behind_s(t_ms, flow) - INBOX_S))

    def behind_s(self, t_ms: float, flow: Flow) -> float:
        """Return how long what comes at an instant will wait, if nothing changes."""
        for hold in self.holds:
            if hold.stands and hold.has(t_ms):
                before = hold.from_ms - 1
                return (t_ms - before) / 1000 + self.behind_s(before, flow)
        own = sum([hold.at(t_ms) for hold in self.holds])
        return own + flow.delay_s(self.kind.route, self.rank, t_ms)

    def _at(self, t_ms: float, worked_ms: float) -> int:
        if not self.kind.rate:
            return int(self.topics[0].base)
        topic = self.topic_at(t_ms)
        if topic.begun is None:
            return int(topic.base + self.kind.rate * work(worked_ms))
        return int(topic.base + self.kind.rate * max(0.0, work(worked_ms) - topic.begun))

    def due_ms(self, position: int, topic: Topic) -> int:
        """Return when an event was written: the first millisecond at which the log reaches beyond it."""
        target = (position + 1 - topic.base) / self.kind.rate + (topic.begun or 0.0)
        due = work_at(target)
        while topic.base + self.kind.rate * (work(due) - (topic.begun or 0.0)) < position + 1:
            due += 1
        return due

    # -- what lies where ----------------------------------------------------------------------------------------------

    def events(self, first: int, end: int) -> int:
        """Return how many events a range holds; the rest is absent, or was dropped unread."""
        found = end - first
        if self.has_markers:
            found -= end // MARKER_EVERY - first // MARKER_EVERY
        for void in self.void:
            if inside := void.within(first, end):
                found -= inside
                if self.has_markers:
                    low, high = max(void.first, first), min(void.end, end)
                    found += high // MARKER_EVERY - low // MARKER_EVERY
        return found

    def markers(self, first: int, end: int) -> Iterator[int]:
        """Yield the positions of markers."""
        if self.has_markers:
            start = first // MARKER_EVERY * MARKER_EVERY + MARKER_EVERY - 1
            yield from range(start, end, MARKER_EVERY)

    def is_event(self, position: int) -> bool:
        """Return whether an event lies there that can be read."""
        return self.events(position, position + 1) == 1

    def letters(self, first: int, end: int, read_ms: int) -> list[Letters]:
        """Return the dead letters of a range, if its epoch began at an instant: neighbours of one reason together."""
        if not (self.letters_width or self.burst.end) or (self.mended_ms is not None and read_ms >= self.mended_ms):
            return []
        found = [*self._regular(first, end), *self._burst(first, end)]
        return sorted(found)

    def _regular(self, first: int, end: int) -> Iterator[Letters]:
        if not self.letters_width:
            return
        for number in range(first // LETTERS_EVERY, (end - 1) // LETTERS_EVERY + 1):
            start = number * LETTERS_EVERY + LETTERS_AT
            stop = start + self.letters_width
            if any(one.within(start, stop) for one in (*self.void, *self.discarded, self.burst)):
                continue
            if start < end and stop > first:
                yield Letters(max(start, first), min(stop, end), REASONS[number % len(REASONS)])

    def _burst(self, first: int, end: int) -> Iterator[Letters]:
        for at in range(self.burst.first, self.burst.end, 2):
            if first <= at < end:
                yield Letters(at, at + 1, REASONS[0])
