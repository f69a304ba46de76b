"""Production lanes and the real client live through the loss of the node that leads a quorum queue."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from random import Random
from typing import Any

import pytest

from proxy.bridge.broker import LaneState
from proxy.model import Event, Outcome
from proxy.settings import Limits
from proxy.simulation import virtual_time
from tests.contract.lane_adapters import Bench, WireWorld, until
from tests.wire.loop import WireLoop

EVENT = Event(0, 0, None, b"x", (), 1)
PAUSE_SECONDS = 0.5
"""The longest before what was nacked is sent again."""
RECOVERY_SECONDS = 4.0
"""After another leads, until what was refused is taken."""


def on_the_network(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on the network in memory, under virtual time."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        virtual_time.run(test(*arguments, **named), lambda: WireLoop(Random(1)))

    return run


async def take_again(bench: Bench, queue: str, *, silent_seconds: float, leaderless: float) -> float:
    """Lose the leader, connect anew before another leads; return how long after that a message is taken."""
    world = bench.world
    assert isinstance(world, WireWorld)
    now = asyncio.get_running_loop().time
    async with bench.lane(Limits()) as lane:
        recorder = bench.recorder(queue)
        await lane.publish([recorder.batch([EVENT])])
        await until(lambda: recorder.count(Outcome.CONFIRMED) == 1)
        world.broker.leaders.lose(silent_seconds)
        await world.drop_connections()
        await until(lambda: lane.state is LaneState.LOST)
        await until(lambda: lane.state is LaneState.OPEN)
        asyncio.get_running_loop().call_later(leaderless, world.broker.leaders.elect)
        elected = now() + leaderless
        while recorder.count(Outcome.CONFIRMED) < 2:
            done = len(recorder.ends)
            await lane.publish([recorder.batch([EVENT])])
            await until(lambda done=done: len(recorder.ends) > done, deadline=60)
            await asyncio.sleep(PAUSE_SECONDS)
        return now() - elected


@pytest.mark.parametrize("leaderless", [0.3, 2.0])
@on_the_network
async def test_a_queue_whose_leader_died_takes_again_when_another_leads(leaderless: float) -> None:
    bench = Bench(WireWorld())
    took = await take_again(bench, await bench.world.queue(), silent_seconds=0.0, leaderless=leaderless)
    assert took <= RECOVERY_SECONDS


@pytest.mark.parametrize("leaderless", [0.3, 4.0, 7.0])
@on_the_network
async def test_a_queue_whose_leader_is_silent_takes_again_when_another_leads(leaderless: float) -> None:
    bench = Bench(WireWorld())
    took = await take_again(bench, await bench.world.queue(), silent_seconds=7.0, leaderless=leaderless)
    assert took <= 2 * RECOVERY_SECONDS


@on_the_network
async def test_a_channel_that_knew_the_leader_follows_the_next_when_it_dies() -> None:
    world = WireWorld()
    bench = Bench(world)
    async with bench.lane(Limits()) as lane:
        recorder = bench.recorder(await world.queue())
        await lane.publish([recorder.batch([EVENT])])
        await until(lambda: recorder.count(Outcome.CONFIRMED) == 1)
        world.broker.leaders.lose()
        asyncio.get_running_loop().call_later(1.0, world.broker.leaders.elect)
        await lane.publish([recorder.batch([EVENT])])
        await until(lambda: recorder.count(Outcome.CONFIRMED) == 2)
        assert recorder.count(Outcome.NACKED) == 0
