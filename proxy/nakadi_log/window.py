"""How many events a stream may be sent ahead of what is committed. Pure.

What is sent must be committed in time, so the window of a type that goes slowly must be small. It begins full: most
types are quick. One of which a batch was held for too long loses its stream, and begins again with what it can commit
in half of that time; one that commits nothing at all begins with a single event, and grows from there.
"""

HOLD_SHARE = 2 / 3
"""Of the commit timeout a batch is held, then let go: the rest is for a lease, a drain and a last commit."""
_AHEAD_SHARE = 1 / 3
"""... and so much of it a window should take."""
GROWTH = 16
"""From one stream to the next at most."""
_SHORTEST = 0.1


def following(window: int, full: int, committed: int, seconds: float, *, timeout: float, is_overdue: bool) -> int:
    """Return the next stream's window, if one of `window` had so many events committed in so many seconds.

    `timeout` is the time in which all must be committed, in seconds.
    """
    if not is_overdue and window >= full:
        return full
    rate = committed / max(seconds, _SHORTEST)
    most = window if is_overdue else window * GROWTH
    return max(1, min(full, most, int(rate * timeout * _AHEAD_SHARE)))
