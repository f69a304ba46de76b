"""How long an event that is not done with still has in the log: pure.

Kafka drops whole segments of a partition, the oldest first, and never because anybody has read them:

- by time, once the *newest* timestamp in a segment is older than `retention.ms`. So no event goes before its own
  timestamp + `retention.ms`; it goes later by what its segment spans, and by up to one look of the broker (5 minutes
  unless set otherwise).
- by size, once what stands behind a segment is at least `retention.bytes`. So no event goes before so much stands
  behind it; it goes later by up to a segment.

Both are bounds from below, and `left` is the lesser: nothing goes before. It says nothing of how much later.
"""

from math import inf
from typing import NamedTuple

from proxy.model import Retention

OVERHEAD = 70
"""Bytes that the log keeps of an event beside key, value and headers, at most: a batch of its own for each event."""
MOST_OF_FULL = 0.5
"""An event is not near its end before it has lived so much of what the log gives it: topics that keep little would be
alarming for ever."""
RELIEF = 1.5
"""So many times the time that is near is far again: hysteresis."""


class Span(NamedTuple):
    """Of the oldest event of a partition that is not done with, in seconds."""

    left: float
    """It is not dropped before; 0: it may be at any time. Infinite: never, or nothing is left to do."""
    full: float
    """What an event that is written now has, if as much comes as now."""

    def is_near(self, within: float, *, was: bool) -> bool:
        """Return whether less than `within` seconds are left; who `was` near stays so until it is far again."""
        bound = min(within, MOST_OF_FULL * self.full)
        return self.left < (RELIEF * bound if was else bound)


def event_bytes(size: float | None, held: int | None, retention: Retention) -> float | None:
    """Return what an event takes in the log, rather too much; None: not known.

    `size` is what it has in bytes when it is read, which compression makes less of; `held` how many positions the log
    holds of the partition. It never holds more than `retention.bytes` and a segment beyond, but for what came since the
    broker looked last, which tells the least compressed size that is possible.
    """
    read = None if size is None else size + OVERHEAD
    if retention.bytes is None or not held:
        return read
    most = (retention.bytes + (retention.segment_bytes or 0)) / held
    return most if read is None else min(read, most)


def span(age: float | None, lag: int, arrivals: float, size: float | None, retention: Retention) -> Span:
    """Return what the oldest event not done with still has.

    `age` is its age in seconds (None: not known), `lag` how many positions are not done with, `arrivals` how many come
    in a second, `size` what each takes in the log in bytes (None: not known).
    """
    by_time = retention.seconds if retention.seconds is not None else inf
    growth = arrivals * size if size is not None else 0.0
    by_size = inf if retention.bytes is None or not growth else retention.bytes / growth
    full = min(by_time, by_size)
    if not lag:
        return Span(inf, full)
    left = inf if age is None else max(0.0, by_time - age)
    if retention.bytes is not None and size is not None:
        room = retention.bytes - lag * size
        left = min(left, 0.0 if room <= 0 else room / growth if growth else inf)
    return Span(left, full)
