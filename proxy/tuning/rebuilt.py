"""A scenario of what was recorded: its load, its consumers, its policy and settings; and what had to be assumed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

from proxy.congestion.buckets import quantile
from proxy.reports.files import ReportError
from proxy.simulation.scenario import Expectation, Happening, Queue, Rate, RouteIn, Scenario, Stream
from proxy.tuning.arrivals import Arrivals, arrivals
from proxy.tuning.assumed import assumed
from proxy.tuning.intake import Intake, intake
from proxy.tuning.measured import merged, weighted
from proxy.tuning.recording import Recording

WARM_UP = 15.0
"""Seconds in which the replayed bridge joins its group, finds its rates and works off what it sent meanwhile; they are
measured neither there nor in the recording."""
SHORTEST = 30.0
"""Seconds that a recording must have."""
MODEL_CONFIRM = 0.0005
"""Seconds from write to confirm in the model without a delay, at the median."""
MOST_PARTITIONS = 100
MOST_REPLICAS = 64
LEAST_CAPACITY = 0.1
STILL = 0.01
"""Share of the usual capacity below which consumers stand still."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What is simulated in place of what was."""

    scenario: Scenario
    classes: tuple[str, ...]
    """With events, the most important first."""
    assumed: tuple[str, ...]
    """What the recording does not tell, in words."""


def rebuilt(recording: Recording, goal: float) -> Rebuilt:
    """Return the scenario of a recording; `goal` is what the first class's P99 of consumed time may be, in seconds.

    Raises `ReportError` if it tells too little.
    """
    if recording.seconds < SHORTEST:
        raise ReportError(f"{recording.seconds:.0f} s of records are too few to replay; give {SHORTEST:g} s or more")
    classes = recording.classes
    came = {name: told for name in classes if (told := arrivals(recording, name)) is not None}
    if not came:
        raise ReportError("no class record tells a lag, so what came is not known; was Kafka reached at all?")
    routes = dict.fromkeys(record["route"] for record in recording.of_kind("route"))
    intakes = {name: taken for name in routes if (taken := intake(recording, name)) is not None}
    if not intakes:
        raise ReportError("no route record tells a depth, so what the consumers took is not known; name `queues`")
    settings, policies = steered(recording)
    replicas = _replicas(recording)
    queues = {name: _queue(told, recording.seconds) for name, told in intakes.items()}
    scenario = Scenario(
        name="recorded",
        why="what was recorded",
        seconds=float(int(recording.seconds)),
        warm_up=WARM_UP,
        queues=queues,
        routes={name: RouteIn(queues=(name,), policy=policies.get(name)) for name in intakes},
        streams=dict(_streams(recording, came, list(intakes), replicas)),
        replicas=((),) * replicas,
        confirm_delay=_confirm_delay(recording),
        settings=settings,
        events=tuple(one for one in _events(intakes, queues) if one.at < int(recording.seconds)),
        expect=(Expectation(figure=f"{next(iter(came))}.consumed_p99", at_most=goal, why="the goal"),),
    )
    return Rebuilt(scenario, tuple(came), tuple(assumed(recording, came, intakes)))


def steered(recording: Recording) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the recorded settings as the file has them, and each route's policy, or its law where it has one."""
    start = recording.in_force
    intervals = sorted(record["interval_s"] for record in recording.of_kind("class"))
    told: dict[str, Any] = {"metric_log": {"route_interval": max(0.1, round(intervals[len(intervals) // 2], 2))}}
    if start is None:
        return told, {}
    settings = {"classes": {name: {} for name in start["classes"]}} | json.loads(start.get("settings") or "{}")
    policies = {}
    for name, plan in start["routes"].items():
        own = settings.get("routes", {}).get(name, {})
        own.pop("policy", None)
        policies[name] = own.pop("law", None) or plan["policy"]
    return settings | told, policies


def _queue(told: Intake, seconds: float) -> Queue:
    """Return a queue with the capacity that it mostly had: what its consumers hold in their hands goes by that."""
    ends = [*(second for second, _ in told.capacity[1:]), seconds]
    held = sorted((rate, end - begin) for (begin, rate), end in zip(told.capacity, ends, strict=True))
    return Queue(
        capacity=max(LEAST_CAPACITY, weighted(held, 0.5)),
        consumers=min(1_000, told.consumers),
        bound=None,
        bound_messages=told.bound,
    )


def _events(intakes: dict[str, Intake], queues: dict[str, Queue]) -> Iterator[Happening]:
    for route, told in intakes.items():
        name, rate = route[:100], queues[route].capacity
        for number, (second, value) in enumerate(told.capacity):
            if value != rate:
                to = round(value, 2) if value >= STILL * queues[route].capacity else 0.0
                yield Happening(name=f"{name}.{number}", at=round(second, 2), what="capacity", queue=route, to=to)
            rate = value
        for number, (since, until) in enumerate(told.absent):
            yield Happening(
                name=f"{name}.absent.{number}",
                at=round(since, 2),
                what="consumers",
                queue=route,
                to=0,
                seconds=max(0.01, round(until - since, 2)),
            )


def _streams(
    recording: Recording, came: dict[str, Arrivals], routes: list[str], replicas: int
) -> Iterator[tuple[str, Stream]]:
    for name, told in came.items():
        for route, share in _shares(recording, name, routes).items():
            types, partitions = _types(recording, name, route)
            own = name if len(routes) == 1 else f"{name}.{route}"
            stream = Stream(
                priority=name,
                rate=Rate(points=tuple(_steps(told.rates, share))),
                types=types,
                partitions=min(MOST_PARTITIONS, max(partitions, ceil(replicas / types))),
                size=told.size,
                route=route,
            )
            yield own, stream
            if backlog := round(told.backlog * share):
                rate = Rate(backlog=backlog, age=max(1.0, told.backlog_age))
                yield f"{own}.before", stream.model_copy(update={"rate": rate, "joins": own})


def _steps(rates: tuple[float, ...], share: float) -> Iterator[tuple[float, float]]:
    """Yield the points of a rate that stays for a second each."""
    yield 0.0, rates[0] * share
    for second, (before, rate) in enumerate(pairwise(rates), start=1):
        if rate != before:
            yield float(second), before * share
            yield float(second), rate * share


def _shares(recording: Recording, name: str, routes: list[str]) -> dict[str, float]:
    """Return the share of a class's events that goes over each route."""
    counts = dict.fromkeys(routes, 0)
    for record in recording.of_kind("type"):
        if record["class"] == name and record["route"] in counts:
            counts[record["route"]] += record["received"]
    total = sum(counts.values())
    if not total:
        return {routes[0]: 1.0}
    return {route: count / total for route, count in counts.items() if count}


def _types(recording: Recording, name: str, route: str) -> tuple[int, int]:
    """Return how many event types of a class had events on a route, and how many partitions one of them has at most."""
    types = {
        record["type"] for record in recording.of_kind("type") if record["class"] == name and record["route"] == route
    }
    partitions: dict[str, set[int]] = {}
    for record in recording.of_kind("committed"):
        if record["type"] in types:
            partitions.setdefault(record["type"], set()).update(one["partition"] for one in record["ranges"])
    return max(1, len(types)), max(map(len, partitions.values()), default=1)


def _replicas(recording: Recording) -> int:
    """Return how many processes recorded at the same time, at most."""
    spans = [(recording.at(one[0]), recording.at(one[-1])) for one in recording.by_process("class")]
    return min(MOST_REPLICAS, max(sum(begin <= at <= end for begin, end in spans) for at, _ in spans))


def _confirm_delay(recording: Recording) -> float:
    """Return by how much later than in the model a confirm comes."""
    median = quantile(merged(record["publish_us"] for record in recording.of_kind("route")), 0.5)
    return 0.0 if median is None else min(10.0, max(0.0, median / 1e6 - MODEL_CONFIRM))
