"""When channels on which the broker goes on refusing are opened anew: pure.

A channel of RabbitMQ 3.10 that first publishes to a quorum queue while the queue has no leader asks, for as long as the
channel lives, the node that led it last: if that node is dead every message is nacked at once, if it is silent one in
7 s, whoever leads by now. A fresh channel asks the new leader. A queue that is full refuses, too, and a fresh channel
changes nothing there: so the pauses between two grow, and none costs more than the wait for what is open.
See docs/design/0018-clusters.md.
"""

from dataclasses import dataclass
from math import inf

FIRST_PAUSE = 1.0
"""Seconds of refusals after which channels are opened anew."""
GROWTH = 1.5
"""By which each pause is longer than the one before."""
LONGEST_PAUSE = 8.0
"""Seconds; as often channels are opened anew while a queue stays full."""
QUIET = 5.0
"""Seconds without a nack, but with acks, that end a series: what was nacked is sent again sooner than that."""
FORGOTTEN = 60.0
"""Seconds without a nack after which pauses begin with the first again."""


@dataclass(slots=True)
class Refusals:
    """What one lane remembers, over all its channels."""

    _since: float | None = None
    """Since when the broker has refused, or channels were last opened anew; None: it has not lately."""
    _nacked: float = -inf
    _acked: float = -inf
    _pause: float = FIRST_PAUSE

    def on_nack(self, now: float) -> None:
        """Take note that something was refused."""
        if now - self._nacked > FORGOTTEN:
            self._pause = FIRST_PAUSE
        if self._since is None or (self._acked > self._nacked and now - self._nacked > QUIET):
            self._since = now
        self._nacked = now

    def on_ack(self, now: float) -> None:
        """Take note that something was taken."""
        self._acked = now

    def are_due(self, now: float) -> bool:
        """Return whether the broker has refused for long enough, now and then at least, or takes nothing any more."""
        if self._since is None:
            return False
        latest = self._nacked if self._acked > self._nacked else now
        return latest - self._since >= self._pause

    def begin_anew(self) -> float:
        """Take note that channels are opened anew; return after how many seconds."""
        waited = self._pause
        self._since = None
        self._pause = min(LONGEST_PAUSE, GROWTH * self._pause)
        return waited
