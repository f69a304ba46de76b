"""Faults of the way to a broker. Each returns when it began and when it ended, on the monotonic clock."""

import asyncio
import time
from collections.abc import Sequence

from load.faults.link import CALM, Link, Weather
from load.faults.world import Span, World

SLOW = Weather(delay=0.2, jitter=0.05, loss=0.01)


async def reset_rabbitmq(world: World) -> Span:
    """Reset every connection to RabbitMQ."""
    return _reset(world.rabbitmq_links())


async def reset_kafka(world: World) -> Span:
    """Reset every connection to Kafka."""
    return _reset(world.kafka_links())


async def hold_rabbitmq(world: World) -> Span:
    """Let nothing pass to and from RabbitMQ for a while."""
    return await _hold(world.rabbitmq_links(), world.seconds())


async def hold_kafka(world: World) -> Span:
    """Let nothing pass to and from Kafka for a while."""
    return await _hold(world.kafka_links(), world.seconds())


async def cut_off(world: World) -> Span:
    """Let one replica alone not reach Kafka, until others have its partitions."""
    seconds = world.beyond_session()
    return await _hold(world.replica().kafka, seconds)


async def slow_rabbitmq(world: World) -> Span:
    """Let everything pass slowly to and from RabbitMQ for a while."""
    return await _slow(world.rabbitmq_links(), world.seconds())


async def slow_kafka(world: World) -> Span:
    """Let everything pass slowly to and from Kafka for a while."""
    return await _slow(world.kafka_links(), world.seconds())


def _reset(links: Sequence[Link]) -> Span:
    for link in links:
        link.reset()
    return time.monotonic(), time.monotonic()


async def _hold(links: Sequence[Link], seconds: float) -> Span:
    began = time.monotonic()
    for link in links:
        link.hold()
    try:
        await asyncio.sleep(seconds)
    finally:
        for link in links:
            link.release()
    return began, time.monotonic()


async def _slow(links: Sequence[Link], seconds: float) -> Span:
    began = time.monotonic()
    for link in links:
        link.weather = SLOW
    try:
        await asyncio.sleep(seconds)
    finally:
        for link in links:
            link.weather = CALM
    return began, time.monotonic()
