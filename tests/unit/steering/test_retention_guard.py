"""Event types near their end in the log: said, recorded, lifted, and let down again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from structlog.testing import capture_logs

from proxy.bridge.event_log import Survey
from proxy.errors import LogError
from proxy.model import Partition, Retention
from proxy.operations.retention import retention_families
from proxy.settings import DEFAULT_CLASSES, EventType, Route
from proxy.simulation import virtual_time
from proxy.steering.retention_guard import ASK, LOOK
from tests.support.events import PARTITION, event
from tests.support.process import TRAITS, Process

KEPT = Retention(100.0, None, None)
LIFTED = DEFAULT_CLASSES["P3"].model_copy(update={"lift_before_loss": 40.0})


def ran(
    story: Callable[[Process], Awaitable[None]],
    *,
    priority: str = "P3",
    topics: int = 1,
    policy: Literal["class_budget", "static"] = "class_budget",
) -> None:
    """Let a process live that reads topics of a class of which nothing is sent, for as long as the test says.

    Half an hour is short under `static`: it does not judge a route twenty times a second.
    """

    async def live() -> None:
        names = ["orders", *(f"more-{number}" for number in range(1, topics))]
        types = {name: EventType(name=name, topic=name, **(TRAITS | {"priority": priority})) for name in names}
        process = Process(
            wall=lambda: 1_000.0 + asyncio.get_running_loop().time(),
            routes={"r": Route(exchange="x", queues=("q1",), policy=policy)},
            classes=DEFAULT_CLASSES | {"P3": LIFTED},
            event_types=types,
            patterns=(),
        )
        process.log.surveyed = Survey(frozenset(names), frozenset(), frozenset())
        process.log.retentions = dict.fromkeys(names, KEPT)
        await asyncio.sleep(0.1)
        await story(process)
        process.lane.finish()
        process.app.stop()
        await process.running

    virtual_time.run(live())


async def left_behind(process: Process, seconds: float) -> None:
    """Have events read that are not done with for so long."""
    process.log.paused |= set(process.app.assignment.on_assigned([PARTITION]))
    process.log.lag = 10
    process.log.fetched = {PARTITION: [event(number, timestamp_ms=1_000_000) for number in range(10)]}
    await asyncio.sleep(seconds)


def phases(process: Process) -> list[tuple[str, str | None]]:
    return [(record["phase"], record["lifted_to"]) for record in process.of("retention")]


def test_a_type_is_named_and_goes_as_the_class_above_when_its_oldest_event_nears_its_end() -> None:
    async def story(process: Process) -> None:
        listener = process.app.assignment.listeners["orders"]
        with capture_logs() as said:
            await left_behind(process, 45)
            assert not phases(process)
            await asyncio.sleep(10)
            assert phases(process) == [("begun", None)]
            assert not listener.is_lifted
            await asyncio.sleep(10)
            assert phases(process) == [("begun", None), ("holds", "P2")]
            assert listener.rank == 1
            assert listener.throttle._tiers.first == 1  # type: ignore[attr-defined]
            assert process.app.retention.near == {"orders": 1}
            told = process.app.retention.spans["orders"]
            assert 30 < told.left < 40
            process.lane.finish()
            process.log.lag = 0
            await asyncio.sleep(2 * LOOK)
        assert phases(process)[2:] == [("ended", None)]
        assert not listener.is_lifted
        assert listener.throttle._tiers.first == 2  # type: ignore[attr-defined]
        assert not process.app.retention.near
        told_in_log = [line["event"] for line in said if line["event"].startswith("retention_")]
        assert told_in_log == ["retention_near", "retention_near", "retention_far"]

    ran(story)


def test_a_type_is_named_and_not_lifted_when_its_class_does_not_ask_for_it() -> None:
    async def story(process: Process) -> None:
        await left_behind(process, 90)
        assert phases(process) == [("begun", None)]
        assert not process.app.assignment.listeners["orders"].is_lifted

    ran(story, priority="P2")


def test_it_is_recorded_once_a_minute_when_it_stays_near() -> None:
    async def story(process: Process) -> None:
        await left_behind(process, 190)
        assert phases(process) == [("begun", None), ("holds", None), ("holds", None)]

    ran(story, priority="P2")


def test_the_log_is_asked_once_in_ten_minutes_for_all_topics_when_there_are_many() -> None:
    async def story(process: Process) -> None:
        process.app.assignment.on_assigned([Partition(name, 0) for name in process.app.assignment.listeners])
        await asyncio.sleep(ASK - 2 * LOOK)
        assert [len(asked) for asked in process.log.asked_for_retention] == [200]
        await asyncio.sleep(4 * LOOK)
        assert [len(asked) for asked in process.log.asked_for_retention] == [200, 200]

    ran(story, topics=200, policy="static")


def test_a_missing_right_is_said_once_and_nothing_is_lifted_when_the_log_refuses_to_tell() -> None:
    async def story(process: Process) -> None:
        process.log.retentions["orders"] = None
        with capture_logs() as said:
            await left_behind(process, 2_000)
        refused = [line for line in said if line["event"] == "retention_refused"]
        assert [(line["topics"], line["log_level"]) for line in refused] == [(1, "info")]
        assert process.app.retention.unknown == {"orders"}
        assert not phases(process)
        families = {one.name: one for one in retention_families(process.app.retention, ())}
        assert families["tidegate_retention_unknown_topics"].samples[0].value == 1

    ran(story, policy="static")


def test_data_flows_and_it_is_said_once_when_the_log_does_not_answer() -> None:
    async def story(process: Process) -> None:
        async def silent(topics: object) -> Any:
            raise LogError(f"no answer about {topics}")

        process.log.retention = silent  # type: ignore[method-assign]
        with capture_logs() as said:
            await left_behind(process, 600)
        assert len(process.lane.written) == 10
        assert [line["event"] for line in said].count("retention_unknown") == 1

    ran(story, policy="static")


def test_a_type_goes_as_its_own_class_again_when_its_partitions_are_given_away() -> None:
    async def story(process: Process) -> None:
        await left_behind(process, 70)
        listener = process.app.assignment.listeners["orders"]
        assert listener.is_lifted
        process.lane.finish()
        await process.app.assignment.on_revoked([PARTITION])
        await asyncio.sleep(2 * LOOK)
        assert not listener.is_lifted
        assert not process.app.retention.near

    ran(story)


def test_metrics_tell_of_classes_when_types_are_near_their_end() -> None:
    async def story(process: Process) -> None:
        await left_behind(process, 70)
        told = {
            (family.name, *sample.labels.values()): sample.value
            for family in retention_families(process.app.retention, process.app.assignment.listeners.values())
            for sample in family.samples
        }
        assert 25 < told["tidegate_retention_left_seconds", "P3"] < 40
        assert told["tidegate_retention_near_partitions", "P3"] == 1
        assert told["tidegate_lifted_types", "P3"] == 1
        assert told["tidegate_retention_unknown_topics",] == 0

    ran(story)
