"""The queue that would be there if what would wait in the log had not been sent (docs/design/0057-shadow.md); pure."""

from dataclasses import dataclass
from math import exp, inf

from proxy.congestion.receiver import FEWEST

MEMORY = 1.0
"""Seconds over which what the consumers take is averaged."""


@dataclass(frozen=True, slots=True)
class QueueLook:
    """One look at a real queue."""

    at: float
    """Seconds on the caller's clock."""
    ready: int
    """Messages waiting."""
    own: float
    """Own events put in since the start."""
    others: float
    """Events a second that others put in, as far as known."""


class ShadowQueue:
    """One queue.

    Consumers do the same work before both queues while both have something. `_missed` is what those before the queue
    that would be there would not have done, because it was empty when the real one was not: it is still there later,
    and is done when the real consumers have nothing to do.
    """

    def __init__(self) -> None:
        self._missed = 0.0
        self._taken = 0.0
        """Messages a second that the consumers take while there are some; 0: never seen."""
        self._last: QueueLook | None = None

    def look(self, real: QueueLook, held: float) -> int:
        """Return how many messages would be ready, if `held` of those sent were still in the log."""
        last = self._last
        if last is None or real.at > last.at:
            self._last = real
            if last is not None:
                self._learn(last, real)
        self._missed = max(0.0, held - real.ready, self._missed)
        return max(0, round(real.ready - held + self._missed))

    def _learn(self, last: QueueLook, real: QueueLook) -> None:
        elapsed = real.at - last.at
        done = max(0.0, real.own - last.own + real.others * elapsed - (real.ready - last.ready))
        if min(real.ready, last.ready) >= FEWEST:
            weight = 1 - exp(-elapsed / MEMORY) if self._taken else 1.0
            self._taken += weight * (done / elapsed - self._taken)
        elif not real.ready:
            # Never seen to be busy: then they take whatever comes, for all that is known.
            idle = max(0.0, self._taken * elapsed - done) if self._taken else inf
            self._missed = max(0.0, self._missed - idle)
