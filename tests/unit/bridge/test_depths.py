"""The latest depth of every queue; blindness is visible and never stops the data."""

import asyncio
from collections.abc import Awaitable, Callable

from structlog.testing import capture_logs

from proxy.bridge.broker import QueueState
from proxy.bridge.depths import Depths
from proxy.errors import BrokerError
from proxy.simulation import virtual_time
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
        assert (depths.of("a"), depths.known()) == (None, {})
        monitor.failure = None
        await asyncio.sleep(1.1)
        assert depths.of("a") == DEEP

    assert watched(story) == ["monitor_blind:", "monitor_sees_again:"]


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
