"""Consumers that stall without a prefetch: the depth shows nothing, the management API does, in time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import aio_pika
import pytest

from load.stack import Stack
from proxy.rabbitmq.broker import RabbitBroker
from proxy.settings import BrokerSettings, Limits, Management
from proxy.steering.depths import Depths
from proxy.steering.insights import Insights
from tests.contract.lane_adapters import until

pytestmark = [pytest.mark.timeout(180), pytest.mark.each_rabbitmq]

RATE = 100
"""Messages a second."""


@pytest.fixture(scope="module")
def managed() -> Iterator[Stack]:
    """A stack of its own: the plugin makes every start slower, so the common one does without."""
    with Stack.up(heap="512m", management=True) as stack:
        yield stack


@pytest.fixture
async def channel(managed: Stack) -> AsyncIterator[aio_pika.abc.AbstractChannel]:
    connection = await aio_pika.connect(managed.amqp)
    async with connection:
        yield await connection.channel()


def broker(stack: Stack, **management: str) -> RabbitBroker:
    settings = BrokerSettings(
        hosts=[f"127.0.0.1:{stack.amqp_port}"],
        management=Management.model_validate({"url": stack.management, **management}),
    )
    return RabbitBroker(settings, {}, Limits())


async def test_a_stall_is_told_and_its_end_too_when_there_is_no_prefetch(
    managed: Stack, channel: aio_pika.abc.AbstractChannel
) -> None:
    queue = await channel.declare_queue(f"stall.{uuid4().hex[:8]}")
    at_work = asyncio.Event()
    at_work.set()
    held: list[aio_pika.abc.AbstractIncomingMessage] = []

    async def consume(message: aio_pika.abc.AbstractIncomingMessage) -> None:
        if at_work.is_set():
            await message.ack()
        else:
            held.append(message)

    async def produce() -> None:
        while True:
            await channel.default_exchange.publish(aio_pika.Message(b"x"), queue.name)
            await asyncio.sleep(1 / RATE)

    await queue.consume(consume)
    source = broker(managed).insights()
    assert source is not None
    insights = Insights(source, [queue.name], 1.0)
    depths = Depths(broker(managed).monitor(), [queue.name], 0.05)
    tasks = [asyncio.create_task(work) for work in (produce(), insights.run(), depths.run())]
    try:
        for _ in range(12):
            await asyncio.sleep(1)
            assert not insights.is_growing(queue.name)
        at_work.clear()
        async with asyncio.timeout(40):
            while not insights.is_growing(queue.name):
                state = depths.of(queue.name)
                assert state is None or state.ready < RATE
                await asyncio.sleep(0.1)
        at_work.set()
        for message in held:
            await message.ack()
        async with asyncio.timeout(40):
            await until(lambda: insights.is_growing(queue.name) is False)
        assert not insights.is_blind
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_by_one_and_in_a_listing_the_same_is_told(
    managed: Stack, channel: aio_pika.abc.AbstractChannel
) -> None:
    names = [f"many.{uuid4().hex[:8]}@a/b#" for _ in range(40)]
    for name in names:
        await channel.declare_queue(name)
    await channel.default_exchange.publish(aio_pika.Message(b"x"), names[3])
    source = broker(managed).insights()
    assert source is not None
    async with asyncio.timeout(20):
        while True:
            listed, single = await source.ask([*names, "none"]), await source.ask([*names[:4], "none"])
            if (one := listed[names[3]]) is not None and one.ready == 1 and single[names[3]] is not None:
                break
            await asyncio.sleep(0.2)
    assert listed["none"] is single["none"] is None
    assert all(listed[name] is not None for name in names)
    assert {name: insight for name, insight in listed.items() if name in single} == dict(single)
    await source.close()


async def test_blindness_is_visible_when_the_api_refuses_the_login(managed: Stack) -> None:
    source = broker(managed, username="guest", password="wrong").insights()
    assert source is not None
    insights = Insights(source, ["q"], 1.0)
    running = asyncio.create_task(insights.run())
    await until(lambda: insights.is_blind)
    assert insights.is_growing("q") is None
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_no_api_is_asked_when_the_settings_name_none() -> None:
    assert RabbitBroker(BrokerSettings(hosts=["127.0.0.1:5672"]), {}, Limits()).insights() is None
