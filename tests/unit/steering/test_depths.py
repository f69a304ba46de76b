"""The latest depth of every queue; blindness is visible and never stops the data."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from proxy.bridge.broker import QueueKind, QueueState
from proxy.errors import BrokerError
from proxy.simulation import virtual_time
from proxy.steering.depths import Depths
from tests.support.bridge_fakes import ScriptedMonitor

DEEP = QueueState(7, 1)


def watched(story: Callable[[ScriptedMonitor, Depths], Awaitable[None]]) -> list[str]:
    """Watch `a` and `b` every tenth of a second while a story is lived; return what was said."""

    async def live() -> None:
        monitor = ScriptedMonitor({"a": DEEP, "b": QueueState(0, 0)})
        depths = Depths(monitor, ["a", "b"], 0.1)
        running = asyncio.create_task(depths.run())
        await asyncio.sleep(0.05)
        await story(monitor, depths)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert monitor.is_closed

    with capture_logs() as said:
        virtual_time.run(live())
    return [entry["event"] + ":" + entry.get("queue", "") for entry in said]


def test_the_last_state_of_every_queue_is_known_when_the_monitor_answers() -> None:
    async def story(monitor: ScriptedMonitor, depths: Depths) -> None:
        assert depths.known() == {"a": DEEP, "b": QueueState(0, 0)}
        monitor.states = {"a": QueueState(9, 1), "b": None}
        await asyncio.sleep(0.2)
        assert depths.of("a") == QueueState(9, 1)
        assert depths.of("b") is None
        assert depths.missing() == ["b"]
        assert depths.known() == {"a": QueueState(9, 1)}

    watched(story)


def test_nothing_is_known_and_it_is_said_once_when_the_monitor_fails() -> None:
    async def story(monitor: ScriptedMonitor, depths: Depths) -> None:
        monitor.failure = BrokerError("gone")
        polls = monitor.polls
        await asyncio.sleep(5)
        assert monitor.polls - polls <= 6
        assert (depths.of("a"), depths.known(), depths.is_blind) == (None, {}, True)
        monitor.failure = None
        await asyncio.sleep(1.1)
        assert depths.of("a") == DEEP

    assert watched(story) == ["monitor_blind:", "monitor_sees_again:"]


def test_nothing_is_claimed_of_routes_that_may_be_down_too_when_the_monitor_fails() -> None:
    async def live() -> None:
        monitor = ScriptedMonitor({})
        monitor.failure = BrokerError("gone")
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await Depths(monitor, ["a"], 0.1).run()

    with capture_logs() as said:
        virtual_time.run(live())
    assert [line["effect"] for line in said] == [
        "queue depths are unknown; routes whose own connections are open go on without them"
    ]


def test_the_last_state_keeps_its_age_when_the_monitor_fails() -> None:
    async def story(monitor: ScriptedMonitor, depths: Depths) -> None:
        now = asyncio.get_running_loop().time
        first = depths.seen("a")
        assert first is not None
        assert (first.state, first.interval) == (DEEP, 0.1)
        assert now() - first.at < 0.1
        assert depths.seen("not watched") is None
        monitor.failure = BrokerError("gone")
        await asyncio.sleep(5)
        last = depths.seen("a")
        assert last is not None
        assert last.state == DEEP
        assert 4.9 < now() - last.at < 5.2

    watched(story)


def test_a_queue_that_was_not_come_to_keeps_its_state_and_age() -> None:
    async def story(monitor: ScriptedMonitor, depths: Depths) -> None:
        before = depths.seen("a")
        monitor.left_out = {"a"}
        await asyncio.sleep(1)
        assert depths.seen("a") == before
        after = depths.seen("b")
        assert after is not None
        assert asyncio.get_running_loop().time() - after.at < 0.2

    assert watched(story) == []


def test_whoever_waits_for_a_poll_is_told_right_after_it() -> None:
    async def story(monitor: ScriptedMonitor, depths: Depths) -> None:
        ages: list[float] = []

        def on_polled() -> None:
            seen = depths.seen("a")
            assert seen is not None
            ages.append(asyncio.get_running_loop().time() - seen.at)

        depths.on_polled = on_polled
        await asyncio.sleep(1)
        assert ages == [0.0] * 10
        monitor.failure = BrokerError("gone")
        await asyncio.sleep(3)
        assert 12 <= len(ages) <= 14

    watched(story)


def test_polls_keep_their_pace_when_answers_are_slow() -> None:
    async def story(monitor: ScriptedMonitor, depths: Depths) -> None:
        del depths
        monitor.delay = 0.07
        polls = monitor.polls
        await asyncio.sleep(10)
        assert 98 <= monitor.polls - polls <= 101

    watched(story)


def test_deep_queues_are_fresh_and_idle_ones_are_not_forgotten_when_there_are_a_thousand() -> None:
    queues = [f"q{number}" for number in range(1000)]
    deep = queues[100:120]

    async def live() -> None:
        monitor = ScriptedMonitor({queue: DEEP if queue in deep else QueueState(0, 0) for queue in queues})
        depths = Depths(monitor, queues, 0.05, polls=1000)
        running = asyncio.create_task(depths.run())
        await asyncio.sleep(10)
        now = asyncio.get_running_loop().time()
        seen = {queue: depths.seen(queue) for queue in queues}
        for queue, one in seen.items():
            assert one is not None
            assert now - one.at <= (0.06 if queue in deep else 1.8)
            assert now - one.at <= 1.2 * one.interval
        assert len(depths.known()) == 1000
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    virtual_time.run(live())


def test_a_missing_queue_is_named_once_each_time_it_goes() -> None:
    async def story(monitor: ScriptedMonitor, _: Depths) -> None:
        for states in ({"a": None, "b": DEEP}, {"a": DEEP, "b": DEEP}, {"a": None, "b": DEEP}):
            monitor.states = states
            await asyncio.sleep(1)

    assert watched(story) == ["queue_missing:a", "queue_missing:a"]


def test_a_queue_that_is_locked_is_not_called_missing() -> None:
    async def story(monitor: ScriptedMonitor, _: Depths) -> None:
        monitor.whys = {"a": "RESOURCE_LOCKED - cannot obtain exclusive access"}
        monitor.states = {"a": None, "b": None}
        await asyncio.sleep(1)

    assert watched(story) == ["queue_refused:a", "queue_missing:b"]


def test_the_monitor_is_left_alone_when_no_queue_is_watched() -> None:
    async def live() -> None:
        monitor = ScriptedMonitor({"dead": None})
        depths = Depths(monitor, [], 0.1)
        running = asyncio.create_task(depths.run())
        await asyncio.sleep(10)
        assert monitor.polls == 0
        depths.look_for(["dead"])  # a reload has named one
        with capture_logs() as said:
            await asyncio.sleep(1)
        assert [(one["event"], one["queue"]) for one in said] == [("dead_letter_queue_missing", "dead")]
        running.cancel()

    virtual_time.run(live())


def answering(depths: Depths, monitor: ScriptedMonitor, state: QueueState | None) -> Callable[[], Awaitable[float]]:
    """Return what lets the monitor tell this of `a` for a tenth of a second, then says how old the known depth is."""

    async def live() -> float:
        monitor.states = {"a": state, "b": QueueState(0, 0)}
        await asyncio.sleep(0.1)
        seen = depths.seen("a")
        assert seen is not None
        return asyncio.get_running_loop().time() - seen.at

    return live


@pytest.mark.parametrize("before", [QueueState(7, 1), QueueState(0, 1), QueueState(7, 0)])
@pytest.mark.parametrize("kind", [QueueKind.QUORUM, None])
def test_an_empty_queue_without_consumers_is_not_believed_for_a_second_when_it_had_either(
    before: QueueState, kind: QueueKind | None
) -> None:
    async def story(monitor: ScriptedMonitor, depths: Depths) -> None:
        before_it = replace(before, kind=kind)
        assert await answering(depths, monitor, before_it)() < 0.1
        empty = answering(depths, monitor, QueueState(0, 0, kind))
        for tenths in range(1, 10):
            age = await empty()
            assert depths.of("a") == before_it
            assert tenths / 10 - 0.05 < age < tenths / 10 + 0.1
        for _ in range(2):
            await empty()
        assert await empty() < 0.1
        assert depths.of("a") == QueueState(0, 0, kind)

    assert watched(story) == []


def test_a_lie_every_other_time_never_empties_a_queue() -> None:
    async def story(monitor: ScriptedMonitor, depths: Depths) -> None:
        for depth in range(1, 40):
            assert await answering(depths, monitor, QueueState(depth, 1, QueueKind.QUORUM))() < 0.1
            for _ in range(3):
                await answering(depths, monitor, QueueState(0, 0, QueueKind.QUORUM))()
                assert depths.of("a") == QueueState(depth, 1, QueueKind.QUORUM)

    watched(story)


def test_a_classic_queue_is_believed_at_once_when_it_is_empty_and_its_consumers_are_gone() -> None:
    async def story(monitor: ScriptedMonitor, depths: Depths) -> None:
        await answering(depths, monitor, QueueState(7, 1, QueueKind.CLASSIC))()
        assert await answering(depths, monitor, QueueState(0, 0, QueueKind.CLASSIC))() < 0.1
        assert depths.of("a") == QueueState(0, 0, QueueKind.CLASSIC)

    watched(story)


def test_a_stream_is_named_once_and_steers_nothing() -> None:
    async def story(monitor: ScriptedMonitor, depths: Depths) -> None:
        assert depths.steers("a")
        for kind in (QueueKind.STREAM, QueueKind.CLASSIC, QueueKind.STREAM):
            for number in range(20):
                await answering(depths, monitor, QueueState(90 + number, 0, kind))()
            assert depths.steers("a") is (kind is QueueKind.CLASSIC)
            assert (depths.of("a") is None, "a" not in depths.known()) == 2 * (kind is QueueKind.STREAM,)

    assert watched(story) == ["queue_is_stream:a", "queue_is_stream:a"]


def test_a_missing_dead_letter_queue_is_said_at_the_start_and_when_it_is_there() -> None:
    async def live() -> None:
        monitor = ScriptedMonitor({"dead": None, "graveyard": QueueState(3, 0)})
        running = asyncio.create_task(Depths(monitor, [], 0.1, letter_queues={"dead", "graveyard"}).run())
        await asyncio.sleep(20)
        monitor.states = {"dead": QueueState(0, 0), "graveyard": QueueState(3, 0)}
        await asyncio.sleep(10)
        assert monitor.polls <= 8
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    with capture_logs() as said:
        virtual_time.run(live())
    assert [(entry["event"], entry["queue"]) for entry in said] == [
        ("dead_letter_queue_missing", "dead"),
        ("dead_letter_queue_found", "dead"),
    ]
