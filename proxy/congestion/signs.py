"""What speaks against sending without a word of any queue: a stop, refusals, slow confirms."""

from collections import deque
from collections.abc import Sequence
from enum import StrEnum

from proxy.congestion.baseline import Baseline
from proxy.congestion.drain_rate import FAST
from proxy.congestion.reading import Reading

MOST_NACKS = 0.01
"""Share of the outcomes."""
OLDEST = 2.0
"""An event unconfirmed for so many seconds, and for twice the longest that ever came back, stops the route."""
LONGEST_SEEN = 10.0
"""What came back later than so many seconds is no measure of what is usual."""
PATIENCE = 0.5
"""Seconds until a sign that tells nothing of classes is held against the next class above."""


class Sign(StrEnum):
    """What a verdict rests on, the strongest first."""

    BLOCKED = "blocked"
    UNCONFIRMED = "unconfirmed"
    NO_CONSUMERS = "no_consumers"
    UNACKED = "unacked"
    DEPTH = "depth"
    NACKS = "nacks"
    LATENCY = "latency"
    BLIND = "blind"
    NONE = "none"


class Signs:
    """Of one route with so many levels."""

    def __init__(self, levels: int) -> None:
        self._levels = levels
        self._baseline = Baseline()
        self._outcomes: deque[tuple[float, int, int]] = deque()
        self._oldest = 0.0
        self._longest = 0.0
        self._suspicious_since: float | None = None

    def look(self, reading: Reading) -> None:
        """Take the reading in."""
        self._baseline.add(reading.at, reading.latency, reading.in_flight)
        self._outcomes.append((reading.at, sum(reading.confirmed), reading.failed))
        while len(self._outcomes) > 1 and self._outcomes[1][0] <= reading.at - FAST:
            self._outcomes.popleft()

    def stop(self, reading: Reading) -> Sign | None:
        """Return why nothing may be sent; None: it may."""
        if not reading.can_publish:
            return Sign.BLOCKED
        if reading.oldest < self._oldest:
            self._longest = max(self._longest, min(self._oldest, LONGEST_SEEN))
        self._oldest = reading.oldest
        return Sign.UNCONFIRMED if reading.oldest > max(OLDEST, 2 * self._longest) else None

    def suspicion(self, now: float, own: Sequence[float]) -> tuple[Sign, tuple[bool, ...]]:
        """Return the sign and the levels that are hot by it; `own` is what this replica sends, by class.

        As it tells nothing of classes it is held against the lowest that sends, then one more after each wait.
        """
        sign = Sign.NACKS if self._has_nacks() else Sign.LATENCY if self._baseline.is_slow else Sign.NONE
        if sign is Sign.NONE:
            self._suspicious_since = None
            return sign, (False,) * self._levels
        if self._suspicious_since is None:
            self._suspicious_since = now
        sending = [rank for rank, rate in enumerate(own) if rate > 0] or [self._levels - 1]
        reach = 1 + int((now - self._suspicious_since) / PATIENCE)
        highest = sending[max(0, len(sending) - reach)]
        return sign, tuple(rank >= highest for rank in range(self._levels))

    def _has_nacks(self) -> bool:
        (_, confirmed, nacked), (_, confirmed_now, nacked_now) = self._outcomes[0], self._outcomes[-1]
        nacks = nacked_now - nacked
        return nacks > MOST_NACKS * (confirmed_now - confirmed + nacks)
