"""How many events a stream may be sent ahead of what is committed. Pure.

What is sent must be committed within a minute, so the window of a type that goes slowly must be small. It begins full:
most types are quick. One of which a batch was held for too long loses its stream, and begins again with what it can
commit in `AHEAD_SECONDS`; one that commits nothing at all begins with a single event, and grows from there.
"""

AHEAD_SECONDS = 20.0
GROWTH = 16
"""From one stream to the next at most."""
_SHORTEST = 0.1


def following(window: int, full: int, committed: int, seconds: float, *, is_overdue: bool) -> int:
    """Return the next stream's window, if one of `window` had so many events committed in so many seconds."""
    if not is_overdue and window >= full:
        return full
    rate = committed / max(seconds, _SHORTEST)
    most = window if is_overdue else window * GROWTH
    return max(1, min(full, most, int(rate * AHEAD_SECONDS)))
