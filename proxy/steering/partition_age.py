"""How old the oldest event of a partition is that is not done with, and how much comes: from looks in between; pure."""

from collections import deque
from typing import NamedTuple

WINDOW = 60.0
"""Seconds over which the rate is taken at which events come."""


class Seen(NamedTuple):
    """What a look shows of a partition."""

    resolved: int
    """Sequence number up to which all events are done with ..."""
    sent: int
    """... up to which they were handed on ..."""
    received: int
    """... and up to which they were read."""
    front_ms: int | None
    """Timestamp of the next event to be handed on; of the first of those read last if none waits."""
    size: float
    """Bytes of a waiting event on average; 0 if none waits."""
    lag: int
    """Positions not done with."""
    head: int | None
    """The position behind the last event done with; None: none was since the assignment."""
    is_held: bool
    """It is not read now."""


class PartitionAge:
    """One partition in one assignment epoch.

    Of what was handed on and is not done with nobody keeps the timestamps. But it came before what stood at the front
    when it was looked last, or was it: so that one's timestamp stands until it is done with, which is rather too old
    than too young. What was never read has no timestamp that is known: if the partition is held, it counts from when
    that was seen first; if not, it is about to be read, or is no event (the end of a transaction).
    """

    def __init__(self) -> None:
        self.oldest_ms: int | None = None
        """Timestamp; None: not known."""
        self.size: float | None = None
        """Bytes of an event on average, of those that waited when it was looked last; None: none ever did."""
        self.end: int | None = None
        """Where the partition ends, as the log counts; None: not known."""
        self._until = -1
        """The timestamp stands until everything up to this sequence number is done with."""
        self._front_ms: int | None = None
        """Of the last look."""
        self._unread_since: float | None = None
        """On the clock of the looks: nothing is in memory since then, yet something is there."""
        self._ends: deque[tuple[float, int]] = deque()

    @property
    def arrivals(self) -> float:
        """Positions that come in a second; 0 before the second look."""
        (since, before), (until, after) = self._ends[0], self._ends[-1]
        return max(0, after - before) / (until - since) if until > since else 0.0

    def age(self, now: float, wall: float) -> float | None:
        """Return how old the oldest event is that is not done with, in seconds; None: not known, or there is none.

        `wall` is in seconds since 1970, `now` as in `see`.
        """
        if self._unread_since is not None:
            return now - self._unread_since
        return None if self.oldest_ms is None else max(0.0, wall - self.oldest_ms / 1000)

    def see(self, now: float, seen: Seen) -> None:
        """Take a look."""
        self._see_end(now, seen)
        if seen.size:
            self.size = seen.size
        if not seen.lag or seen.resolved == seen.received:
            is_unread = seen.lag and seen.is_held
            self._unread_since = (self._unread_since or now) if is_unread else None
            self.oldest_ms, self._front_ms, self._until = None, None, -1
            return
        self._unread_since = None
        if seen.resolved > self._until:
            self._until = seen.sent
            known = [stamp for stamp in (self._front_ms, seen.front_ms) if stamp is not None]
            self.oldest_ms = min(known, default=None)
        self._front_ms = seen.front_ms

    def _see_end(self, now: float, seen: Seen) -> None:
        if (self.end is None) is not (seen.head is None):
            self._ends.clear()
        self.end = None if seen.head is None else seen.head + seen.lag
        self._ends.append((now, seen.lag if self.end is None else self.end))
        while len(self._ends) > 2 and self._ends[1][0] <= now - WINDOW:  # noqa: PLR2004 -- both ends
            self._ends.popleft()
