"""How fast letters go: no faster than asked, and only beside what is live, never instead of it. Pure.

A running bridge lets old events stand behind live ones (its catch-up tier). A command that is another process can't
stand in that row, so it does what comes to the same: it looks at the queues that it sends to, as the bridge does, and
what waits there is for whoever was first. While a queue holds more than a tenth of a second of the rate asked for, the
letters wait; then the pace grows again from half of what it was.

    rate       what was asked for, letters a second
    pace       what is given now, between rate/100 (1 at least) and rate
    too deep   more than max(50, rate/10) messages wait in a queue
"""

from collections.abc import Iterable
from math import inf

DEFAULT_RATE = 100.0
"""Letters a second if nobody says: what most consumers take beside their work; 100,000 letters take 17 minutes."""
LEAST_DEPTH = 50
DEPTH_SECONDS = 0.1
GROWTH = 0.1
"""Of the rate, by each look at queues that are not too deep."""
CUT = 0.5
LOOK_SECONDS = 0.1
"""Between two looks."""
STALE = 5 * LOOK_SECONDS
"""Depths that are older say nothing: no letter goes by them."""
SAVED = 0.05
"""Seconds of the pace that may be saved up: a burst."""


class Pace:
    """The pace of one command; all times in seconds of one clock."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self.value = max(1.0, rate * GROWTH)
        self._saved = 0.0
        self._at = now
        self._is_deep: dict[str, bool] = {}
        """By queue, as last seen."""
        self._seen: dict[str, float] = {}

    @property
    def too_deep(self) -> float:
        """Messages that wait in a queue beyond which no letter goes there."""
        return max(LEAST_DEPTH, self.rate * DEPTH_SECONDS)

    def on_depths(self, depths: Iterable[tuple[str, int | None]], now: float) -> None:
        """Take what the queues hold; None: not known."""
        was_deep = any(self._is_deep.values())
        for queue, depth in depths:
            if depth is not None:
                self._is_deep[queue] = depth > self.too_deep
                self._seen[queue] = now
        if any(self._is_deep.values()):
            if not was_deep:
                self.value = max(1.0, self.rate / 100, self.value * CUT)
        else:
            self.value = min(self.rate, self.value + self.rate * GROWTH)

    def blind_since(self, queues: Iterable[str]) -> float:
        """Return when the queue longest unknown was last seen; infinity without queues, minus infinity if never."""
        return min((self._seen.get(queue, -inf) for queue in queues), default=inf)

    def admit(self, want: int, queues: Iterable[str], now: float) -> int:
        """Return how many of `want` letters may go to these queues now, and take them as gone."""
        room = max(1.0, self.value * SAVED)
        self._saved = min(room, self._saved + (now - self._at) * self.value)
        self._at = now
        if any(self._is_deep.get(queue, True) or now - self._seen[queue] > STALE for queue in queues):
            return 0
        count = min(want, int(self._saved))
        self._saved -= count
        return count

    def wait(self) -> float:
        """Return after how many seconds one more letter may go, at this pace."""
        return max(0.001, (1.0 - self._saved) / self.value)
