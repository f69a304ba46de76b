"""How wide a lane's window is: so wide that more of it would only make confirms later. Pure: handed `now`.

With a window that is full a confirm takes as long as the way there and back, and what everybody on that way needs for
all that is before it. What passes is the window over that sum; so it comes near its most where the second part is many
times the first. An almost empty window tells the two apart for a few trips; the latency aimed at is so many times the
way, and the width is that latency times what passes. Nothing but acks counts: no ack, no change. See
docs/design/0023-adaptive-window.md.
"""

from collections.abc import Iterable
from math import inf

from proxy.publish_lane.line import Window
from proxy.publish_lane.outcomes import Resolved

FIRST = 100
"""Events in flight to begin with. Larger: sooner at full speed over long links, more duplicates of a short life."""
TIMES = 20.0
"""Latency aimed at: so many times the way there and back, which then costs a twentieth of what would pass without.

Larger: more throughput, and more latency.
"""
LEAST_AIM = 0.06
"""Seconds aimed at at least: turns of everybody on the way cost, too, and an almost empty window does not show it."""
EMPTY = 1, 8
"""Events in flight in the two parts of a measurement: what they differ by is no part of the way."""
TRIPS = 6
"""Trips there and back with each."""
EVERY = 20.0
"""Seconds between two measurements, while the window is full."""
ROUND = 0.05
"""Seconds that a round lasts at least; and at least one trip."""
STEP = 2.0
"""A window becomes so many times as wide, or as narrow, within a round at most."""
WEIGHT = 0.2
"""Of the newest round in what passes: what lasts for a round or two is chance."""
COMPARED = 1.25
"""So many times as wide, or as narrow, a window is compared with what it was: whether what passes has followed."""
OWN = 1.25
"""If so, so many times what confirms take of their own accord is aimed at, until the next measurement."""
GAP = 0.2
"""Seconds without a look after which what is under way says nothing: the broker blocked, or this process stood."""


class WindowLaw:
    """Of one connection, begun at `now`: sets how many events may be in flight, from 1 to what the window began with.

    Of a window that does not adapt it sets nothing, and takes in nothing.
    """

    def __init__(self, window: Window, now: float) -> None:
        self._window = window
        self._width = min(FIRST, window.most)
        self._way: float | None = None
        """Seconds there and back without any queue; None: not measured yet."""
        self._measured = -inf
        """When that was measured last."""
        self._empty = 0
        """Events in flight in the part of a measurement that is on its way; 0: none is."""
        self._alone = 0.0
        """Seconds of a trip in its first part."""
        self._pace = inf
        """Seconds for each event, smoothed; infinite until the window has met its aim once."""
        self._before = 1, inf
        """Width and pace that others are compared with."""
        self._own = 0.0
        """Seconds that confirms take of their own accord, however narrow the window; 0: not known to."""
        self._looked = now
        self._begin(now)

    def _begin(self, now: float) -> None:
        """Begin a round: what was written before it does not count, so neither does how long it was held up."""
        self._began = now
        self._since = self._until = inf
        """What is written from the first instant to the second counts: it meets the window's effect."""
        self._is_over = self._is_refused = False
        self._seconds, self._count = 0.0, 0

    def on_confirm(self, resolved: Iterable[Resolved], *, acked: bool, now: float) -> None:
        """Take in what was acked; or nacked, which says only that more in flight would be nacked as well."""
        if not self._window.adapts:
            return
        self._is_refused |= not acked
        for one in resolved:
            seconds = one.seconds
            if not acked or seconds is None or now - seconds < self._began:
                continue
            written = now - seconds
            if self._since == inf:
                self._since, self._until = now, now + max(ROUND, seconds)
            elif written >= self._until and not self._empty:
                self._is_over = True
            elif written >= self._since:
                self._seconds += seconds * (one.end - one.start)
                self._count += one.end - one.start
                self._is_over |= self._count >= TRIPS * self._empty > 0

    def look(self, now: float) -> None:
        """End the round if it is time, and set the window."""
        window = self._window
        if not window.adapts:
            return
        if now - self._looked > GAP:
            self._begin(now)
        self._looked = now
        if self._is_over and self._count:
            if self._empty:
                self._measure(self._seconds / self._count, now)
            elif window.was_full:  # else its width says nothing
                self._judge(self._seconds / self._count, now)
            window.was_full = False
        if self._is_over:
            self._begin(now)
        self._width = min(self._width, window.most)  # it may have been resized
        window.max_events = min(self._empty or self._width, window.most)

    def _judge(self, latency: float, now: float) -> None:
        if self._way is None or now - self._measured >= EVERY:
            self._empty = EMPTY[0]
            return
        aim = max(TIMES * self._way, LEAST_AIM, self._own)
        pace = latency / self._width
        if self._pace == inf and latency <= aim / STEP:
            self._resize(STEP)
            return
        self._pace = pace if self._pace == inf else self._pace + WEIGHT * (pace - self._pace)
        if self._is_no_queue():
            aim = self._own = max(aim, OWN * latency)
        self._resize(aim / self._pace / self._width)

    def _is_no_queue(self) -> bool:
        """Return whether what passes has followed the width: then it is no queue of ours that takes so long."""
        width, pace = self._before
        times = self._width / width
        if 1 / COMPARED < times < COMPARED:
            return False
        self._before = self._width, self._pace
        passes = pace / self._pace
        return passes**2 < times if times < 1 else inf > passes**2 > times

    def _resize(self, times: float) -> None:
        times = max(1 / STEP, min(1.0 if self._is_refused else STEP, times))
        self._width = max(1, min(self._window.most, round(self._width * times)))

    def _measure(self, latency: float, now: float) -> None:
        """End one part of a measurement, in which a trip took `latency` seconds."""
        wide = min(EMPTY[1], self._width)
        if self._empty == EMPTY[0] < wide:
            self._alone, self._empty = latency, wide
            return
        if wide == EMPTY[0]:
            self._alone = latency
        work = max(0.0, latency - self._alone) / max(1, wide - EMPTY[0])
        way = max(0.0, self._alone - work)
        # Nothing is quicker than the way by chance; what is slower may be.
        self._way = way if self._way is None else min(way, (self._way + way) / 2)
        self._measured, self._empty, self._own = now, 0, 0.0
