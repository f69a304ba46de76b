"""What the page draws over time is what a made-up fleet did in each stretch, by the model it was made from."""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from load.metric_fleet import Plan, faults, make
from load.metric_fleet.fleet import Fleet
from load.metric_fleet.flow import USUAL
from load.metric_fleet.group import Ending, Life
from load.metric_fleet.kinds import CLASSES, ROUTES
from load.metric_fleet.plan import ROUTE_MS, START_MS, TICK_MS, TYPE_MS
from load.metric_fleet.samples import BEHIND_S, Pools, level_of, percentiles
from load.metric_fleet.verdicts import share
from proxy.reports import activity, timeline
from proxy.reports.files import log_files
from proxy.reports.latency import merged
from proxy.reports.records import Records, by_kind, read_lines, with_kind

PLAN = Plan(types=18, active=16, minutes=5.0, seed=4, events=True, faults=faults(["crash", "congestion", "scaled"]))
FLEET = Fleet(PLAN)
WIDTH_S = 5
IN_FLIGHT = 37
"""Of each process on each route, always."""
BUCKET = 1 / 128


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("fleet") / "logs"
    make(found, PLAN, 1)
    return found


@pytest.fixture(scope="module")
def records(spark: Any, folder: Path) -> Iterator[Records]:
    lines = with_kind(read_lines(spark, {"fleet": log_files([str(folder)])})).persist()
    yield Records(by_kind(lines), {"fleet": START_MS})
    lines.unpersist()


def told(life: Life, interval_ms: int) -> list[int]:
    """The instants up to which a process tells of an interval, and the one from which it does."""
    found = list(range(life.start_ms, life.end_ms + 1, interval_ms))
    return found if life.ending is Ending.KILLED or found[-1] == life.last_ms else [*found, life.last_ms]


def stretch_of(at_ms: int, width_s: int = WIDTH_S) -> int:
    """An interval belongs to the stretch in which it ends."""
    return -(-at_ms // (1000 * width_s)) - 1


def middle(row: dict[str, Any]) -> int:
    return int(row["t_s"] // WIDTH_S)


def ends(life: Life) -> dict[int, int]:
    """The last instant of each stretch at which a process tells of itself."""
    return {stretch_of(at): at for at in told(life, ROUTE_MS)[1:]}


def test_as_much_was_received_and_confirmed_in_each_stretch_as_partitions_moved(
    records: Records, rows: Any, facts: Any
) -> None:
    moved: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for life in FLEET.lives:
        instants = told(life, ROUTE_MS)
        for epoch in FLEET.epochs[life.number]:
            done, read = ([place(at, FLEET.flow) for at in instants] for place in (epoch.position, epoch.read))
            for number, at in enumerate(instants[1:]):
                of = moved[epoch.log.kind.priority, stretch_of(at)]
                of["confirmed"] += done[number + 1] - done[number]
                of["received"] += read[number + 1] - read[number]
    classes = facts(records, "traffic").where("source = 'class'")
    found = {
        (row["class"], middle(row)): [row["received_rate"], row["confirmed_rate"]]
        for row in rows(activity.traffic_over_time(classes, WIDTH_S))
    }
    wanted = {
        (name, number): [round(moved[name, number][count] / WIDTH_S, 3) for count in ("received", "confirmed")]
        for name in CLASSES
        for life in FLEET.lives
        for number in ends(life)
    }
    assert found == wanted


def test_the_lag_of_each_stretch_is_what_lay_in_the_log_at_its_last_look(
    records: Records, rows: Any, facts: Any
) -> None:
    wanted = Counter[tuple[str, int]]()
    for life in FLEET.lives:
        for number, at in ends(life).items():
            for epoch in FLEET.epochs[life.number]:
                owns = epoch.begin_ms <= at <= epoch.end_ms
                lag = epoch.log.end(at) - epoch.position(at, FLEET.flow) if owns else 0
                wanted[epoch.log.kind.priority, number] += lag
    last = rows(timeline.last_over_time(facts(records, "last"), WIDTH_S))
    found = {(row["class"], middle(row)): row["whole"] for row in last if row["measure"] == timeline.LAG}
    assert found == {(name, number): wanted[name, number] for name, number in found}
    assert wanted.keys() <= found.keys()
    assert max(found.values()) > 50


def test_the_rates_of_each_stretch_are_what_cuts_and_growth_had_left(records: Records, rows: Any, facts: Any) -> None:
    least, most = Counter[tuple[str, str, int]](), Counter[tuple[str, str, int]]()
    full = USUAL.drain / PLAN.replicas
    for life in FLEET.lives:
        for number in ends(life):
            end = min(1000 * WIDTH_S * (number + 1), life.end_ms)
            # A verdict is written once a second at least.
            looks = range(max(life.start_ms, end - ROUTE_MS - TICK_MS), end + 1, TICK_MS)
            for route in (one for one in ROUTES if one.policy == "class_budget"):
                for name in CLASSES[1:]:
                    left = [full * share(FLEET.flow.episode_at(route.name, at), name, at) for at in looks]
                    least[route.name, name, number] += min(left)
                    most[route.name, name, number] += max(left)
    last = rows(timeline.last_over_time(facts(records, "last"), WIDTH_S))
    found = {(row["route"], row["class"], middle(row)): row["value"] for row in last if row["measure"] == timeline.RATE}
    # What is said in the very instant at which a run begins is of the stretch before it.
    assert {at for at in found if at[2] >= 0} == least.keys()
    assert {at: found[at] for at in least if not least[at] - 0.01 <= found[at] <= most[at] + 0.01} == {}
    assert min(found.values()) < full


def test_what_is_in_flight_is_each_replicas_and_consumers_are_everybodys(
    records: Records, rows: Any, facts: Any
) -> None:
    found = {
        (row["route"], middle(row)): (row["in_flight"], row["consumers"])
        for row in rows(activity.routes_over_time(facts(records, "in flight"), WIDTH_S))
    }
    running = Counter(number for life in FLEET.lives for number in ends(life))
    first: dict[int, int] = {}
    for life in FLEET.lives:
        for at in told(life, ROUTE_MS)[1:]:
            first[stretch_of(at)] = min(at, first.get(stretch_of(at), at))
    assert found == {
        (route.name, number): (IN_FLIGHT * count, FLEET.flow.capacity(route.name, first[number]).consumers)
        for route in ROUTES
        for number, count in running.items()
    }
    assert len(set(found.values())) > 2


def test_an_event_type_is_as_slow_in_each_stretch_as_it_was_behind(records: Records, rows: Any, facts: Any) -> None:
    width_s = 4 * WIDTH_S
    calm_us = max(Pools(PLAN).bridge(0)[0].values)
    confirmed = Counter[tuple[str, int]]()
    levels: dict[tuple[str, int], list[float]] = defaultdict(list)
    for life in FLEET.lives:
        instants = told(life, TYPE_MS)
        for epoch in FLEET.epochs[life.number]:
            kind = epoch.log.kind
            for since, at in pairwise(instants):
                of = kind.name, stretch_of(at, width_s)
                count = epoch.position(at, FLEET.flow) - epoch.position(since, FLEET.flow)
                if count and kind.has_stamps:
                    confirmed[of] += count
                    looks = range(since + ROUTE_MS, at + 1, ROUTE_MS)
                    behind = (FLEET.flow.delay_s(kind.route, epoch.log.rank, look) for look in (*looks, at))
                    levels[of] += [BEHIND_S[level_of(one)] for one in behind]
    latencies = facts(records, "latencies")
    found = rows(activity.types_over_time(latencies, activity.slowest_types(merged(latencies)), width_s))
    assert {(row["type"], int(row["from_s"] // width_s)): row["confirmed"] for row in found} == confirmed
    slow = 0
    for row in found:
        some = levels[row["type"], int(row["from_s"] // width_s)]
        assert 500 * min(some) <= row["p99_ms"] <= (1500 * max(some) + calm_us / 1000) * (1 + BUCKET)
        slow += min(some) > 0
    assert slow


def test_consumed_time_is_that_of_the_events_of_each_stretch(
    records: Records, rows: Callable[[Any], list[dict[str, Any]]], folder: Path
) -> None:
    times: dict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    (path,) = folder.rglob("*consumers*.gz")
    for line in gzip.decompress(path.read_bytes()).splitlines():
        one = json.loads(line)
        times[one["class"], stretch_of(one["at_ms"] - START_MS)][one["at_ms"] - one["event_ms"]] += 1
    found = rows(activity.consumed_time_over_time(records.of("consumed"), WIDTH_S))
    names = {"samples": "samples", "p50_ms": "p50_us", "p99_ms": "p99_us", "p999_ms": "p999_us", "max_ms": "max_us"}
    assert {(row["class"], middle(row)): {name: row[name] for name in names} for row in found} == {
        of: {name: percentiles(some)[raw] for name, raw in names.items()} for of, some in times.items()
    }
    assert len(found) > 150
