"""Which watched queues are asked for their depth now: pure, so that a thousand of them can be tried out in a test.

A queue is hot while something stood in it lately. Hot queues are asked every tick; what is left of the allowed polls,
and a tenth at least, goes round the idle ones. Where even the hot ones are too many, they go round as well.
"""

from collections.abc import Collection
from itertools import islice

HOT_SECONDS = 10.0
"""A queue stays hot for so long after it was last seen with messages in it."""
IDLE_SHARE = 0.1
"""Part of the allowed polls that hot queues leave to the idle ones, however many they are."""
_SAVED_TICKS = 2
"""Allowed polls are saved up for so many ticks at most: no burst after a standstill."""
_ROUNDING = 1e-6


class Rota:
    """Says whose turn it is; `now` is the caller's clock in seconds and must not fall."""

    def __init__(self, queues: Collection[str], interval: float, polls: float) -> None:
        """Begin with everyone's turn; `polls` a second are allowed in all, one tick lasts `interval` seconds."""
        self._interval = interval
        self._polls = polls
        self._most = max(1.0, polls * interval * _SAVED_TICKS)
        self._allowed = float(len(queues))
        self._reserved = 0.0
        """How many of those allowed belong to idle queues."""
        self._since: float | None = None
        # When each was last seen with messages in it; in the order in which they were asked, who waits longest first.
        self._hot: dict[str, float] = {}
        self._idle = dict.fromkeys(queues, float("-inf"))

    def replace(self, queues: Collection[str]) -> None:
        """Ask for others from now on; those that are new have their turn first, of those that stay it is known."""
        wanted = dict.fromkeys(queues)
        new = [queue for queue in wanted if queue not in self._hot and queue not in self._idle]
        self._hot = {queue: at for queue, at in self._hot.items() if queue in wanted}
        self._idle = dict.fromkeys(new, float("-inf")) | {q: at for q, at in self._idle.items() if q in wanted}
        self._allowed += len(new)

    def due(self, now: float) -> list[str]:
        """Return whom to ask in this tick, each at most once; they count as asked."""
        if self._since is not None:
            earned = (now - self._since) * self._polls
            self._allowed = min(self._most, self._allowed + earned)
            self._reserved = min(self._most, self._reserved + earned * IDLE_SHARE)
        self._since = now
        allowed = int(self._allowed + _ROUNDING)
        reserved = min(allowed, len(self._idle), int(self._reserved + _ROUNDING))
        hot = list(islice(self._hot, allowed - reserved))
        idle = list(islice(self._idle, allowed - len(hot)))
        for kind, picked in ((self._hot, hot), (self._idle, idle)):
            for queue in picked:
                kind[queue] = kind.pop(queue)
        self._allowed -= len(hot) + len(idle)
        self._reserved = max(0.0, self._reserved - len(idle))
        return hot + idle

    def tell(self, queue: str, now: float, *, is_deep: bool) -> None:
        """Note what the queue was seen like; one that was replaced while it was asked for is passed over."""
        if queue not in self._hot and queue not in self._idle:
            return
        was_hot = queue in self._hot
        source = self._hot if was_hot else self._idle
        deep_at = now if is_deep else source[queue]
        is_hot = now - deep_at <= HOT_SECONDS
        if is_hot is not was_hot:
            del source[queue]
            source = self._hot if is_hot else self._idle
        source[queue] = deep_at

    def interval(self, queue: str) -> float:
        """Return how many seconds lie between two turns of the queue, as things are now."""
        left = max(self._polls - len(self._hot) / self._interval, self._polls * IDLE_SHARE)
        if queue not in self._hot:
            return max(self._interval, len(self._idle) / left)
        return max(self._interval, len(self._hot) / (self._polls - (left if self._idle else 0)))
