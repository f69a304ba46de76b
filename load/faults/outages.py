"""Faults of a cluster that events must flow through: one node is lost, and stays so until the flow is back without it.

Each begins the fault and returns it; what ends it is called when the flow is back, or was waited for in vain.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from load import kafka_cluster
from load.faults.replicas import GROUP
from load.faults.streams import FLOWING
from load.faults.world import World


@dataclass(frozen=True)
class Outage:
    """A node that is lost."""

    began: float
    """On the monotonic clock."""
    role: str
    """The node, as the stack calls it."""
    mend: Callable[[], Awaitable[None]]
    """Ends the fault; returns when the node answers again."""


Choice = Callable[[World], Awaitable[str]]


async def leader(world: World) -> str:
    """Return the node that leads a partition drawn by chance."""
    return (await _leader_and_follower(world))[0]


async def follower(world: World) -> str:
    """Return a node that follows a partition drawn by chance."""
    return (await _leader_and_follower(world))[1]


async def controller(world: World) -> str:
    """Return Kafka's active controller."""
    number = await asyncio.to_thread(kafka_cluster.controller, world.stack.kafka_ports[0])
    return world.stack.kafka_roles[number - 1]


async def coordinator(world: World) -> str:
    """Return the coordinator of the replicas' group."""
    return world.stack.kafka_roles[await world.kafka.coordinator(GROUP) - 1]


async def quorum_leader(world: World) -> str:
    """Return RabbitMQ's node that leads a queue drawn by chance."""
    _, stream = world.stream()
    # The members know; what `list_queues` tells may be what was true before the last round.
    code = f"{{ok, _, {{_, Node}}}} = ra:members({{'%2F_{stream.name}', node()}}), io:format(\"~s\", [Node])."
    text = await asyncio.to_thread(world.stack.rabbitmqctl, "eval", code)
    return next(role for role in world.stack.rabbitmq_roles if world.stack.erlang_name(role) in text)


async def killed(choose: Choice, world: World) -> Outage:
    """Kill a node."""
    role = await choose(world)
    began = time.monotonic()
    await asyncio.to_thread(partial(world.stack.stop, role, kill=True))
    return Outage(began, role, lambda: asyncio.to_thread(world.stack.start, role))


async def silent(choose: Choice, world: World) -> Outage:
    """Let a node stand still (SIGSTOP)."""
    role = await choose(world)
    world.avoid(role)
    began = time.monotonic()
    world.stack.suspend(role)

    async def mend() -> None:
        world.stack.resume(role)
        world.return_to(role)

    return Outage(began, role, mend)


async def cut_off(choose: Choice, world: World) -> Outage:
    """Let a node reach no other node, and none of them reach it; clients reach all."""
    role = await choose(world)
    world.avoid(role)
    began = time.monotonic()
    await asyncio.to_thread(world.stack.cut_off, role)

    async def mend() -> None:
        await asyncio.to_thread(world.stack.heal)
        await world.all_answer()  # a node of RabbitMQ that saw too few others has closed its ports until now
        world.return_to(role)

    return Outage(began, role, mend)


async def unreachable(choose: Choice, world: World) -> Outage:
    """Let one replica not reach a node, which all others do."""
    role = await choose(world)
    replica = world.chance.choice(world.connected(role) or world.replicas.every)
    link = world.link(replica, role)
    began = time.monotonic()
    link.hold()

    async def mend() -> None:
        link.release()

    return Outage(began, role, mend)


OUTAGES: dict[str, Callable[[World], Awaitable[Outage]]] = {
    "leader-killed": partial(killed, leader),
    "leader-silent": partial(silent, leader),
    "follower-killed": partial(killed, follower),
    "follower-silent": partial(silent, follower),
    "controller-killed": partial(killed, controller),
    "controller-silent": partial(silent, controller),
    "coordinator-killed": partial(killed, coordinator),
    "coordinator-silent": partial(silent, coordinator),
    "kafka-node-cut-off": partial(cut_off, leader),
    "queue-leader-killed": partial(killed, quorum_leader),
    "queue-leader-silent": partial(silent, quorum_leader),
    "rabbitmq-node-cut-off": partial(cut_off, quorum_leader),
    "rabbitmq-node-unreachable": partial(unreachable, quorum_leader),
}


async def _leader_and_follower(world: World) -> tuple[str, str]:
    stream = world.chance.choice(FLOWING)
    leaders = await world.kafka.leaders(stream.name)
    leads, keep, _ = leaders[world.chance.choice(sorted(leaders))]
    follows = world.chance.choice([number for number in keep if number != leads])
    return world.stack.kafka_roles[leads - 1], world.stack.kafka_roles[follows - 1]
