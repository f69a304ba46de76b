"""What the whole group has before it, from where it has come and where the log ends."""

import asyncio

import pytest
from structlog.testing import capture_logs

from proxy.bridge.event_log import Extent
from proxy.errors import LogError
from proxy.model import Partition
from proxy.settings import EventType, Route, RoutingKey
from proxy.simulation import virtual_time
from proxy.steering.group_backlog import (
    INTERVAL,
    STALE_AFTER,
    Backlogs,
    ClassBacklog,
    GroupBacklog,
    seconds_to_work_off,
)
from tests.support.bridge_fakes import ScriptedLog

A, B, NEWS = Partition("orders", 0), Partition("orders", 1), Partition("news", 0)


def kind(topic: str, priority: str, max_age: float | None = None, cost: float = 1.0) -> EventType:
    return EventType(
        name=topic,
        topic=topic,
        priority=priority,
        route="shop",
        routing_key=RoutingKey(constant="q"),
        max_age=max_age,
        cost=cost,
    )


def backlog(lag: float, demand: float, cost: float = 1.0) -> ClassBacklog:
    return ClassBacklog(lag, demand, lag * cost, demand * cost)


TYPES = {"orders": kind("orders", "P1"), "news": kind("news", "P3", max_age=20.0)}


def test_lags_and_demands_are_told_by_route_and_class() -> None:
    group = GroupBacklog(TYPES.get)
    group.add(0.0, {A: Extent(0, 100), B: Extent(50, 60), NEWS: Extent(0, 0), Partition("else", 0): Extent(0, 9)})
    assert group.classes(0.0) is None
    group.add(5.0, {A: Extent(90, 200), B: Extent(60, 110), NEWS: Extent(0, 50), Partition("else", 0): Extent(0, 99)})
    assert group.classes(5.0) == {("shop", "P1"): backlog(160, 30.0), ("shop", "P3"): backlog(50, 10.0)}


def test_what_goes_to_each_queue_is_told_of_routes_that_are_told_apart() -> None:
    route = Route.model_validate(
        {
            "exchange": "x",
            "strategy": "min",
            "queues": ["all", {"name": "q", "routing_keys": ["q"]}, {"name": "ads", "event_types": ["ads"]}],
        }
    )
    ads = kind("ads", "P3").model_copy(update={"routing_key": RoutingKey(header="to")})
    group = GroupBacklog((TYPES | {"ads": ads, "far": ads.model_copy(update={"route": "far"})}).get, {"shop": route})
    assert group.queues(0.0) is None
    for now in (0.0, 5.0):
        extents = {A: Extent(0, 100), B: Extent(0, 10), NEWS: Extent(0, 0)}
        extents |= {Partition("ads", 0): Extent(3, 10), Partition("far", 0): Extent(0, 99)}
        group.add(now, {at: Extent(one.committed, one.end + int(now) * 10) for at, one in extents.items()})
    told = group.queues(5.0)
    assert told is not None
    assert {queue: dict(one.classes) for (_, queue), one in told.items()} == {
        "all": {"P1": backlog(210, 20.0), "P3": backlog(107, 20.0)},
        "q": {"P1": backlog(210, 20.0), "P3": backlog(50, 10.0)},
        "ads": {"P3": backlog(57, 10.0)},
    }
    assert {queue: one.unknown for (_, queue), one in told.items()} == {"all": [], "q": ["ads"], "ads": []}
    assert group.queues(5.1 + STALE_AFTER) is None


def test_what_will_be_too_old_anyway_is_no_backlog() -> None:
    group = GroupBacklog(TYPES.get)
    group.add(0.0, {NEWS: Extent(0, 100_000)})
    group.add(5.0, {NEWS: Extent(0, 100_050)})
    assert group.classes(5.0) == {("shop", "P3"): backlog(200.0, 10.0)}


def test_a_backlog_is_worked_off_by_what_it_costs_when_types_differ() -> None:
    group = GroupBacklog({"orders": kind("orders", "P1"), "news": kind("news", "P3", cost=10.0)}.get)
    group.add(0.0, {A: Extent(0, 100), NEWS: Extent(0, 50)})
    group.add(5.0, {A: Extent(0, 150), NEWS: Extent(0, 50)})
    told = {name: one for (_, name), one in (group.classes(5.0) or {}).items()}
    assert told == {"P1": backlog(150, 10.0), "P3": backlog(50, 0.0, cost=10.0)}
    assert seconds_to_work_off(told, ["P1", "P3"], 20.0) == {"P1": pytest.approx(15.0), "P3": pytest.approx(65.0)}


def test_what_a_new_partition_or_a_topic_made_anew_holds_is_no_demand() -> None:
    group = GroupBacklog(TYPES.get)
    group.add(0.0, {A: Extent(9_000, 9_000)})
    group.add(5.0, {A: Extent(0, 500), B: Extent(0, 700)})
    assert group.classes(5.0) == {("shop", "P1"): backlog(1_200, 0.0)}


def test_nothing_is_known_when_the_last_answer_is_old() -> None:
    group = GroupBacklog(TYPES.get)
    group.add(0.0, {A: Extent(0, 0)})
    group.add(5.0, {A: Extent(0, 0)})
    assert group.classes(5.0 + STALE_AFTER) is not None
    assert group.classes(5.1 + STALE_AFTER) is None


def test_the_log_is_asked_every_interval_and_a_failure_is_said_once() -> None:
    async def story() -> None:
        log = ScriptedLog()
        log.told = {A: Extent(0, 100)}
        backlogs = Backlogs(log, lambda: ["orders"], TYPES.get)
        running = asyncio.create_task(backlogs.run())
        await asyncio.sleep(1)
        assert backlogs.of("shop") is None
        await asyncio.sleep(INTERVAL)
        assert backlogs.of("shop") == {"P1": backlog(100, 0.0)}
        assert backlogs.of("another") == {}
        with capture_logs() as said:
            log.failure = LogError("no answer")
            await asyncio.sleep(6 * INTERVAL)
            assert backlogs.of("shop") is None
            log.failure = None
            await asyncio.sleep(2 * INTERVAL)
        assert backlogs.of("shop") is not None
        assert [entry["event"] for entry in said] == ["backlog_unknown"]
        running.cancel()

    virtual_time.run(story())


def test_a_class_waits_for_those_above_it_and_for_ever_when_what_comes_takes_all() -> None:
    backlogs = {"P1": backlog(100, 50.0), "P3": backlog(900, 150.0)}
    assert seconds_to_work_off(backlogs, ["P1", "P2", "P3"], 100.0) == {
        "P1": pytest.approx(2.0),
        "P2": pytest.approx(2.0),
        "P3": float("inf"),
    }
    assert seconds_to_work_off({}, ["P1"], 0.0) == {"P1": 0.0}
