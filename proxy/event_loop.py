"""uvloop with a clock fine enough to time a confirm.

uvloop tells the time in whole milliseconds, read once per turn of the loop; half a millisecond is what a confirm takes.
All timing in Tidegate uses the loop's clock, so the clock is made precise here, once. Its timers stay millisecond ones
and may fire up to half a millisecond early.
"""

import time

import uvloop


class PreciseLoop(uvloop.Loop):
    """An event loop whose `time` has the resolution of the system's monotonic clock, whose epoch uvloop shares."""

    time = time.monotonic  # itself, for it is asked some 20 times an event
    """Seconds of the monotonic clock."""
