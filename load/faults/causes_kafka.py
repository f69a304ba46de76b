"""Faults of Kafka. Each returns when it began and when it ended, on the monotonic clock."""

import asyncio
import time
from functools import partial

from load.faults.replicas import GROUP
from load.faults.streams import STREAMS
from load.faults.world import Span, World

STILL_SECONDS = 2.5
"""Readers stand still so long before the log is truncated: shorter than half the session, so they keep their shares."""
LOOK_SECONDS = 0.5
KNOWN_LOOKS = 40
"""Whether the replicas have committed something of a topic made anew; no more than so often."""
BEYOND = 100
"""Events of a partition in a topic filled again, more than there were before."""


async def restart(world: World) -> Span:
    """Stop Kafka in order, start it again."""
    return await world.away(world.stack.stop_kafka, world.stack.start_kafka)


async def kill(world: World) -> Span:
    """Kill Kafka, start it again."""
    return await world.away(partial(world.stack.stop_kafka, kill=True), world.stack.start_kafka)


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
        await source.begin_anew(at)
        for partition in ledgers:
            await source.fill(at, partition, refill)
        await world.on_created(stream.name)
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
