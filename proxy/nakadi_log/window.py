"""How many events a stream may be sent ahead of what is committed. Pure.

What is sent must be committed in time, so the window of a type that goes slowly must be small, and nobody knows
beforehand which one does. It begins with `FIRST`, and follows what is settled: it takes an eighth of the commit
timeout, so a type may become five times as slow before it has to let go. One of which a batch was held for too long
begins again with what it did commit; one that committed nothing begins with a single event.

A stream with less than the full window ends by itself (`stream_limit`), and Nakadi sends not one event beyond that,
whatever is committed: nothing is sent in vain, and the next one goes on at once with a window that fits better.
"""

from proxy.nakadi_log.session import Pace, Session

FIRST = 256
"""The first stream's."""
HOLD_SHARE = 2 / 3
"""Of the commit timeout a batch is held, then let go: the rest is for a lease, a drain and a last commit."""
AHEAD_SHARE = 1 / 8
"""... and so much of it a window should take."""
GROWTH = 16
"""From one stream to the next at most."""
ROUNDS = 16
"""Windows in a stream whose window is what was proved: at an eighth of the commit timeout each, twice as long as that.
One with an unproved window ends after the first."""
_SHORTEST = 0.1
_PROOF = 1.0
"""Seconds: what was settled in less says nothing of more than `FIRST` events. Queues take a first burst at once."""
_QUICK_SHARE = 1 / 3
"""What so short a time seems to prove may take so much of the commit timeout: the next one proves it."""


class Window:
    """One event type's, from stream to stream."""

    def __init__(self, first: int, full: int) -> None:
        self.events = min(first, full)
        self._full = full
        self._is_proved = False

    @property
    def limit(self) -> int | None:
        """After how many events the next stream is to end; None: it is not."""
        return None if self.events >= self._full else self.events * (ROUNDS if self._is_proved else 1)

    def learn(self, session: Session, pace: Pace, *, timeout: float, is_overdue: bool) -> None:
        """Choose the next one by what a stream has shown in its last seconds."""
        if not (is_overdue or session.was_full):
            self._is_proved = self._is_proved or session.is_spent
            return
        before = self.events
        self.events = following(before, self._full, *pace, timeout=timeout, is_overdue=is_overdue)
        self._is_proved = not is_overdue and self.events < 2 * before


def following(window: int, full: int, settled: int, seconds: float, *, timeout: float, is_overdue: bool) -> int:
    """Return the next stream's window, if one of `window` that was full had so many events settled in so many seconds.

    `timeout` is the time in which all must be committed, in seconds.
    """
    fitting = settled * timeout * AHEAD_SHARE / max(seconds, _PROOF)
    if seconds < _PROOF:
        fitting = max(fitting, min(FIRST, settled * timeout * _QUICK_SHARE / max(seconds, _SHORTEST)))
    most = window if is_overdue else window * GROWTH
    return max(1, min(full, most, int(fitting)))
