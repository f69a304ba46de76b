"""How much a second a level may send: AIMD as TCP learned it, without a unit of its own (design decision 13).

Sources: Chiu and Jain 1989 for additive increase and multiplicative decrease; RFC 5681 for slow start and its
threshold; RFC 2861 for growing only what is used. A cut lands on a share of the *measured drain rate* instead of on a
share of the own rate, so that one cut is right whatever the rate was. Rates are in events of cost 1.
"""

from dataclasses import dataclass
from math import inf
from typing import Protocol

from proxy.settings import ClassBudget

DOUBLING = 0.5
"""Seconds in which slow start doubles the rate."""
EMPTY_FOR = 0.4
"""Seconds for which the queues must have been empty each time before a rate is searched anew.

At the right rate chance leaves them empty for less.
"""
SEARCH_DOUBLING = 0.3
"""Seconds in which a rate doubles in front of empty queues: what was seen to drain is a lower bound then."""
FEEDBACK = 0.1
"""Seconds until a cut shows in the depth; not before then the next one."""
FALLEN = 0.5
"""... unless it lands below this share of the rate: the consumers take so much less, and every tick counts.
"""
PATIENCE = 0.5
"""Seconds after the last sign of a long queue for which a level waits for a short one before it grows again."""
RETURN = 1.0
"""Share of what is missing to the last good rate that comes back per second, beside the growth."""
COOL_SHARE = 0.98
"""Share of the drain rate to which a level returns at once when its queue is short again."""
DRAINING = 1.0
"""Seconds of delay above the threshold at which a cut lands on nothing: the queue is only drained."""
PROBE = 1.0
"""Events a second that a cut, and a depth that is lost, leave: so a route that sees nothing does not stand for ever."""
RESUME_SHARE = 0.25
"""Share of the last good rate to start with after a stop."""
LONGEST_TICK = 1.0
"""Seconds for which one tick lets a rate grow, however late it comes."""
KEPT_SHARE = 0.05
"""A drain rate below this share of the last good rate is a stall, and no new good rate."""


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
    """Finds the rate of one level."""

    @property
    def rate(self) -> float:
        """Events a second; infinite: no limit yet."""
        ...

    def on_tick(self, level: Level) -> bool:
        """Take in one tick; return whether it was a cut."""
        ...


class Aimd:
    """Grows by a share of the drain rate per second, cuts to a share of the drain rate.

    Example, `growth` 0.12 and `cut` 0.92, drain rate 300/s, sole replica: hot at 320/s, cut to 276/s; cool again,
    294/s; from there 36/s more each second.
    """

    def __init__(self, settings: ClassBudget, *, is_unlimited: bool) -> None:
        self.rate = inf if is_unlimited else settings.start_rate
        """Events a second."""
        self._is_top = is_unlimited
        self._settings = settings
        self._good = 0.0
        self._slow_start_end = inf
        self._cut_at = -inf
        self._hot_at = -inf
        self._last: float | None = None
        self._is_stopped = False
        self._before = self.rate
        """The rate when the route had to stop."""
        self._is_recovering = False
        """From a cut until the queue is short again nothing grows."""

    def on_tick(self, level: Level) -> bool:
        """See `RateLaw.on_tick`."""
        # A process that was frozen must not grow by what it slept through.
        elapsed = 0.0 if self._last is None else min(LONGEST_TICK, level.now - self._last)
        self._last = level.now
        if level.must_stop:
            self._stop()
            return False
        self._resume(level)
        if self.rate == inf and not level.is_hot:
            return False
        self.rate = min(self.rate, max(level.held, PROBE))
        if level.is_hot:
            return self._on_hot(level)
        if self._is_top and level.has_allowance and level.sees and level.is_cool:
            self.rate, self._is_recovering = inf, False
            return False
        if self._is_recovering and level.sees:
            if level.is_cool:
                self.rate = max(self.rate, COOL_SHARE * level.target)
            self._is_recovering = not level.is_cool and level.now - self._hot_at < PATIENCE
        if self._is_recovering:
            return False
        if level.sees and level.is_cool:
            self.rate = max(self.rate, level.own)  # the classes above may send without asking: so much does no harm
        if level.is_used and level.sees:
            before = self.rate
            self._grow(level, elapsed)
            self.rate = min(self.rate, max(before, level.bound))
        return False

    def _stop(self) -> None:
        if not self._is_stopped:
            self._is_stopped = True
            self._before = self.rate
            self.rate = 0.0

    def _resume(self, level: Level) -> None:
        """Begin again after a stop: what waited for it must not all come at once."""
        if not self._is_stopped:
            return
        self._is_stopped = False
        if self._is_top and level.has_allowance:
            self.rate = inf
            return
        if self._before == inf:
            # What consumers were seen to take fades while they stand still, down to next to nothing.
            self.rate = max(level.drain, self._settings.start_rate) if level.drain else inf
            return
        self._good = max(self._good, self._before)
        self._slow_start_end = self._good / 2
        self.rate = max(min(self._good, self._settings.start_rate), RESUME_SHARE * self._good)

    def _on_hot(self, level: Level) -> bool:
        is_first = not self._is_recovering
        self._hot_at = level.now
        self._is_recovering = True
        landing = max(0.0, self._settings.cut - level.excess / DRAINING) * level.target
        is_fresh = level.now - self._cut_at < FEEDBACK and landing > FALLEN * self.rate
        if not is_first and (level.is_falling or is_fresh):
            return False
        if level.target >= KEPT_SHARE * self._good:
            self._good = level.target
        self._slow_start_end = self._good / 2
        self._cut_at = level.now
        before = self.rate
        self.rate = min(self.rate, max(landing, PROBE))
        return self.rate < before

    def _grow(self, level: Level, elapsed: float) -> None:
        if level.empty_for is not None and level.empty_for >= EMPTY_FOR:
            # At most twofold from one look at the depth to the next, however far apart they are.
            self.rate *= 2 ** min(1.0, level.empty_since_last / SEARCH_DOUBLING)
            return
        if self.rate < self._slow_start_end:
            if not level.is_rising:
                self.rate *= 2 ** (elapsed / DOUBLING)
                return
            self._slow_start_end = self.rate
        missing = max(0.0, self._good - self.rate)
        self.rate += (self._settings.growth * max(level.drain, self.rate) + RETURN * missing) * elapsed
