"""AIMD as TCP learned it, without a unit of its own (design decision 13): the default law.

Sources: Chiu and Jain 1989 for additive increase and multiplicative decrease; RFC 5681 for slow start and its
threshold; RFC 2861 for growing only what is used. A cut lands on a share of the *measured drain rate* instead of on a
share of the own rate, so that one cut is right whatever the rate was.
"""

from collections.abc import Sequence
from math import inf

from proxy.congestion.rate_law import DOUBLING, FEEDBACK, PROBE, Level, resumed
from proxy.congestion.trips import Trip
from proxy.settings import ClassBudget

FALLEN = 0.5
"""A cut waits for the last one to show, unless it lands below this share of the rate: the consumers take so much less,
and every tick counts.
"""
PATIENCE = 0.5
"""Seconds after the last sign of a long queue for which a level waits for a short one before it grows again."""
RETURN = 1.0
"""Share of what is missing to the last good rate that comes back per second, beside the growth."""
COOL_SHARE = 0.98
"""Share of the drain rate to which a level returns at once when its queue is short again."""
DRAINING = 1.0
"""Seconds of delay above the threshold at which a cut lands on nothing: the queue is only drained."""
KEPT_SHARE = 0.05
"""A drain rate below this share of the last good rate is a stall, and no new good rate."""


class Aimd:
    """Grows by a share of the drain rate per second, cuts to a share of the drain rate.

    Example, `growth` 0.12 and `cut` 0.92, drain rate 300/s, sole replica: hot at 320/s, cut to 276/s; cool again,
    294/s; from there 36/s more each second.
    """

    unit = "events of cost 1 a second"
    hears_trips = False

    def __init__(self, settings: ClassBudget, *, start: float) -> None:
        self.rate = start
        """Events of cost 1 a second."""
        self._settings = settings
        self._good = 0.0
        self._slow_start_end = inf
        self._cut_at = -inf
        self._hot_at = -inf
        self._is_recovering = False
        """From a cut until the queue is short again nothing grows."""

    def on_hot(self, level: Level) -> None:
        """See `RateLaw.on_hot`."""
        is_first = not self._is_recovering or self.rate == inf
        self._hot_at = level.now
        self._is_recovering = True
        landing = max(0.0, self._settings.cut - level.excess / DRAINING) * level.target
        is_fresh = level.now - self._cut_at < FEEDBACK and landing > FALLEN * self.rate
        if not is_first and (level.is_falling or is_fresh):
            return
        if level.target >= KEPT_SHARE * self._good:
            self._good = level.target
        self._slow_start_end = self._good / 2
        self._cut_at = level.now
        self.rate = min(self.rate, max(landing, PROBE))

    def on_calm(self, level: Level) -> bool:
        """See `RateLaw.on_calm`."""
        if self._is_recovering and level.sees:
            if level.is_cool:
                self.rate = max(self.rate, COOL_SHARE * level.target)
            self._is_recovering = not level.is_cool and level.now - self._hot_at < PATIENCE
        return not self._is_recovering

    def on_used(self, level: Level, elapsed: float) -> None:
        """See `RateLaw.on_used`."""
        if self.rate < self._slow_start_end:
            if not level.is_rising:
                self.rate *= 2 ** (elapsed / DOUBLING)
                return
            self._slow_start_end = self.rate
        missing = max(0.0, self._good - self.rate)
        self.rate += (self._settings.growth * max(level.drain, self.rate) + RETURN * missing) * elapsed

    def on_resume(self, level: Level, before: float) -> None:
        """See `RateLaw.on_resume`."""
        good = max(self._good, before)
        self.rate = resumed(good, level, self._settings.start_rate)
        if good == inf:
            self._is_recovering = False
        else:
            self._good, self._slow_start_end = good, good / 2

    def on_trips(self, now: float, trips: Sequence[Trip]) -> None:
        """Nothing: how long batches take says nothing of slow consumers."""
