"""What a replica says of its routes: verdicts at ticks of its own, of what is true of the route at that instant.

Under `class_budget` one is written when it says something new or cuts a rate, and once per `ROUTE_MS` (see
docs/metric-log.md); under `per_type` one per `ROUTE_MS`, whatever it says.
"""

from collections.abc import Iterator
from dataclasses import replace

from load.metric_fleet.flow import CUT, USUAL, Blindness, Episode, Flow
from load.metric_fleet.group import Life
from load.metric_fleet.kinds import CLASSES, ROUTES, Route
from load.metric_fleet.plan import ROUTE_MS, TICK_MS
from proxy.records import Verdict

QUIET_MS = 5_000
"""Behind an episode; from then on a verdict may say nothing for want of samples."""
GROWTH = 1.05
"""By which a rate grows in each second behind an episode."""


def verdicts(flow: Flow, life: Life, start_ms: int, end_ms: int, replicas: int) -> Iterator[tuple[int, Verdict]]:
    """Yield the verdicts of a life from one instant to another, with theirs."""
    for route in ROUTES:
        if route.policy == "class_budget":
            for at, cuts in _instants(flow, route, life, start_ms, end_ms):
                yield at, _budget(flow, route, at, cuts, replicas)
        else:
            for at in range(next_tick(life, start_ms, ROUTE_MS), end_ms, ROUTE_MS):
                yield at, _per_type(flow, route, at)


def next_tick(life: Life, t_ms: int, interval_ms: int) -> int:
    """Return the life's first tick at or after an instant."""
    return life.start_ms - (life.start_ms - t_ms) // interval_ms * interval_ms


def _instants(flow: Flow, route: Route, life: Life, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield when a verdict is recorded, and how many levels it cuts."""
    said: dict[int, int] = {}
    for one in flow.episodes[route.name]:
        if one.end_ms + TICK_MS < start or one.start_ms > end:
            continue
        cuts = {next_tick(life, at, TICK_MS): len(one.hot_at(at)) for at in one.cuts}
        middle = (one.start_ms + one.end_ms) // 2
        edges = [*(at for stretch in one.stretches for at in stretch), *([middle] if one.hot != one.hotter else [])]
        said |= {next_tick(life, at, TICK_MS): 0 for at in edges} | cuts
    for blind in flow.blindness:
        if blind.route == route.name:
            said |= {next_tick(life, at, TICK_MS): 0 for at in (blind.start_ms, blind.end_ms)}
    news = [at for at in sorted(said) if start <= at < end]
    last = next_tick(life, start, TICK_MS)
    if last not in said and last < end:
        yield last, 0
    for at in [*news, end]:
        for quiet in range(last + ROUTE_MS, at, ROUTE_MS):
            yield quiet, 0
        if at < end:
            yield at, said[at]
        last = at


def _is_congested(episode: Episode | None, at: int) -> bool:
    return episode is not None and any(start <= at < end for start, end in episode.stretches)


def _is_blind(blindness: list[Blindness], route: str, at: int) -> bool:
    return any(one.route == route and one.start_ms <= at < one.end_ms for one in blindness)


def _budget(flow: Flow, route: Route, at: int, cuts: int, replicas: int) -> Verdict:
    episode = flow.episode_at(route.name, at)
    drain = flow.capacity(route.name, at).drain
    said = Verdict(
        route=route.name,
        congested=False,
        cause="none",
        p50_us=1_450.0,
        errors=0,
        samples=20,
        cuts=0,
        hot=[],
        drain_rate=drain,
        rates={name: round(USUAL.drain / replicas * share(episode, name, at), 3) for name in CLASSES[1:]},
    )
    if _is_blind(flow.blindness, route.name, at):
        return replace(said, congested=None, cause="blind")
    if episode is None or not _is_congested(episode, at):
        delay = 5_000 + at // TICK_MS * 37 % 15_000
        return replace(
            said,
            queue_delay_us=delay,
            depth=round(drain * delay / 1e6),
            ruled_by=_ruling(route, None, delay),
            queues=_queues(route, None, delay),
        )
    seen = episode.delay_us or None
    return replace(
        said,
        congested=True,
        cause=episode.cause,
        errors=3 if episode.cause == "nacks" else 0,
        cuts=cuts,
        hot=[name for name in CLASSES if name in episode.hot_at(at)],
        queue_delay_us=seen,
        drain_rate=0.0 if episode.cause == "no_consumers" else drain,
        depth=None if seen is None else round(drain * seen / 1e6),
        ruled_by=_ruling(route, episode, seen or 0),
        queues=_queues(route, episode, seen or 0),
        unbound={route.queues[0]: "absent"} if episode.cause == "no_consumers" else None,
    )


def _ruling(route: Route, episode: Episode | None, delay: int) -> str | None:
    """Return the queue that rules; while all is well the one that is slower just now."""
    if len(route.queues) < 2:
        return None
    return route.queues[delay % 2] if episode is None else episode.ruled_by


def _queues(route: Route, episode: Episode | None, delay: int) -> dict[str, int | None] | None:
    ruling = _ruling(route, episode, delay)
    return None if ruling is None else {name: delay if name == ruling else 4_000 for name in route.queues}


def share(episode: Episode | None, priority: str, at: int) -> float:
    """Return which share of the full rate a class has left."""
    if episode is None:
        return 1.0
    left = CUT ** sum(1 for cut in episode.cuts if cut <= at and priority in episode.hot_at(cut))
    return float(min(1.0, left * GROWTH ** max(0.0, (at - episode.end_ms) / 1000)))


def _per_type(flow: Flow, route: Route, at: int) -> Verdict:
    episode = flow.episode_at(route.name, at)
    is_congested = _is_congested(episode, at)
    is_quiet = episode is None or at > episode.end_ms + QUIET_MS
    says_nothing = is_quiet and at // ROUTE_MS % 17 == 0
    cause = episode.cause if episode is not None and is_congested else "none"
    return Verdict(
        route=route.name,
        congested=None if says_nothing else is_congested,
        cause="too_few_samples" if says_nothing else cause,
        p50_us=61_000.0 if cause == "latency" else 1_450.0,
        errors=3 if cause == "errors" else 0,
        samples=4 if says_nothing else 200,
        threshold_us=50_000.0,
        threshold_errors=0.0,
        min_samples=10,
    )
