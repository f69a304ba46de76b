"""How work comes and how congestion holds it back: closed forms of time, so that any part is made without the rest.

A fluid model. `work` says how many seconds' worth of events have come by an instant: a wave of an hour about an even
stream. An episode of congestion on a route delays a class: while it lasts the delay grows by `slope` seconds a second,
behind it falls by one a second. What a partition is done with at `t` is what had come at `t` less the delay.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import cos, sin, tau
from random import Random
from typing import NamedTuple

from load.metric_fleet.kinds import CLASSES, ROUTES
from load.metric_fleet.plan import TICK_MS, Fault, Plan

_WAVE_S = 3600.0
_WAVE = 0.4
"""By which share the stream is faster on the crest."""
CUT_MS = 400
"""Between two cuts while a level is over its threshold."""
CUT = 0.8
"""What a cut leaves of a rate."""
INBOX_S = 2.0
"""So much of the backlog is read ahead and waits in inboxes."""
_FIRST_MS = 45_000
_BUDGET_CAUSES = ("depth", "unacked", "blocked", "no_consumers", "unconfirmed", "nacks", "depth", "latency")
_STOPPING = {"blocked", "no_consumers", "unconfirmed"}
"""Nothing gets through."""


def work(t_ms: float) -> float:
    """Return the seconds' worth of events that have come by an instant; negative before 0."""
    t = t_ms / 1000
    return t + _WAVE * _WAVE_S / tau * (1 - cos(tau * t / _WAVE_S))


def work_at(seconds: float) -> int:
    """Return the millisecond before so many seconds' worth of events have come (Newton's method)."""
    t = seconds
    for _ in range(8):
        t -= (work(1000 * t) - seconds) / (1 + _WAVE * sin(tau * t / _WAVE_S))
    return int(1000 * t // 1) - 1


@dataclass(frozen=True)
class Episode:
    """A route was congested, from when to when and why."""

    route: str
    start_ms: int
    end_ms: int
    cause: str
    ruled_by: str | None
    hot: tuple[str, ...]
    """Classes over their threshold from the beginning, the least first."""
    hotter: tuple[str, ...]
    """... and from the middle on."""
    delay_us: int
    """Of the queue that rules, all the time; 0: not known."""
    stretches: tuple[tuple[int, int], ...]
    """When it was said to be congested: all of it, or, under steady control, again and again."""
    slopes: tuple[float, ...]
    """Seconds by which each class falls behind in a second."""

    def hot_at(self, t_ms: int) -> tuple[str, ...]:
        """Return which classes are over their threshold."""
        return self.hot if t_ms < (self.start_ms + self.end_ms) // 2 else self.hotter

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """Return the instants of its cuts: in the first half of each stretch, by `CUT_MS`; a replica cuts a tick on."""
        if not self.hot:
            return ()
        return tuple(t for start, end in self.stretches for t in range(start, (start + end + 1) // 2, CUT_MS))

    def drained_ms(self, rank: int) -> int:
        """Return when a class has no backlog left of it."""
        return self.end_ms + round(self.slopes[rank] * (self.end_ms - self.start_ms))


@dataclass(frozen=True)
class Blindness:
    """A route was not seen."""

    route: str
    start_ms: int
    end_ms: int


class Capacity(NamedTuple):
    """Of a route."""

    consumers: int
    drain: float
    """Events a second that these take."""


USUAL = Capacity(4, 400.0)
SCALED = Capacity(6, 520.0)
"""Two more, each of which brings three fifths of what the others do."""


class Flow:
    """Delays of every route and class."""

    def __init__(self, plan: Plan) -> None:
        self.episodes = {route.name: _episodes(plan, route.name) for route in ROUTES}
        self.scaled_ms = round(plan.end_ms * 0.6) if plan.has(Fault.SCALED) else None
        """When consumers were added to the route `main`."""
        self.blindness = _blindness(plan, self.episodes["bulk"])
        self._starts = {name: [one.start_ms for one in found] for name, found in self.episodes.items()}

    def delay_s(self, route: str, rank: int, t_ms: float) -> float:
        """Return by how many seconds a class is behind what comes."""
        at = bisect_right(self._starts[route], t_ms) - 1
        if at < 0:
            return 0.0
        one = self.episodes[route][at]
        slope = one.slopes[rank]
        if t_ms < one.end_ms:
            return slope * (t_ms - one.start_ms) / 1000
        return max(0.0, slope * (one.end_ms - one.start_ms) - (t_ms - one.end_ms)) / 1000

    def capacity(self, route: str, t_ms: int) -> "Capacity":
        """Return the consumers of a route at an instant, while they are there."""
        is_scaled = route == "main" and self.scaled_ms is not None and t_ms >= self.scaled_ms
        return SCALED if is_scaled else USUAL

    def episode_at(self, route: str, t_ms: int) -> Episode | None:
        """Return the episode that lasts or was the last before; None before the first."""
        at = bisect_right(self._starts[route], t_ms) - 1
        return self.episodes[route][at] if at >= 0 else None

    def is_calm(self, t_ms: int) -> bool:
        """Return whether nothing is behind anywhere."""
        return not any(self.delay_s(route.name, rank, t_ms) for route in ROUTES for rank in range(len(CLASSES)))


def _episodes(plan: Plan, route: str) -> list[Episode]:
    """Return a route's episodes in order; each is drained before the next begins."""
    found: list[Episode] = []
    chance = plan.chance("episodes", route)
    if plan.has(Fault.SAW) and route == "main":
        found.append(_saw(_FIRST_MS))
    if not plan.has(Fault.CONGESTION):
        return found
    start = found[-1].end_ms + 90_000 if found else _FIRST_MS + chance.randrange(20_000)
    while True:
        one = _episode(chance, route, start // TICK_MS * TICK_MS + 7, len(found))
        free = max(one.drained_ms(rank) for rank in range(len(CLASSES)))
        if free > plan.end_ms - 30_000:
            return found
        found.append(one)
        start = free + (60_000 if len(found) < 3 else chance.randrange(60_000, 600_000))


def _episode(chance: Random, route: str, start: int, number: int) -> Episode:
    cause = _BUDGET_CAUSES[number % len(_BUDGET_CAUSES)] if route != "seed" else ("latency", "errors")[number % 2]
    end = start + chance.randrange(80, 500) * TICK_MS
    is_deep = number % 2 == 0
    hot: tuple[str, ...] = ()
    hotter: tuple[str, ...] = ()
    if route == "seed":
        slopes = (0.5, 0.5, 0.5)
    elif cause in _STOPPING:
        slopes = (1.0, 1.0, 1.0)
    else:
        hot, hotter = ("P3",), ("P2", "P3") if is_deep else ("P3",)
        slopes = (0.0, 0.5 if is_deep else 0.0, 0.75)
    has_delay = route != "seed" and cause in {"depth", "nacks", "unacked"}
    queues = next(one.queues for one in ROUTES if one.name == route)
    return Episode(
        route,
        start,
        end,
        cause,
        chance.choice(queues) if has_delay and len(queues) > 1 else None,
        hot,
        hotter,
        chance.randrange(80_000, 2_000_000) if has_delay else 0,
        ((start, end),),
        slopes,
    )


def _saw(start: int) -> Episode:
    """Return a minute at the threshold: congested for 0.4 s, well for 1.6 s, and again."""
    begin = start // TICK_MS * TICK_MS + 13
    stretches = tuple((at, at + 400) for at in range(begin, begin + 60_000, 2_000))
    last = stretches[-1][1]
    return Episode("main", begin, last, "depth", "mail", ("P3",), ("P3",), 95_000, stretches, (0.0, 0.0, 0.25))


def _blindness(plan: Plan, episodes: Sequence[Episode]) -> list[Blindness]:
    """Return when the route `bulk` was not seen: behind its first episode, where nothing else is said of it."""
    if not plan.has(Fault.BLIND):
        return []
    start = episodes[0].end_ms + 3_010 if episodes else _FIRST_MS
    return [Blindness("bulk", start, start + 6_200)]
