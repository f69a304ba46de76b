"""Cinnamon, Uber's load shedder: a PID controller finds the ratio to reject, priorities say whom.

Sources: Uber Engineering, "Cinnamon: Using Century Old Tech to Build a Mean Load Shedder", "PID Controller for
Cinnamon" and "Cinnamon Auto-Tuner: Adaptive Concurrency in the Wild" (2023). Every 0.5 s, at the queue in front of the
service, P = (inflow - (outflow + free slots)) / outflow, and ratio = Kp P + Ki (sum of P over the last 60 s) with Kp
0.1, Ki 1.4 and no D. Rejected is what lies below that ratio in the distribution of the last 1,000 requests over tiers
(here: classes) and 128 cohorts of each.

Not published where it could be read, and what was taken: the sum counts periods, not seconds (so does failsafe-go's
limiter, made after it); it never falls below 0, or an idle minute would outweigh an overload; without outflow P is
divided by what the consumers could take, and nothing is calibrated before that is known. Left out, and why
(docs/design/0028-rivals.md): that only a queue not empty for 10 s is overloaded, the priority queue with its time-outs,
the auto-tuner.
"""

from collections import deque
from collections.abc import Sequence

from proxy.simulation import cohorts
from proxy.simulation.shedding import Look, Window

PERIOD = 0.5
"""Seconds between two calibrations."""
KP = 0.1
KI = 1.4
LOOKBACK = 60.0
"""Seconds of errors that are remembered."""
SAMPLE = 1_000
"""Requests whose priorities are remembered, at least."""
_DUST = 1e-9


class Cinnamon:
    """The rule of one route. A `Rule`."""

    def __init__(self, begin: Sequence[float]) -> None:
        """Begin with these rates, one for each class, until the first window is over."""
        self.rates = tuple(begin)
        self._classes = classes = len(begin)
        self.ratio = 0.0
        """Share of the requests to be rejected."""
        self.level = cohorts.most(classes)
        """See `cohorts`."""
        self._window = Window(classes)
        self._waited: float | None = None
        """Requests in the queues when the period began; None: not known, so none has begun."""
        self._errors: deque[float] = deque(maxlen=round(LOOKBACK / PERIOD))
        """P of each period, as far as it counts."""
        self._sample: deque[list[float]] = deque()
        """Requests of the last periods, by class."""

    def on_look(self, look: Look) -> None:
        """See `Rule.on_look`."""
        window = self._window
        is_at_rest = not window.seconds and not look.inflow and not self.ratio
        if self._waited is None or is_at_rest:
            self._waited = look.waiting  # a period begins with a request
            return
        window.add(look)
        if window.seconds < PERIOD - _DUST:
            return
        self._sample.append(window.asked)
        while sum(map(sum, self._sample)) - sum(self._sample[0]) >= SAMPLE:
            self._sample.popleft()
        if window.waiting is not None and window.could > 0:
            self._calibrate(window, window.waiting - self._waited)
        self._waited = window.waiting
        self._window = Window(self._classes)

    def on_stop(self) -> None:
        """See `Rule.on_stop`."""
        self._window, self._waited = Window(self._classes), None

    def _calibrate(self, window: Window, growth: float) -> None:
        # What others put in is known a second late, the depth is not: while requests wait, no consumer has a free slot.
        outflow = window.could if window.waiting else min(max(window.inflow - growth, 0.0), window.could)
        error = (growth - (window.could - outflow)) / (outflow or window.could)
        if len(self._errors) == self._errors.maxlen:
            self._errors.popleft()
        before = sum(self._errors)
        self._errors.append(max(before + error, 0.0) - before)
        self.ratio = min(max(KP * error + KI * sum(self._errors), 0.0), 1.0)
        sample = [sum(requests) for requests in zip(*self._sample, strict=True)]
        self.level = cohorts.passing(sample, self.ratio)
        self.rates = window.rates(self.level)
