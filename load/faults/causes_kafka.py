"""Faults of Kafka and of the way to it. Each returns when it began and when it ended, on the monotonic clock."""

import asyncio
import time

from load.faults.causes_rabbitmq import Span, hold, slow_down
from load.faults.replicas import GROUP, SESSION_SECONDS
from load.faults.streams import STREAMS
from load.faults.world import World

STILL_SECONDS = 2.5
"""Readers stand still so long before the log is truncated: shorter than half the session, so they keep their shares."""
MOST_BEYOND_SESSION = 3.0
LOOK_SECONDS = 0.5
KNOWN_LOOKS = 40
"""Whether the replicas have committed something of a topic made anew; no more than so often."""
BEYOND = 100
"""Events of a partition in a topic filled again, more than there were before."""


async def restart(world: World) -> Span:
    """Stop Kafka in order, start it again."""
    return await _away(world, kill=False)


async def kill(world: World) -> Span:
    """Kill Kafka, start it again."""
    return await _away(world, kill=True)


async def _away(world: World, *, kill: bool) -> Span:
    began = time.monotonic()
    await asyncio.to_thread(world.stack.stop_kafka, kill=kill)
    await asyncio.sleep(world.seconds())
    await asyncio.to_thread(world.stack.start_kafka)
    return began, time.monotonic()


async def reset(world: World) -> Span:
    """Reset every connection."""
    for link in world.kafka_links():
        link.reset()
    return time.monotonic(), time.monotonic()


async def black_hole(world: World) -> Span:
    """Let nothing pass for a while."""
    return await hold(world.kafka_links(), world.seconds())


async def cut_off(world: World) -> Span:
    """Let one replica alone not reach Kafka, until others have its partitions."""
    seconds = SESSION_SECONDS + world.chance.uniform(1.0, MOST_BEYOND_SESSION)
    return await hold([world.replica().kafka], seconds)


async def slow(world: World) -> Span:
    """Let everything pass slowly."""
    return await slow_down(world.kafka_links(), world.seconds())


async def add_partition(world: World) -> Span:
    """Give a topic one more partition, and events to it at once."""
    at, stream = world.stream()
    count = len(world.source.of(at))
    began = time.monotonic()
    await world.kafka.grow(stream.name, count + 1)
    world.source.add(at, count)
    return began, time.monotonic()


async def recreate_topic(world: World) -> Span:
    """Delete a topic with what is in it, create it again after a while."""
    at, _ = world.stream()
    return await _recreate(world, at, world.seconds())


async def refill_topic(world: World) -> Span:
    """Delete a topic, create it again at once, and write more into it than was in it, before anybody looks.

    Every offset that Tidegate knows then exists in the new log, too, where it belongs to another event. It is done to
    a topic that was made anew a moment before: else there would be as much to write as was written since the start.
    """
    at, stream = world.stream()
    before = await world.kafka.notes(GROUP)
    await _recreate(world, at, 0.0)
    for _ in range(KNOWN_LOOKS):
        await asyncio.sleep(LOOK_SECONDS)
        notes = await world.kafka.notes(GROUP)
        places = [(stream.name, number) for number in world.source.of(at)]
        if all(place in notes and notes[place] != before.get(place) for place in places):
            break
    ends = [ledger.end for ledger in world.source.of(at).values()]
    return await _recreate(world, at, 0.0, refill=max(ends) + BEYOND)


async def _recreate(world: World, at: int, seconds: float, refill: int = 0) -> Span:
    stream, source = STREAMS[at], world.source
    async with source.held(at):
        began = time.monotonic()
        committed = await world.kafka.committed(GROUP)
        ledgers = source.of(at)
        await world.kafka.delete(stream.name)
        for partition, ledger in ledgers.items():
            ledger.drop(committed.get((stream.name, partition), 0))
            ledger.begin_anew()
        await asyncio.sleep(seconds)
        await world.kafka.create(stream.name, len(ledgers))
        for partition in ledgers:
            await source.fill(at, partition, refill)
    return began, time.monotonic()


async def truncate(world: World) -> Span:
    """Let all replicas stand still for a moment, drop what they have not read yet, let them go on."""
    at, stream = world.stream()
    source = world.source
    began = time.monotonic()
    running = [one.worker for one in world.replicas.every if one.worker is not None]
    for worker in running:
        worker.suspend()
    try:
        await asyncio.sleep(STILL_SECONDS)
        ledgers = source.of(at)
        ends = {number: ledger.end for number, ledger in ledgers.items()}
        committed = await world.kafka.committed(GROUP)
        await world.kafka.truncate(stream.name, ends)
        for number, ledger in ledgers.items():
            ledger.drop(committed.get((stream.name, number), 0), ends[number])
    finally:
        for worker in running:
            worker.resume()
    return began, time.monotonic()
