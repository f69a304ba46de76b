"""What the metric log is told: every count in exactly one record, the unknown as unknown."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from proxy.bridge.broker import QueueState
from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.collector import Statistics
from proxy.congestion.detector import Cause, Verdict
from proxy.congestion.reading import QueueReading, Reading
from proxy.errors import LogError
from proxy.model import Outcome, Partition, Reason
from proxy.recording.recorder import Recorder
from proxy.settings import (
    DEFAULT_CLASSES,
    BrokerSettings,
    ClassBudget,
    LogSettings,
    MetricLogSettings,
    Route,
    Settings,
    Slo,
)
from proxy.steering.depths import Depths
from tests.support.bridge_fakes import ScriptedMonitor
from tests.support.events import PARTITION, event, events
from tests.support.world import World, lived

SETTINGS = Settings(
    log=LogSettings(hosts=["kafka:9092"], group="g"),
    broker=BrokerSettings(hosts=["rabbit:5672"]),
    routes={"r": Route(exchange="x", queues=("q1", "q2"))},
)
WALL = 50.0


class Recorded:
    """A world whose tallies are recorded."""

    def __init__(self, world: World, settings: Settings = SETTINGS) -> None:
        self.world = world
        self.records: list[Mapping[str, Any]] = []
        self.recorder = Recorder(
            settings, write=self.records.append, wall=lambda: WALL, instance="i", place_of=world.log.place
        )
        world.listener.counts = self.recorder.counts(world.listener.event_type)
        self.monitor = ScriptedMonitor({"q1": QueueState(3, 1), "q2": QueueState(4, 2)})
        self.depths = Depths(self.monitor, ["q1", "q2"], 0.1)

    async def run(self, seconds: float) -> None:
        """Record for so long, then end in order."""
        lanes = {"r": self.world.lane}
        tasks = [
            asyncio.create_task(self.depths.run()),
            asyncio.create_task(self.recorder.run(self.world.log, self.world.assignment, lanes, self.depths.of)),
        ]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.recorder.finish(self.world.log, self.world.assignment, lanes, self.depths.of)

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the records of one kind."""
        return [record for record in self.records if record["kind"] == kind]

    def total(self, kind: str, name: str) -> int:
        """Return the sum of one count over all records of a kind."""
        return sum(record[name] for record in self.of(kind))


def recorded(story: Callable[[World, Recorded], Awaitable[None]], **traits: Any) -> None:
    """Let a world live through a story that is recorded."""

    async def told(world: World) -> None:
        await story(world, Recorded(world))

    lived(told, **traits)


@pytest.mark.parametrize("seconds", [0.5, 1.5, 9.9, 12.5])
def test_every_count_is_in_the_records_of_route_class_and_type_when_the_process_ends(seconds: float) -> None:
    async def story(world: World, recorded: Recorded) -> None:
        recording = asyncio.create_task(recorded.run(seconds))
        await world.feed(*events(0, 5))
        world.lane.finish()
        await asyncio.sleep(max(0.1, seconds - 0.4))
        world.log.fetched = {PARTITION: events(5, 9)}
        await recording
        for kind in ("class", "type"):
            assert (kind, recorded.total(kind, "received")) == (kind, world.log.handed_out)
            assert (kind, recorded.total(kind, "confirmed")) == (kind, 5)
        assert recorded.total("route", "confirmed") == 5
        for kind in ("route", "class"):
            ours = [one for one in recorded.of(kind) if one.get("class", "P1") == "P1"]
            assert sum(one["interval_s"] for one in ours) == pytest.approx(seconds)

    recorded(story)


def test_the_ends_of_all_partitions_are_asked_for_once_a_second_when_records_come_more_often() -> None:
    async def story(world: World) -> None:
        asked = 0
        lags = world.log.lags

        async def counted(done: Mapping[Partition, Any]) -> Mapping[Partition, int]:
            nonlocal asked
            asked += 1
            return await lags(done)

        world.log.lags = counted  # type: ignore[method-assign]
        often = SETTINGS.model_copy(update={"metric_log": MetricLogSettings(route_interval=0.1)})
        recorded = Recorded(world, often)
        await recorded.run(4.95)
        assert len(recorded.of("route")) >= 45
        assert asked == 5 + 1, "and at the end"
        assert all(record["lag"] == 0 for record in recorded.of("class"))

    lived(story)


def test_a_dead_letter_is_counted_by_its_type_when_it_is_confirmed_after_everything_else_was_recorded() -> None:
    async def story(world: World, recorded: Recorded) -> None:
        recording = asyncio.create_task(recorded.run(25))
        await world.feed(*events(0, 2))
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(11)
        world.dead_lane.finish()
        await recording
        for kind in ("class", "type"):
            counted: Counter[str] = sum((Counter(one["dead_lettered"]) for one in recorded.of(kind)), Counter())
            assert (kind, counted) == (kind, {"unroutable": 2})

    recorded(story)


def test_what_is_done_with_behind_an_open_event_is_recorded_as_ahead() -> None:
    async def story(world: World, recorded: Recorded) -> None:
        recording = asyncio.create_task(recorded.run(0.5))
        await world.feed(*events(0, 5))
        (batch,) = world.lane.batches
        batch.recipient.on_outcome(batch, 2, 5, Outcome.CONFIRMED, seconds=0.001)
        await recording
        for kind in ("class", "type"):
            assert (kind, [one["ahead"] for one in recorded.of(kind) if one["class"] == "P1"][-1]) == (kind, 3)

    recorded(story)


def test_a_type_to_which_nothing_happened_is_not_recorded() -> None:
    async def story(_: World, recorded: Recorded) -> None:
        await recorded.run(30)
        assert recorded.of("type") == []
        assert len(recorded.of("class")) >= 30

    recorded(story)


def test_a_type_whose_last_record_told_of_a_lag_has_one_more_when_that_is_over() -> None:
    async def story(world: World, recorded: Recorded) -> None:
        world.log.lag = 7
        recording = asyncio.create_task(recorded.run(45))
        await world.feed(event(0))
        world.lane.finish()
        await asyncio.sleep(15)
        world.log.lag = 0
        await recording
        assert [one["lag"] for one in recorded.of("type")] == [7, 0]

    recorded(story)


def test_a_class_tells_what_waits_and_how_old_it_is_when_the_lane_is_full() -> None:
    async def story(world: World, recorded: Recorded) -> None:
        world.lane.room = asyncio.Semaphore(0)
        await world.feed(event(0, timestamp_ms=48_000), event(1, timestamp_ms=49_000))
        world.log.fetched = {PARTITION: [event(2, timestamp_ms=49_500)]}
        await recorded.run(1.5)
        first = next(one for one in recorded.of("class") if one["class"] == "P1")
        assert (first["waiting"], first["lag_age_s"]) == (1, 0.5)
        other = next(one for one in recorded.of("class") if one["class"] == "P2")
        assert (other["waiting"], other["lag_age_s"], other["lag"]) == (0, None, 0)

    recorded(story)


def test_the_lag_is_the_sum_over_the_partitions_of_a_class_when_the_log_tells_all_of_them() -> None:
    async def story(world: World, recorded: Recorded) -> None:
        world.assignment.on_assigned([Partition(PARTITION.topic, 1)])
        world.log.lag = 7
        recording = asyncio.create_task(recorded.run(1.5))
        await asyncio.sleep(1.2)
        assert recorded.recorder.lags["P1"] == 14
        await recording
        assert recorded.of("class")[0]["lag"] == 14

    recorded(story)


@pytest.mark.parametrize("trouble", ["refuses", "silent", "leaves one out"])
def test_the_lag_is_unknown_when_the_log_does_not_tell_all_of_it_in_time(trouble: str) -> None:
    async def story(world: World, recorded: Recorded) -> None:
        world.log.lag = None if trouble == "leaves one out" else 5
        world.log.failure = LogError("gone") if trouble == "refuses" else None
        world.log.lag_delay = 10.0 if trouble == "silent" else 0.0
        await recorded.run(3.5)
        assert {one["lag"] for one in recorded.of("class") if one["class"] == "P1"} == {None}
        assert len(recorded.of("route")) >= 3

    recorded(story)


def test_a_route_tells_the_sum_of_its_queues_and_each_of_them_when_the_monitor_sees() -> None:
    async def story(_: World, recorded: Recorded) -> None:
        await recorded.run(1.5)
        route = recorded.of("route")[0]
        assert (route["depth"], route["consumers"], route["queues"]) == (7, 3, {"q1": 3, "q2": 4})
        assert (route["state"], route["in_flight"]) == ("open", 0)

    recorded(story)


def test_the_depth_is_unknown_when_no_queue_is_known() -> None:
    async def story(_: World, recorded: Recorded) -> None:
        recorded.monitor.states = {"q1": None, "q2": None}
        await recorded.run(1.5)
        route = recorded.of("route")[0]
        assert (route["depth"], route["consumers"], route["queues"]) == (None, None, {"q1": None, "q2": None})

    recorded(story)


def test_batch_sizes_are_summed_over_the_types_of_a_class_when_it_is_controlled() -> None:
    async def story(_: World, recorded: Recorded) -> None:
        await recorded.run(1.5)
        sizes = {one["class"]: one["batch_size"] for one in recorded.of("class")}
        assert sizes["P1"] == {"sum": 15, "min": 15, "max": 15, "types": 1}
        assert sizes["P2"] is None

    recorded(story, policy="per_type")


def test_a_verdict_is_recorded_with_what_it_saw_and_the_thresholds() -> None:
    async def story(_: World, recorded: Recorded) -> None:
        verdict = Verdict("r", True, Cause.BOTH, Statistics("r", 20, 3, 0.0625))  # noqa: FBT003 - positional dataclass
        recorded.recorder.verdicts.on_verdict(verdict)
        record = recorded.records[0]
        assert (record["kind"], record["route"], record["congested"], record["cause"]) == (
            "verdict",
            "r",
            True,
            "latency+errors",
        )
        assert (record["p50_us"], record["errors"], record["samples"]) == (62_500, 3, 20)
        assert (record["threshold_us"], record["threshold_errors"], record["min_samples"]) == (50_000, 0, 10)
        assert recorded.recorder.verdicts.last == {"r": verdict}
        recorded.recorder.verdicts.on_verdict(Verdict("r", None, Cause.TOO_FEW_SAMPLES, Statistics("r", 0, 0, None)))
        assert recorded.records[1]["p50_us"] is None
        await asyncio.sleep(0)

    recorded(story)


@pytest.mark.parametrize(("charged", "told"), [((60.0, 0.0, 24.0), None), ((60.0, 0.0, 240.0), 36.0)])
def test_what_waits_is_recorded_by_its_cost_when_events_differ_in_it(
    charged: tuple[float, ...], told: float | None
) -> None:
    async def story(_: World, recorded: Recorded) -> None:
        budget = RouteBudget("r", (0.5, 0.2, 0.08), ClassBudget())
        for second in range(3):
            counts, charges = (60 * second, 0, 24 * second), tuple(second * one for one in charged)
            queue = QueueReading(10, 4, float(second), 3.0)
            reading = Reading(
                at=float(second), queues=(queue,), confirmed=counts, charged=charges, waited=(False, False, True)
            )
            recorded.recorder.verdicts.on_budget_verdict(budget.judge(reading))
        last = recorded.records[-1]
        assert (last["depth"], last["depth_cost"]) == (10, None if told is None else pytest.approx(told, abs=0.5))
        await asyncio.sleep(0)

    recorded(story)


def test_a_class_budget_s_verdicts_tell_the_publish_latency_that_the_collector_saw_last() -> None:
    async def story(_: World, recorded: Recorded) -> None:
        verdicts, budget = recorded.recorder.verdicts, RouteBudget("r", (0.5, 0.2, 0.08), ClassBudget())
        reading = Reading(at=0.0, confirmed=(0, 0, 0), waited=(False, False, False))
        verdicts.on_budget_verdict(budget.judge(reading))
        verdicts.on_statistics(Verdict("r", False, Cause.NONE, Statistics("r", 20, 0, 0.0015)))  # noqa: FBT003 - positional dataclass
        verdicts.on_budget_verdict(budget.judge(replace(reading, at=5.0)))
        assert [record["p50_us"] for record in recorded.records] == [None, 1_500]
        assert verdicts.last == {}
        await asyncio.sleep(0)

    recorded(story)


def test_start_tells_what_steers_and_neither_hosts_nor_secrets() -> None:
    settings = SETTINGS.model_copy(
        update={
            "class_budget": ClassBudget(growth=0.2),
            "routes": {"r": Route(exchange="x", queues=("q1", "q2"), law="cubic")},
        }
    )

    async def story(world: World) -> None:
        plain, steered = Recorded(world), Recorded(world, settings)
        for one in (plain, steered):
            one.recorder.on_start("1.2.3")
        assert plain.records[0]["settings"] == "{}"
        told = json.loads(steered.records[0]["settings"])
        assert told == {"class_budget": {"growth": 0.2}, "routes": {"r": {"law": "cubic"}}}

    lived(story)


def test_start_tells_what_is_promised_of_a_class_when_something_is() -> None:
    slo = Slo(within=2, share=0.999, judges="bridge")
    classes = {
        name: one.model_copy(update={"slo": slo if name == "P1" else None}) for name, one in DEFAULT_CLASSES.items()
    }

    async def story(world: World) -> None:
        plain, promised = Recorded(world), Recorded(world, SETTINGS.model_copy(update={"classes": classes}))
        for one in (plain, promised):
            one.recorder.on_start("1.2.3")
        assert plain.records[0]["slos"] is None
        assert promised.records[0]["slos"] == {"P1": {"within_s": 2.0, "share": 0.999, "judges": "bridge"}}
        assert promised.records[0]["settings"] == "{}"

    lived(story)


def test_start_incident_and_stop_are_recorded_with_schema_time_and_instance() -> None:
    async def story(world: World, recorded: Recorded) -> None:
        recorded.recorder.on_start("1.2.3")
        recorded.recorder.books.on_truncated(PARTITION, 4, 9)
        await world.feed(*events(0, 3))
        world.lane.finish()
        await recorded.run(0.5)
        recorded.recorder.on_stop(2)
        start, incident, stop = recorded.records[0], recorded.records[1], recorded.records[-1]
        assert all((one["v"], one["at_ms"], one["instance"]) == (2, 50_000, "i") for one in recorded.records)
        assert (start["kind"], start["version"], start["classes"]) == ("start", "1.2.3", ["P1", "P2", "P3"])
        assert start["routes"] == {"r": {"policy": "class_budget", "queues": ["q1", "q2"]}}
        assert (incident["kind"], incident["name"], incident["count"]) == ("incident", "truncated", 4)
        assert (stop["kind"], stop["confirmed"], stop["dead_lettered"], stop["unresolved"]) == ("stop", 3, 0, 2)

    recorded(story)


def test_events_ahead_of_the_clock_are_counted_when_a_producer_s_clock_is_ahead() -> None:
    async def story(world: World, recorded: Recorded) -> None:
        recording = asyncio.create_task(recorded.run(2))
        await world.feed(world.recent(0), event(1, timestamp_ms=10**13), event(2, timestamp_ms=10**13))
        world.lane.finish()
        await recording
        for kind in ("class", "type"):
            assert (kind, recorded.total(kind, "ahead_of_clock")) == (kind, 2)
        assert recorded.of("type")[0]["bridge_us"]["0"] == 2
        assert recorded.recorder.ahead_of_clock == {"P1": 2, "P2": 0, "P3": 0}

    recorded(story)


def test_failures_are_counted_by_kind_when_events_are_sent_again() -> None:
    async def story(world: World, recorded: Recorded) -> None:
        recording = asyncio.create_task(recorded.run(5))
        await world.feed(*events(0, 3))
        for outcome in (Outcome.NACKED, Outcome.UNKNOWN, Outcome.CONFIRMED):
            world.lane.finish(outcome)
            await asyncio.sleep(0.5)
        await recording
        for kind in ("class", "type"):
            counts = [recorded.total(kind, name) for name in ("nacked", "unknown", "resent", "resent_unknown")]
            assert (kind, counts) == (kind, [3, 3, 6, 3])
        assert [recorded.total("route", name) for name in ("nacked", "unknown", "confirmed")] == [3, 3, 3]

    recorded(story)


def test_distributions_are_buckets_of_microseconds_when_events_are_confirmed() -> None:
    async def story(world: World, recorded: Recorded) -> None:
        recording = asyncio.create_task(recorded.run(2))
        await world.feed(world.recent(0), event(1, timestamp_ms=None))
        world.lane.finish()
        await recording
        kind = recorded.of("type")[0]
        assert kind["publish_us"] == {"506": 2}
        assert sum(kind["bridge_us"].values()) == 1
        assert recorded.of("route")[0]["publish_us"] == {"506": 2}

    recorded(story)
