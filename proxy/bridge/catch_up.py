"""What is a backlog, and who pays for it: partitions whose next event was old when it was read (docs/design/0027)."""

from collections.abc import Sequence
from dataclasses import dataclass

from proxy.bridge.throttle import Throttle
from proxy.model import Event


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Where the partitions of an event type stand that have a backlog to catch up with."""

    after: float
    """Seconds: what is older when it is read is old."""
    throttle: Throttle
    """Admits what is old."""
    rank: int
    """What is live of this class, and of those above it, goes first into the lane's window."""

    def is_old(self, events: Sequence[Event], wall: float) -> bool:
        """Return whether records just read begin with an old one; `wall` in seconds since 1970."""
        stamp = events[0].timestamp_ms
        return stamp is not None and stamp < (wall - self.after) * 1000
