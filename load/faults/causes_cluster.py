"""Faults of clusters that end by themselves. Each returns when it began and when it ended, on the monotonic clock."""

import asyncio
import time

from load import kafka_cluster
from load.faults import outages
from load.faults.streams import STREAMS
from load.faults.world import Span, World
from load.stack import StackError

IN_SYNC_SECONDS = 60.0
"""Within so long, a node that was started again follows everything."""
LOOK_SECONDS = 0.25
HOUR_MS = 3_600_000


async def roll_kafka(world: World) -> Span:
    """Stop each node of Kafka in order and start it again, one after another, as an update does."""
    began = time.monotonic()
    for role in world.stack.kafka_roles:
        await in_sync(world)
        await asyncio.to_thread(world.stack.stop, role)
        await asyncio.to_thread(world.stack.start, role)
    return began, time.monotonic()


async def roll_rabbitmq(world: World) -> Span:
    """Stop each node of RabbitMQ in order and start it again, one after another, as an update does."""
    began = time.monotonic()
    for role in world.stack.rabbitmq_roles:
        await asyncio.to_thread(_await_dispensable, world, role)
        await asyncio.to_thread(world.stack.stop, role)
        await asyncio.to_thread(world.stack.start, role)
    return began, time.monotonic()


def _await_dispensable(world: World, role: str) -> None:
    """Wait until no queue would lose its majority with this node. Raises StackError if it does not come."""
    deadline = time.monotonic() + IN_SYNC_SECONDS
    while world.stack.rabbitmqctl("eval", "rabbit_quorum_queue:list_with_minimum_quorum().", role=role).strip() != "[]":
        if time.monotonic() > deadline:
            raise StackError(f"queues need {role} still after {IN_SYNC_SECONDS:.0f} s")


async def in_sync(world: World) -> None:
    """Wait until every partition is in sync on all nodes that keep it. Raises StackError if it does not come."""
    deadline = time.monotonic() + IN_SYNC_SECONDS
    for stream in STREAMS:
        while any(len(synced) < len(keep) for _, keep, synced in (await world.kafka.leaders(stream.name)).values()):
            if time.monotonic() > deadline:
                raise StackError(f"{stream.name} is not in sync after {IN_SYNC_SECONDS:.0f} s")
            await asyncio.sleep(LOOK_SECONDS)


async def reassign(world: World) -> Span:
    """Take every partition of a topic from the node that leads it, and give it back as the last of its list."""
    _, stream = world.stream()
    port = world.stack.kafka_ports[0]
    found = await world.kafka.leaders(stream.name)
    without = {number: [one for one in keep if one != leads] for number, (leads, keep, _) in found.items()}
    began = time.monotonic()
    await asyncio.to_thread(kafka_cluster.reassign, port, stream.name, without)
    await asyncio.sleep(world.seconds())
    again = {number: [*ids, found[number][0]] for number, ids in without.items()}
    await asyncio.to_thread(kafka_cluster.reassign, port, stream.name, again)
    await in_sync(world)
    return began, time.monotonic()


async def hide_node(world: World) -> Span:
    """Let one replica not reach a leader, which all others do: what it leads stands still for that replica."""
    outage = await outages.unreachable(outages.leader, world)
    await asyncio.sleep(world.beyond_session())
    await outage.mend()
    return outage.began, time.monotonic()


async def change_clocks(world: World) -> Span:
    """Put the producers' clocks an hour ahead, others an hour back, for a while."""
    began = time.monotonic()
    for at in range(len(STREAMS)):
        world.source.skew_ms[at] = world.chance.choice((-HOUR_MS, HOUR_MS))
    await asyncio.sleep(world.seconds())
    world.source.skew_ms.clear()
    return began, time.monotonic()


async def kill_consumers(world: World) -> Span:
    """Let the services behind RabbitMQ die with what they hold, and come back after a while."""
    began = time.monotonic()
    world.sink.close()
    await asyncio.sleep(world.seconds())
    world.sink.reopen()
    return began, time.monotonic()
