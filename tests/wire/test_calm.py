"""A day without growth, in minutes: what a calm process does again and again leaves nothing behind.

Polls, rebalances and connections, real clients inside, with time that jumps. `python -m load.calm` is the slow proof,
on real brokers; here a leak of one object in each turn is a million of them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
import structlog

from proxy.bridge.broker import LaneState
from proxy.rabbitmq.login import Logins
from proxy.rabbitmq.monitor import RabbitMonitor
from proxy.settings import BrokerSettings
from tests.wire.bridge import GROUP, KAFKA, QUEUE, RABBIT, Bridge, lived, until
from tests.wire.census import census, growth
from tests.wire.loop import WireLoop
from tests.wire.rabbit.cluster import RabbitCluster

WARM = 50
"""Turns before the first count."""
SLACK = 60
"""What any kind of object may vary by, however many turns lie between two counts: exchanges that are under way."""
BLOCKS = 2_000
"""The same for blocks of memory."""
HOURS = [pytest.mark.long, pytest.mark.timeout(4 * 3_600)]


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Say nothing: what is said would lie in memory until the test ends."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


async def level(turn: Callable[[], Awaitable[None]], times: int) -> None:
    """Do it so often, count before, half-way and after: what grows in both halves is left behind by the turns."""
    counts = []
    for turns in (WARM, times // 2, times // 2):
        for _ in range(turns):
            await turn()
        counts.append(census())
    before, middle, after = counts
    first, second = growth(before, middle, SLACK, BLOCKS), growth(middle, after, SLACK, BLOCKS)
    grown = {name: (first[name], second[name]) for name in first.keys() & second.keys()}
    assert not grown, f"in both halves: {grown}"


@pytest.mark.parametrize("times", [3_000, pytest.param(1_000_000, marks=HOURS)])
def test_nothing_grows_when_the_monitor_polls(times: int) -> None:
    async def story() -> None:
        loop: Any = asyncio.get_running_loop()
        rabbit = RabbitCluster(loop.network, Random(1), [f"{RABBIT}:5672"])
        rabbit.declare_queue(QUEUE)
        monitor = RabbitMonitor(Logins(BrokerSettings(hosts=list(rabbit.hosts), heartbeat=60)))
        polls = 0

        async def poll() -> None:
            nonlocal polls
            polls += 1
            queues = [QUEUE] if polls % 10 else [QUEUE, "missing"]  # which costs a channel
            assert (await monitor.poll(queues))[QUEUE] is not None
            await asyncio.sleep(0.05 if polls % 10 else 1.0)

        await level(poll, times)
        assert len(rabbit.connections) == 1
        await monitor.close()

    lived(story)


@pytest.mark.parametrize("times", [300, pytest.param(100_000, marks=HOURS)])
def test_nothing_grows_when_the_group_rebalances(times: int) -> None:
    async def story() -> None:
        async with Bridge.running(log={"session_timeout": 1.2, "metadata_age": 60, "fetch_wait": 0.05}) as bridge:
            bridge.produce()
            await bridge.arrived()

            async def rebalance() -> None:
                before, flows = bridge.generation, bridge.flows
                bridge.kafka.group(GROUP).rebalance()
                await until(lambda: bridge.generation > before and bridge.flows and bridge.flows[0] is not flows[0])

            began = bridge.generation
            await level(rebalance, times)
            assert bridge.generation >= began + times
            bridge.produce()
            await bridge.arrived()

    lived(story)


class Counting(WireLoop):
    """Counts the connections that are made."""

    made = 0

    async def create_connection(self, *wanted: Any, **more: Any) -> Any:
        """See `WireLoop`."""
        self.made += 1
        return await super().create_connection(*wanted, **more)


@pytest.mark.series
@pytest.mark.parametrize("connections", [1_000, pytest.param(100_000, marks=HOURS)])
def test_nothing_grows_when_connections_are_made_anew(connections: int) -> None:
    async def story() -> None:
        async with Bridge.running() as bridge:
            assert isinstance(bridge.loop, Counting)
            bridge.produce()
            await bridge.arrived()
            generation = bridge.generation

            async def reconnect() -> None:
                assert isinstance(bridge.loop, Counting)
                before = bridge.loop.made
                bridge.loop.network.reset(f"{KAFKA}:9092")
                await bridge.reconnect_lane()
                await bridge.reconnect_monitor()
                await until(lambda: bridge.lane.state is LaneState.OPEN)
                assert await bridge.log.affirm()
                assert bridge.loop.made >= before + _EACH

            await level(reconnect, connections // _EACH)
            assert bridge.generation == generation
            bridge.produce()
            await bridge.arrived()

    lived(story, Counting)


_EACH = 4
"""Connections that are made in one turn at least: lane, monitor, two to Kafka."""
