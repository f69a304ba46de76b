"""The whole process on scripted ends: ordered start and stop, failures that end it, the control clock."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from proxy.bridge.event_log import Extent
from proxy.congestion.detector import Verdict
from proxy.errors import LogError, RefusedLoginError
from proxy.model import Mode, Note, Outcome, Partition
from proxy.operations.intervention import Intervention
from proxy.operations.steps import Steps
from proxy.settings import (
    EventType,
    Limits,
    Route,
    Scaling,
    Statistics,
)
from proxy.simulation import virtual_time
from tests.support.events import PARTITION, events
from tests.support.memory_board import MemoryBoard
from tests.support.process import TRAITS, Process


def ran(story: Callable[[Process], Awaitable[None]], **parts: Any) -> None:
    """Let a process live through a story, and end in order."""

    async def live() -> None:
        process = Process(**parts)
        await asyncio.sleep(0.1)
        await story(process)
        process.app.stop()
        await process.running

    virtual_time.run(live())


def test_every_topic_with_an_event_type_is_read_when_the_process_runs() -> None:
    async def story(process: Process) -> None:
        assert process.log.subscribed == {"orders", "news.a"}
        await process.feed(Partition("news.a", 0), 0, 3)
        assert [event.position for event in process.lane.written] == ["p0", "p1", "p2"]
        ready = process.app.status.ready()
        assert ready == {
            "ready": True,
            "routes": {"r": "open"},
            "event_types": 2,
            "outside_group": None,
            "partitions": 1,
            "standing_partitions": 0,
            "standing": {},
            "log_reached": True,
            "unread_types": [],
            "stopped_types": [],
            "waiting_types": {},
            "missing_queues": [],
        }
        process.lane.finish()

    ran(story)


def test_a_type_that_was_paused_before_sends_nothing_when_the_process_starts() -> None:
    asked = Intervention("a", Mode.PAUSE, ("orders",), (), "ann", None, 0, 60_000)

    async def story(process: Process) -> None:
        await process.feed(PARTITION, 0, 3)
        await process.feed(Partition("news.a", 0), 3, 6)
        assert [event.position for event in process.lane.written] == ["p3", "p4", "p5"]
        assert [one["phase"] for one in process.of("intervention")] == ["begun"]
        assert process.app.assignment.listeners["orders"].stance.mode is Mode.PAUSE
        process.app._listeners.open(EventType(name="orders", topic="orders-of-late", **TRAITS))
        assert process.app.assignment.listeners["orders-of-late"].stance.mode is Mode.PAUSE, "at once"
        process.lane.finish()

    ran(story, board=MemoryBoard([Note(asked.key, asked.as_json())]))


def test_it_is_told_how_many_consumers_are_wanted_when_a_route_asks_for_it() -> None:
    async def story(process: Process) -> None:
        process.log.told = {PARTITION: Extent(0, 1_000)}
        await asyncio.sleep(7)
        told = process.app.steering.wanted.told()["routes"]["r"]
        assert (told["wanted_consumers"], told["consumers"]) == (1, 1)
        assert told["classes"] == {"P1": {"lag": 1_000, "demand_per_s": 0.0, "work_off_s": None}}
        assert "is not known before they have enough to do" in told["why"]
        samples = {
            (family.name, *sample.labels.values()): sample.value
            for family in process.app.status.families()
            if family is not None
            for sample in family.samples
        }
        assert samples["tidegate_wanted_consumers", "r"] == 1
        assert samples["tidegate_group_lag_events", "r", "P1"] == 1_000
        assert [record["wanted"] for record in process.of("scaling")] == [1]
        process.monitor.states = {"q1": None}
        await asyncio.sleep(7)
        assert process.app.steering.wanted.told()["routes"]["r"]["wanted_consumers"] is None

    ran(story, routes={"r": Route(exchange="x", queues=("q1",), scaling=Scaling())})


def test_it_is_told_of_each_queue_how_many_consumers_it_wants_when_they_are_judged_one_by_one() -> None:
    async def story(process: Process) -> None:
        process.monitor.states = dict.fromkeys(("q1", "q.2", "q3"), process.monitor.states["q1"])
        process.log.told = {PARTITION: Extent(0, 1_000)}
        await asyncio.sleep(7)
        told = process.app.steering.wanted.told()["routes"]["r"]
        assert (told["wanted_consumers"], told["classes"]["P1"]["lag"]) == (None, 1_000)
        lags = {name: [one["lag"] for one in queue["classes"].values()] for name, queue in told["queues"].items()}
        assert lags == {"q1": [1_000], "q.2": [1_000], "q3": []}
        samples = {
            tuple(sample.labels.items()): sample.value
            for family in process.app.status.families()
            if family is not None
            for sample in family.samples
            if sample.name == "tidegate_wanted_consumers"
        }
        assert samples == {(("route", "r"), ("queue", name)): 1 for name in ("q1", "q.2", "q3")}
        assert {record["queue"]: record["wanted"] for record in process.of("scaling")} == {"q1": 1, "q.2": 1, "q3": 1}

    queues = ("q1", "q.2", {"name": "q3", "event_types": ["other"]})
    ran(
        story, routes={"r": Route.model_validate({"exchange": "x", "queues": queues, "strategy": "min", "scaling": {}})}
    )


def test_what_is_sent_is_awaited_and_committed_before_the_group_is_left_when_it_is_stopped() -> None:
    async def story(process: Process) -> None:
        await process.feed(PARTITION, 0, 3)
        process.app.stop()
        await asyncio.sleep(5)
        assert not process.running.done()
        assert process.log.stops == 0
        process.lane.finish()
        await process.running
        assert process.log.committed == {PARTITION: "p2"}
        assert process.log.stops >= 1
        assert process.monitor.is_closed
        stop = process.of("stop")[0]
        assert (stop["confirmed"], stop["unresolved"]) == (3, 0)
        assert process.records[-1] is stop
        assert sum(record["confirmed"] for record in process.of("type")) == 3

    ran(story)


def test_what_comes_again_is_said_when_the_last_commit_of_a_stop_fails() -> None:
    async def story(process: Process) -> None:
        await process.feed(PARTITION, 0, 3)
        process.log.failure = LogError("no answer")
        process.lane.finish()
        process.app.stop()
        with capture_logs() as said:
            await process.running
        assert [line["events"] for line in said if line["event"] == "final_commit_failed"] == [3]
        for kind in ("class", "type"):
            assert sum(record["uncommitted"] for record in process.of(kind)) == 3

    ran(story)


def test_the_stop_ends_at_its_deadline_when_a_confirm_never_comes() -> None:
    async def story(process: Process) -> None:
        await process.feed(PARTITION, 0, 3)
        process.log.stop_delay = 1000.0
        process.log.lag = 20_000
        began = asyncio.get_running_loop().time()
        process.app.stop()
        with capture_logs() as said:
            await process.running
        [stopped] = [line for line in said if line["event"] == "stopped"]
        assert (stopped["drained"], stopped["unconfirmed"], stopped["left_in_log"]) == (False, 3, 20_000)
        assert 20 <= asyncio.get_running_loop().time() - began <= 26
        assert process.of("stop")[0]["unresolved"] == 3
        assert process.log.committed == {}

    ran(story)


@pytest.mark.parametrize(("outcome", "unconfirmed"), [(Outcome.UNKNOWN, 3), (Outcome.NACKED, 0)])
def test_a_stop_says_how_many_events_the_broker_may_have_when_a_connection_is_given_up_meanwhile(
    outcome: Outcome, unconfirmed: int
) -> None:
    async def story(process: Process) -> None:
        await process.feed(PARTITION, 0, 3)
        process.log.lag = None
        process.app.stop()
        await asyncio.sleep(1)
        process.lane.finish(outcome)
        with capture_logs() as said:
            await process.running
        [stopped] = [line for line in said if line["event"] == "stopped"]
        assert (stopped["drained"], stopped["unconfirmed"]) == (not unconfirmed, unconfirmed)
        assert stopped["left_in_log"] is None  # the log did not tell

    ran(story)


def test_nothing_is_sent_from_partitions_that_come_while_it_stops() -> None:
    async def story(process: Process) -> None:
        await process.feed(PARTITION, 0, 3)
        late = Partition("news.a", 0)

        def assign() -> None:
            process.log.on_poll_end = lambda: None
            assert process.app.assignment.on_assigned([late]) == [late]
            process.log.fetched = {late: events(10, 12)}

        process.app.stop()
        await asyncio.sleep(0.05)
        process.log.on_poll_end = assign
        process.lane.finish()
        await process.running
        assert {event.position for event in process.lane.written} == {"p0", "p1", "p2"}
        assert process.log.committed == {PARTITION: "p2"}

    ran(story)


def test_it_ends_at_once_and_leaves_nothing_open_when_it_is_stopped_before_the_log_answers() -> None:
    async def live() -> float:
        process = Process()
        process.log.start_delay = 1000.0
        await asyncio.sleep(3)
        process.app.stop()
        await process.running
        assert process.log.stops == 1
        return asyncio.get_running_loop().time()

    assert virtual_time.run(live()) == pytest.approx(3.0)


def test_the_group_is_left_when_the_stop_comes_in_the_moment_the_log_answers() -> None:
    async def live() -> int:
        process = Process()
        process.log.start_delay = 1.0
        asyncio.get_running_loop().call_at(1.0, process.app.stop)
        await process.running
        return process.log.stops

    assert virtual_time.run(live()) >= 1


def test_an_unexpected_failure_ends_it_and_leaves_the_group_so_that_others_take_over() -> None:
    async def live() -> None:
        process = Process()
        await asyncio.sleep(1)
        process.log.poll_failure = ZeroDivisionError("a fault")
        with pytest.raises(ExceptionGroup) as raised:
            await process.running
        assert isinstance(raised.value.exceptions[0], ZeroDivisionError)
        assert process.log.stops == 1
        assert process.log.committed == {}

    virtual_time.run(live())


def test_a_refused_login_ends_it_when_the_broker_says_so() -> None:
    async def live() -> None:
        process = Process()
        process.lane.failure = RefusedLoginError("wrong password")
        with pytest.raises(ExceptionGroup) as raised:
            await process.running
        assert raised.group_contains(RefusedLoginError)

    virtual_time.run(live())


def turns(seconds: float, statistics: Statistics, *, drift: float = 1.0) -> list[float]:
    """Return when verdicts came, by a wall clock that runs `drift` times as fast as the loop's."""

    async def live() -> list[float]:
        loop = asyncio.get_running_loop()
        process = Process(wall=lambda: 1_000_000.0 + loop.time() * drift, statistics=statistics)
        heard: list[float] = []

        def hear(_: Verdict) -> None:
            heard.append(loop.time())

        process.app.steering.control.observe("r", hear)
        await asyncio.sleep(seconds)
        process.app.stop()
        await process.running
        return [time for time in heard if time <= seconds]

    return virtual_time.run(live())


def test_verdicts_come_every_interval() -> None:
    assert turns(10.5, Statistics(interval=2.0)) == pytest.approx([2.0, 4.0, 6.0, 8.0, 10.0])


@pytest.mark.parametrize("drift", [1.0, 0.999, 1.001])
def test_one_verdict_comes_at_each_time_of_the_cron_expression_when_the_clocks_differ(drift: float) -> None:
    heard = turns(62, Statistics(cron="*/5 * * * * *"), drift=drift)
    assert heard == pytest.approx([5 * n / drift for n in range(1, 13) if 5 * n / drift <= 62], abs=0.1)


def test_the_least_limits_stop_it_in_order_too() -> None:
    async def story(process: Process) -> None:
        await process.feed(PARTITION, 0, 3)
        process.lane.finish()
        await asyncio.sleep(0.5)
        process.app.stop()
        await process.running
        assert process.log.committed == {PARTITION: "p2"}

    ran(story, limits=Limits(drain_deadline=0.0, commit_interval=0.05))


def test_metrics_tell_routes_queues_classes_and_types_of_now() -> None:
    async def story(process: Process) -> None:
        await process.feed(PARTITION, 0, 3)
        process.lane.finish()
        await asyncio.sleep(1.5)
        told = {
            (sample.name, *sample.labels.values()): sample.value
            for family in process.app.status.families()
            if family is not None
            for sample in family.samples
        }
        assert told.pop(("tidegate_memory_blocks",)) > 0
        expected: dict[tuple[str, ...], float] = {
            ("tidegate_tasks",): len(asyncio.all_tasks()),
            ("tidegate_in_flight_events", "r"): 0,
            ("tidegate_window_events", "r"): 200,
            ("tidegate_congested", "r", "too_few_samples"): 0,
            ("tidegate_queue_ready_messages", "q1"): 3,
            **{("tidegate_lag_events", name): 0 for name in ("P1", "P2", "P3")},
            ("tidegate_confirmed_events_total", "P1"): 3,
            ("tidegate_confirmed_events_total", "P2"): 0,
            ("tidegate_confirmed_events_total", "P3"): 0,
            **{("tidegate_ahead_of_clock_events_total", name): 0 for name in ("P1", "P2", "P3")},
            **{("tidegate_old_events_total", name): 0 for name in ("P1", "P2", "P3")},
            ("tidegate_catching_up_partitions", "P1"): 0,
            ("tidegate_batch_size_events", "orders"): 15,
            ("tidegate_batch_size_events", "news.a"): 15,
            ("tidegate_inbox_events", "orders"): 0,
            ("tidegate_inbox_events", "news.a"): 0,
            ("tidegate_paused", "orders"): 0,
            ("tidegate_paused", "news.a"): 0,
            ("tidegate_untold_types",): 0,
        }
        assert told == expected
        await process.feed(PARTITION, 3, 4)
        await asyncio.sleep(0.3)
        awaited = [
            sample.labels
            for family in process.app.status.families()
            if family is not None
            for sample in family.samples
            if sample.name == "tidegate_awaits"
        ]
        assert awaited == [{"type": "orders", "for": "outcomes"}], "the lane confirms nothing more"

    ran(story, routes={"r": Route(exchange="x", policy="per_type", queues=("q1",))})


def test_types_with_something_to_tell_have_series_when_there_are_too_many_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proxy.operations.status.TYPES", 1)

    async def story(process: Process) -> None:
        def told() -> tuple[list[str], float]:
            samples = [one for family in process.app.status.families() if family for one in family.samples]
            types = [one.labels["type"] for one in samples if one.name == "tidegate_inbox_events"]
            (untold,) = [one.value for one in samples if one.name == "tidegate_untold_types"]
            return types, untold

        assert told() == (["news.a"], 1)
        process.lane.room = asyncio.Semaphore(0)
        await process.feed(PARTITION, 0, 3)
        process.app.assignment.listeners["orders"].inbox.events = 3
        assert told() == (["orders"], 1)
        process.app.assignment.listeners["orders"].inbox.events = 0

    ran(story)


def test_it_is_not_alive_when_a_task_has_ended_that_lasts_until_the_stop() -> None:
    async def story(process: Process) -> None:
        await process.feed(PARTITION, 0, 3)
        assert process.app.liveness.faults() == {}
        (listener,) = [task for task in asyncio.all_tasks() if task.get_name() == "listener orders"]
        listener.cancel()
        await asyncio.sleep(0.1)
        assert process.app.liveness.faults() == {"task listener orders": "has ended"}
        assert [sample.value for one in process.app.liveness.families() for sample in one.samples] == [1]
        process.app.stop()
        assert process.app.liveness.faults() == {}

    ran(story)


def test_the_last_congestion_is_told_for_ten_seconds_when_nothing_is_congested_any_more() -> None:
    async def story(process: Process) -> None:
        async def told() -> str | None:
            state = json.loads(await process.app.state.told(Steps()))
            return cast("str | None", state["routes"]["r"]["congested_lately"])

        await process.feed(PARTITION, 0, 3)
        await asyncio.sleep(10)
        calm = process.app.totals.verdicts["r"]
        process.app.totals.write({**calm, "congested": True, "cause": "no_consumers"})
        process.app.totals.write(calm)
        assert await told() == "messages wait, and nobody consumes them"
        await asyncio.sleep(11)
        assert await told() is None

    ran(story)


def test_the_state_tells_every_route_class_and_type_when_it_is_asked_for() -> None:
    async def story(process: Process) -> None:
        await process.feed(PARTITION, 0, 3)
        process.lane.finish()
        await process.feed(PARTITION, 3, 5)
        await asyncio.sleep(10)
        told = json.loads(await process.app.state.told(Steps()))
        lane = {"state": "open", "in_flight": 0, "window": 200, "oldest_s": 0.0}
        verdict = told["routes"]["r"].pop("verdict")
        assert verdict["why"] == "0 outcomes say too little, 10 are needed"
        assert [one["cause"] for one in told["routes"]["r"].pop("decisions")] == ["too_few_samples"]
        assert told["routes"]["r"] == {
            "policy": "per_type",
            "shadow": False,
            "types": 2,
            "lane": lane,
            "publish_p50_s": None,
            "congested_lately": None,
            "queues": {"q1": {"ready": 3, "consumers": 1, "delay_s": None}},
        }
        assert told["settings_refused"] == []
        process.app.in_force.refused = ["tidegate.yaml:3: no"]
        assert json.loads(await process.app.state.told(Steps()))["settings_refused"] == ["tidegate.yaml:3: no"]
        assert told["dead_letters"] == lane
        assert told["classes"]["P1"] == {
            "types": 2,
            "rate": 0,
            "confirmed": 3,
            "lag": 0,
            "lag_age_s": 0,
            "waiting": 0,
            "catching_up": 0,
        }
        assert (told["classes"]["P3"]["types"], told["classes"]["P3"]["confirmed"]) == (0, 0)
        assert told["types"]["orders"] == {
            "class": "P1",
            "route": "r",
            "topic": "orders",
            "partitions": 1,
            "mode": "run",
            "cap": None,
            "awaits": "outcomes",
            "inbox_events": 0,
            "inbox_bytes": 0,
            "batch_size": 15,
            "paused": False,
            "dead_letters": 0,
            "lag_age_s": None,
            "retention_left_s": None,
            "retention_s": None,
            "retention_near": 0,
            "goes_as": "P1",
        }
        assert (list(told["types"]), told["types_in_all"], told["next"]) == (["news.a", "orders"], 2, None)

    ran(story, routes={"r": Route(exchange="x", policy="per_type", queues=("q1",))})


def test_the_state_tells_the_types_that_are_named_or_come_after_a_name_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proxy.operations.state.TYPES", 1)

    async def story(process: Process) -> None:
        async def page(**asked: Any) -> tuple[list[str], str | None]:
            told = json.loads(await process.app.state.told(Steps(), **asked))
            assert told["types_in_all"] == 2
            return list(told["types"]), told["next"]

        assert await page() == (["news.a"], "news.a")
        assert await page(after="news.a") == (["orders"], None)
        assert await page(after="zzz") == ([], None)
        assert await page(types=["orders"]) == (["orders"], None)
        with pytest.raises(KeyError, match="other"):
            await page(types=["other"])

    ran(story)


def test_metrics_tell_rates_delay_and_drain_when_a_route_has_a_class_budget() -> None:
    async def story(process: Process) -> None:
        await asyncio.sleep(1.5)
        told = {
            (sample.name, *sample.labels.values()): sample.value
            for family in process.app.status.families()
            if family is not None
            for sample in family.samples
        }
        assert told["tidegate_rate_limit_events", "r", "P1"] == float("inf")
        assert told["tidegate_rate_limit_events", "r", "P3"] == 50
        assert told["tidegate_drain_rate_events", "r"] == 0
        assert ("tidegate_queue_delay_seconds", "r") in told
        assert ("tidegate_queue_cost", "r") not in told, "every event costs 1"
        last = process.app.recorder.verdicts.last_of_budgets
        last["r"] = replace(last["r"], waiting=36.0, queues=(replace(last["r"].queues[0], is_even=False),))
        costs = [family for family in process.app.status.families() if family.name == "tidegate_queue_cost"]
        assert [sample.value for sample in costs[0].samples] == [36.0]

    ran(story, routes={"r": Route(exchange="x", policy="class_budget", queues=("q1",))})
