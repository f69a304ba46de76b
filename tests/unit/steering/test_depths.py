"""The latest depth of every queue; blindness is visible and never stops the data."""

import asyncio
from collections.abc import Awaitable, Callable

from structlog.testing import capture_logs

from proxy.bridge.broker import QueueState
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


def test_the_monitor_is_left_alone_when_no_queue_is_watched() -> None:
    async def live() -> int:
        monitor = ScriptedMonitor({})
        await Depths(monitor, [], 0.1).run()
        return monitor.polls

    assert virtual_time.run(live()) == 0
