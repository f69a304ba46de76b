"""Judges what a replica holds at rest: after the worst of faults no more than one that has seen none.

How many connections, tasks and timers that is follows from its settings; of what the product keeps in maps and lists,
at rest nothing may be as many as the events that went by.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from proxy.bridge.returns import QUIET
from proxy.simulation.virtual_time import PROCESS
from tests.histories.kafka_world import KafkaWorld
from tests.histories.replica import Replica

PATIENCE = QUIET + 3.0
"""Seconds within which it must be so once: connections come and go, a lane tries its way home, nobody asks for what
became of queues any more.
"""
LOOK = 0.1
"""Seconds between two looks."""
_CLIENTS = 2
"""Of the library, in each replica; each has at most two connections with a node, one of them for the group."""
_BESIDE = 2
"""Connections with RabbitMQ beside those of the routes: the dead letters' and the monitor's."""
_MOST_OF_A_KIND = 2
"""Tasks that do the same, where it is not one for each connection, type or route."""
_MOST_KEPT = 64
"""Things of one kind that the product keeps at rest, where there is no bound of their own."""
_BOUNDED = (
    "Tally",
    "DrainRate",
    "Mix",
    "Baseline",
    "_Shape",
    "LeanHeader._shapes",
    "Tier.above",
    "Tier.rivals",
    "tuple.",
)
"""Buckets of statistics, samples of some seconds or of a minute, encoded headers; which tiers stand above which, by the
settings; tuples in what is counted itself.
"""
_OF_RECORDS = ("Totals",)
"""What keeps records that are written, a bounded number: how much each of them holds is not looked at."""
_CONTAINERS = (dict, list, set, frozenset, tuple)


async def judge(world: KafkaWorld) -> None:
    """Accuse what stays more than it may be."""
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE
    left = list(world.replicas)
    while left := [one for one in left if next(excess(world, one), None) is not None]:
        if loop.time() > end:
            for replica in left:
                for wrong in excess(world, replica):
                    world.witness.accuse(f"{replica.name}, at rest: {wrong}")
            return
        await asyncio.sleep(LOOK)


def excess(world: KafkaWorld, replica: Replica) -> Iterator[str]:
    """Yield what is more than it may be at rest."""
    plan = world.plan
    assert plan.wire is not None
    lanes, routes, nodes = len(set(plan.lanes.values())), len(plan.lanes), plan.wire.kafka_nodes
    ours = (link for link in world.network.links if link.process == replica.name and not link.inward.source.is_gone)
    links = Counter(link.at.split("-")[0] for link in ours)
    rabbit, kafka = lanes + _BESIDE, 2 * _CLIENTS * nodes
    for kind, most in (("rabbit", rabbit), ("kafka", kafka)):
        if links[kind] > most:
            yield f"{links[kind]} connections to {kind}, at most {most} are needed"
    types = len(plan.settings.event_types)
    several = {
        "PublishLane.run": routes + 1,
        "Session.keep_channels": lanes + 1,
        "Home.seek": lanes + 1,
        "Connection.__reader": rabbit,
        "Connection.__writer": rabbit,
        "Connection.__heartbeat": rabbit,
        "Channel._reader": 2 * rabbit,
        "Listener.run": types,
        "DeadLetters.run": types,
        "Sending.run": types,
        "AIOKafkaConnection._read": kafka,
        "Fetching._proc_fetch_request": kafka,
        "Network.send": kafka,
        "Event.wait": kafka,
        "Queue.get": rabbit,
    }
    tasks = Counter(
        str(getattr(task.get_coro(), "__qualname__", "?")) for task in world.tasks_of(replica.name) if not task.done()
    )
    for work, count in tasks.items():
        if count > several.get(work, _MOST_OF_A_KIND):
            yield f"{count} tasks {work}, at most {several.get(work, _MOST_OF_A_KIND)} are needed"
    loop: Any = asyncio.get_running_loop()
    timers = sum(not one.cancelled() and one._context.get(PROCESS) == replica.name for one in loop._scheduled)
    if timers > tasks.total():
        yield f"{timers} timers for {tasks.total()} tasks"
    for name, count in sizes(replica.app).items():
        if count > _MOST_KEPT and not name.startswith(_BOUNDED):
            yield f"{count} things are kept in {name}"


def sizes(root: object) -> Counter[str]:
    """Return how much is in the containers of the product's objects that can be reached, by class and name."""
    found, seen, left = Counter[str](), set[int](), [root]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        for name, value in _parts(one):
            if isinstance(value, Collection) and not isinstance(value, (str, bytes, bytearray, memoryview)):
                found[f"{type(one).__qualname__}.{name}"] += len(value)
                if type(one).__qualname__ in _OF_RECORDS:
                    continue
                left += value.values() if isinstance(value, dict) else value if isinstance(value, _CONTAINERS) else ()
            else:
                left.append(value)
    return found


def _parts(one: object) -> Iterator[tuple[str, Any]]:
    if isinstance(one, _CONTAINERS):
        yield "", one
    elif (module := type(one).__module__).startswith("proxy.") and not module.startswith("proxy.settings"):
        slots = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
        names = [*getattr(one, "__dict__", ()), *(name for name in slots if hasattr(one, name))]
        yield from ((name, getattr(one, name)) for name in names)
