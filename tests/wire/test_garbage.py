"""Whatever comes over the wire, the process lives, and goes on once what comes is right again."""

import asyncio
import logging
from random import Random

import pytest
import structlog

from tests.wire.bridge import KAFKA, PAUSE, RABBIT, Bridge, lived, until
from tests.wire.garbage import KINDS, Garbage

SEEDS = [pytest.param(range(20), id="first"), pytest.param(range(20, 1_000), id="others", marks=pytest.mark.long)]
SECONDS = (5.0, 20.0, 60.0)
SHARES = (0.01, 0.05, 0.2, 0.5)
SLOWEST = 40.0
"""Seconds after the last damage until events flow again: longer than a session, a rebalance, and all pauses."""


@pytest.fixture(autouse=True)
def quiet() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


async def damaged(bridge: Bridge, chance: Random, at: str) -> None:
    """Let events flow while what this broker says is damaged, from the first frame or once they flow."""
    kinds = KINDS if chance.random() < 0.5 else chance.sample(KINDS, chance.randrange(1, 4))
    garbage = Garbage(chance, chance.choice(SHARES), kinds)
    bridge.loop.network.change(f"{at}:*", garbage)
    garbage.is_on = True
    end = bridge.loop.time() + chance.choice(SECONDS)
    while bridge.loop.time() < end:
        bridge.produce()
        await asyncio.sleep(PAUSE)
    garbage.is_on = False


@pytest.mark.series
@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.timeout(3_000)
def test_the_process_lives_and_events_flow_again_when_what_rabbitmq_says_was_damaged(seeds: range) -> None:
    async def story(seed: int) -> None:
        async with Bridge.running() as bridge:
            await damaged(bridge, Random(f"rabbit {seed}"), RABBIT)
            first = bridge.produced
            began = bridge.loop.time()
            for _ in range(5):
                bridge.produce()

            def flows() -> bool:
                bridge.take()
                return all(number in bridge.received for number in range(first, bridge.produced))

            await until(flows)
            assert bridge.loop.time() - began < SLOWEST, seed

    for seed in seeds:
        lived(lambda seed=seed: story(seed))  # type: ignore[misc]


@pytest.mark.series
@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.timeout(3_000)
def test_the_process_lives_and_stops_in_order_when_what_kafka_says_was_damaged(seeds: range) -> None:
    """No more can be asked: an offset is believed, and an assignment that is nobody's own."""

    async def story(seed: int) -> None:
        async with Bridge.running() as bridge:
            await damaged(bridge, Random(f"kafka {seed}"), KAFKA)
            assert bridge.app._ended() == [], seed
            bridge.app.stop()
            asked = bridge.loop.time()
        assert bridge.loop.time() - asked < SLOWEST, seed

    for seed in seeds:
        lived(lambda seed=seed: story(seed))  # type: ignore[misc]
