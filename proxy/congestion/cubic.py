"""CUBIC: a curve in time since the last cut, flat where the last cut was (`law: cubic`).

Sources: RFC 9438, and Aeron's pluggable congestion control, whose share given up at a cut (0.2 instead of 0.3) is the
default here. W(t) = C (t - K)^3 + Wmax with K = cbrt(Wmax B / C). W is the rate in events of cost 1 a second, t counts
seconds in which the rate was used, a loss is every sign of congestion, and a round trip is the control loop's.
"""

from collections.abc import Sequence
from math import cbrt, inf

from proxy.congestion.rate_law import DOUBLING, FEEDBACK, PROBE, Level, resumed
from proxy.congestion.trips import Trip
from proxy.settings import ClassBudget

C = 0.4
"""Events a second, gained per second cubed."""


class Cubic:
    """Cuts to a share of its own rate, returns steeply, lingers where it was cut, then probes ever faster.

    Example, B 0.2: cut at 300/s it falls to 240/s and is back at 300/s after K = cbrt(150) = 5.3 s.
    """

    unit = "events of cost 1 a second"
    hears_trips = False

    def __init__(self, settings: ClassBudget, *, start: float) -> None:
        self.rate = start
        """Events of cost 1 a second."""
        self._start_rate = settings.start_rate
        self._settings = settings.cubic
        self._most = 0.0
        """Wmax: where the curve is flat; 0: it was never cut, and slow start goes on."""
        self._used = 0.0
        """Seconds since the last cut in which the rate was used."""
        self._pending = 0.0
        """Seconds of them since the last update."""
        self._drawn = -1.0
        """The rate as the curve had it; where it is another now, somebody else has set it."""
        self._cut_at = -inf
        self._was_hot = False

    def on_hot(self, level: Level) -> None:
        """See `RateLaw.on_hot`."""
        is_first, self._was_hot = not self._was_hot, True
        if not is_first and (level.is_falling or level.now - self._cut_at < FEEDBACK):
            return
        share = self._settings.cut
        rate = level.drain if self.rate == inf else self.rate
        # Fast convergence: who is cut below the last flat part leaves room for others.
        self._most = rate * (2 - share) / 2 if rate < self._most else rate
        self.rate = self._drawn = max(rate * (1 - share), PROBE)
        self._used = self._pending = 0.0
        self._cut_at = level.now

    def on_calm(self, level: Level) -> bool:  # noqa: ARG002
        """See `RateLaw.on_calm`: a cut is followed by growth at once."""
        self._was_hot = False
        return True

    def on_used(self, level: Level, elapsed: float) -> None:
        """See `RateLaw.on_used`."""
        if not self._most:
            if not level.is_rising:
                self.rate *= 2 ** (elapsed / DOUBLING)
                return
            self._most = self.rate
        self._pending += elapsed
        if self._pending < FEEDBACK:
            return
        if self.rate != self._drawn:
            self._used = max(0.0, self._delay + cbrt((self.rate - self._most) / C))
        self._used += self._pending
        self._pending = 0.0
        self.rate = self._drawn = max(self.rate, self._curve())

    def on_resume(self, level: Level, before: float) -> None:
        """See `RateLaw.on_resume`."""
        self.rate = resumed(before, level, self._start_rate)

    def on_trips(self, now: float, trips: Sequence[Trip]) -> None:
        """Nothing: how long batches take says nothing of slow consumers."""

    @property
    def _delay(self) -> float:
        """K: seconds from a cut until the curve is flat."""
        return cbrt(self._most * self._settings.cut / C)

    def _curve(self) -> float:
        """Return W(t); with `tcp`, while below Wmax, no less than a flow of Reno's would have."""
        rate = float(C * (self._used - self._delay) ** 3 + self._most)
        if self._settings.tcp and rate < self._most:
            share = self._settings.cut
            rate = max(rate, self._most * (1 - share) + 3 * share / (2 - share) * self._used / FEEDBACK)
        return rate
