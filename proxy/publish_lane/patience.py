"""How long a confirm may be awaited on a connection that has just opened: pure.

A broker that has just started, or a queue that is just coming back, may take a message and never confirm it, while all
that is written later is confirmed. The deadline for confirms would let such an event, and with it a partition of strict
order, wait for 30 s. So on a young connection patience is shorter: some times the slowest confirm that the lane has
seen. A connection given up costs what is in flight a second delivery at worst; therefore this happens once within a
deadline for confirms, as often as that deadline itself may do it.
"""

from dataclasses import dataclass
from math import inf

YOUNG = 10.0
"""Seconds after the opening of a connection in which what is written has the shorter patience."""
SHORTEST = 2.0
"""Seconds it lasts at least."""
TIMES = 5.0
"""... and so many times the slowest confirm seen. Larger: fewer second deliveries by slow brokers, later recovery."""


@dataclass(slots=True)
class Patience:
    """What one lane remembers, over all its connections; `deadline` is that for confirms, in seconds."""

    deadline: float
    slowest: float = 0.0
    """Seconds of the slowest confirm."""
    _lost_at: float = -inf
    """When patience was lost last."""

    def saw(self, seconds: float) -> None:
        """Take note of a confirm."""
        self.slowest = max(self.slowest, seconds)

    def limit(self, written: float, opened: float, now: float) -> float:
        """Return for how many seconds the confirm of what was `written` then is awaited on a connection so old."""
        if written - opened > YOUNG or now - self._lost_at < self.deadline:
            return self.deadline
        return min(self.deadline, max(SHORTEST, TIMES * self.slowest))

    def lose(self, now: float) -> None:
        """Take note that a connection was given up."""
        self._lost_at = now
