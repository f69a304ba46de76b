"""Whether the broker itself is slow: confirm latency against what was learned of it.

As CoDel (RFC 8289) does, the *shortest* latency of an interval is judged: one quick confirm proves that nothing stands
in the way. What is normal is the smallest of these seen in the last minute, for windows about as full as now: with more
in flight the same broker takes longer.
"""

from collections import deque

INTERVAL = 0.5
"""Seconds over which the shortest latency is taken."""
MEMORY = 60.0
"""Seconds for which a shortest latency counts as normal."""
RATIO = 5.0
FLOOR = 0.05
"""Slow is above both: so many times what is normal, and so many seconds, which scheduling alone may cost."""


class Baseline:
    """Learns from acks only: a nack is faster than an ack."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._shortest: float | None = None
        self._in_flight = 0
        self._normal: deque[tuple[float, int, float]] = deque()
        """When, bits of the events in flight, shortest latency."""
        self.is_slow = False

    def add(self, now: float, latency: float | None, in_flight: int) -> None:
        """Take in the shortest latency since the last call, in seconds; None if nothing was confirmed."""
        if self._began is None:
            self._began = now
        if latency is not None and (self._shortest is None or latency < self._shortest):
            self._shortest, self._in_flight = latency, in_flight
        if now - self._began < INTERVAL:
            return
        if self._shortest is None:
            self.is_slow = False
        else:
            self._judge(now, self._shortest, self._in_flight.bit_length())
        self._began, self._shortest = now, None

    def _judge(self, now: float, shortest: float, fullness: int) -> None:
        while self._normal and self._normal[0][0] < now - MEMORY:
            self._normal.popleft()
        normal = min((seen for _, full, seen in self._normal if abs(full - fullness) <= 1), default=shortest)
        self._normal.append((now, fullness, shortest))
        self.is_slow = shortest > max(FLOOR, RATIO * normal)
