"""How much a second a level may send: what every rate law is told and asked, and what none of them decides.

A law finds a rate from signs of congestion. Around it stands what holds whatever law is chosen: nothing goes while the
route must stop; a rate in front of empty queues is searched; what is not known bounds it; an allowance frees the top
level (docs/design/0026). Rates are in events of cost 1 a second.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from proxy.congestion.trips import Trip
from proxy.errors import RateLawError

EMPTY_FOR = 0.4
"""Seconds for which the queues must have been empty each time before a rate is searched anew.

At the right rate chance leaves them empty for less.
"""
SEARCH_DOUBLING = 0.3
"""Seconds in which a rate doubles in front of empty queues: what was seen to drain is a lower bound then."""
FEEDBACK = 0.1
"""Seconds until a change of the rate shows in the depth: a round trip of the control loop."""
PROBE = 1.0
"""Events a second that a cut, and a depth that is lost, leave: so a route that sees nothing does not stand for ever."""
DOUBLING = 0.5
"""Seconds in which slow start doubles a rate, until the first sign of a queue (RFC 9438, 4.10)."""
RESUME_SHARE = 0.25
"""Share of the last good rate to start with after a stop."""
LONGEST_TICK = 1.0
"""Seconds for which one tick lets a rate grow, however late it comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What one tick means for one level."""

    now: float
    must_stop: bool = False
    is_hot: bool = False
    """Its threshold is passed."""
    is_falling: bool = False
    """The queues are getting shorter."""
    is_cool: bool = True
    """The delay is far below its threshold."""
    is_rising: bool = False
    """The first signs of a queue."""
    empty_for: float | None = None
    """Seconds for which the queues have been seen empty each time; None: they were not, or it is not known."""
    empty_since_last: float = 0.0
    """Seconds of them that the last tick did not know of."""
    excess: float = 0.0
    """Seconds of queue delay above its threshold."""
    target: float = 0.0
    """The level's own share of the drain rate, in events a second."""
    own: float = 0.0
    """What this replica sends of the level's classes, in events a second."""
    drain: float = 0.0
    """What the consumers take from all replicas, in events a second."""
    is_used: bool = False
    """Events had to wait for this level's rate."""
    sees: bool = True
    """Everything needed to grow is known."""
    bound: float = inf
    """Events a second to which it may grow, as long as nothing would tell of a backlog."""
    held: float = inf
    """Events a second at most while the depth is not known; `PROBE` may always go."""
    has_allowance: bool = False
    """Something else bounds what the top level sends between two looks (`allowance`): it needs no rate when cool."""


class RateLaw(Protocol):
    """Finds the rate of one level. One's own: docs/rate-laws.md.

    `on_calm` comes in every tick without a sign of congestion, `on_used` after it if the rate may grow, `on_hot` in
    every tick with one, `on_trips` before them. None of them is called while the route must stop.
    """

    unit: str
    """What the law counts in; `rate` is always in events of cost 1 a second."""
    hears_trips: bool
    """Whether `on_trips` is of use to it; to tell of them costs a little for each batch."""
    rate: float
    """Infinite: no limit. Is also set from outside: after a search, to what flows anyway, to what is known."""

    def on_hot(self, level: Level) -> None:
        """Take in a sign of congestion; lower the rate, or wait until the last cut shows."""
        ...

    def on_calm(self, level: Level) -> bool:
        """Take in that there is none; return whether the rate may grow."""
        ...

    def on_used(self, level: Level, elapsed: float) -> None:
        """Grow by what `elapsed` seconds are worth: events had to wait for the rate, and what is needed is known."""
        ...

    def on_resume(self, level: Level, before: float) -> None:
        """Begin again after a stop, before which the rate was `before`: what waited must not all come at once."""
        ...

    def on_trips(self, now: float, trips: Sequence[Trip]) -> None:
        """Take in how long batches were on their way that have come back since the last tick."""
        ...


METHODS = ("on_hot", "on_calm", "on_used", "on_resume", "on_trips")
"""What a law is asked."""


def resumed(good: float, level: Level, start_rate: float) -> float:
    """Return the rate to begin with after a stop, when `good` was the last good one.

    Where there was no limit it is what is seen to be taken, and never less than `start_rate`: what consumers were seen
    to take fades while they stand still, down to next to nothing.
    """
    if good == inf:
        return max(level.drain, start_rate) if level.drain else inf
    return max(min(good, start_rate), RESUME_SHARE * good)


def is_rate(rate: object) -> bool:
    """Return whether it is a number from 0, perhaps infinite."""
    return isinstance(rate, (int, float)) and rate >= 0


class LevelRate:
    """The rate of one level: a law's, within what holds for every law. That of the `is_top` level begins infinite."""

    def __init__(self, law: RateLaw, *, is_top: bool) -> None:
        self._law = law
        self._is_top = is_top
        self._last: float | None = None
        self._before: float | None = None
        """The rate when the route had to stop; None: it need not."""

    @property
    def rate(self) -> float:
        """Events of cost 1 a second; infinite: no limit yet. Raises `RateLawError` if the law's is none."""
        return 0.0 if self._before is not None else self._found

    @property
    def hears_trips(self) -> bool:
        """See `RateLaw.hears_trips`."""
        return self._law.hears_trips

    def change(self, make: Callable[[float], RateLaw]) -> None:
        """Go by another law from now on, made to begin at the rate that was found so far."""
        self._law = make(self._found)

    def on_trips(self, now: float, trips: Sequence[Trip]) -> None:
        """See `RateLaw.on_trips`."""
        self._law.on_trips(now, trips)

    def on_tick(self, level: Level) -> bool:
        """Take in one tick; return whether it was a cut."""
        # A process that was frozen must not grow by what it slept through.
        elapsed = 0.0 if self._last is None else min(LONGEST_TICK, level.now - self._last)
        self._last = level.now
        law = self._law
        if level.must_stop:
            self._before = self._found if self._before is None else self._before
            return False
        if self._before is not None:
            before, self._before = self._before, None
            if self._is_top and level.has_allowance:
                law.rate = inf
            else:
                law.on_resume(level, before)
        if self._found == inf and not level.is_hot:
            return False
        self._lower(max(level.held, PROBE))
        if level.is_hot:
            rate = self._found
            law.on_hot(level)
            return self._found < rate
        if self._is_top and level.has_allowance and level.sees and level.is_cool:
            law.rate = inf
            return False
        if law.on_calm(level):
            self._grow(level, elapsed)
        return False

    def _grow(self, level: Level, elapsed: float) -> None:
        law = self._law
        if level.sees and level.is_cool:
            # The classes above may send without asking: so much does no harm, but where nothing would tell of it.
            self._raise(min(level.own, level.bound))
        if not (level.is_used and level.sees):
            return
        before = self._found
        if level.empty_for is not None and level.empty_for >= EMPTY_FOR:
            # At most twofold from one look at the depth to the next, however far apart they are.
            law.rate = before * 2 ** min(1.0, level.empty_since_last / SEARCH_DOUBLING)
        else:
            law.on_used(level, elapsed)
        self._lower(max(before, level.bound))

    @property
    def _found(self) -> float:
        rate = self._law.rate
        if not is_rate(rate):
            raise RateLawError(f"the law {type(self._law).__name__} has a rate of {rate!r}, which is none")
        return rate

    # A rate is only set where that changes it: a law may have reasons of its own for what it answers just now, and
    # would take its own answer for somebody else's wish.

    def _lower(self, most: float) -> None:
        if most < self._found:
            self._law.rate = most

    def _raise(self, least: float) -> None:
        if least > self._found:
            self._law.rate = least
