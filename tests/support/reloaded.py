"""A whole process over a log in memory, whose settings change while it runs."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any

from proxy.app import App
from proxy.model import Partition
from proxy.settings import EventType, Limits, Route, Settings
from proxy.simulation import virtual_time
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog
from tests.support.bridge_fakes import ScriptedLane, ScriptedMonitor
from tests.support.memory_board import MemoryBoard
from tests.support.process import TRAITS, settings

ORDERS, MAILS = Partition("orders", 0), Partition("mails", 0)


def of(policy: str = "static", **types: Mapping[str, Any]) -> Settings:
    """Return settings of these event types on one route."""
    kinds = {name: EventType(name=name, topic=name, **TRAITS | traits) for name, traits in types.items()}
    route = Route(exchange="x", policy=policy, queues=("q1",))
    limits = Limits(drain_deadline=2.0, uncommitted_events=1_000)
    return settings(event_types=kinds, patterns=(), routes={"r": route}, limits=limits)


class ScriptedLanes:
    """Makes a lane for each route that comes; those of routes that stay are kept."""

    def __init__(self, **lanes: ScriptedLane) -> None:
        self.every = lanes

    def lanes(self, routes: Mapping[str, Route]) -> Mapping[str, ScriptedLane]:
        """See `proxy.bridge.broker.Lanes`."""
        self.every = {name: self.every.get(name) or ScriptedLane() for name in routes}
        return self.every


class Running:
    """A process that reads `orders` and `mails`, two partitions each, from a log in memory."""

    def __init__(self, now: Settings, board: MemoryBoard | None = None) -> None:
        self.cluster = MemoryCluster(Random(1))
        for topic in ("orders", "mails"):
            self.cluster.create_topic(topic, 2)
        self.lane, self.now = ScriptedLane(), now
        self.maker = ScriptedLanes(r=self.lane)
        self.records: list[Mapping[str, Any]] = []
        log = MemoryLog(self.cluster, self.now.log, self.now.limits, name="one")
        self.app = App(
            self.now,
            log,
            self.maker.lanes(now.routes),
            ScriptedLane(),
            ScriptedMonitor({}),
            write=self.records.append,
            wall=asyncio.get_running_loop().time,
            instance="i",
            maker=self.maker,
            board=board,
        )
        self.task = asyncio.create_task(self.app.run())

    def produce(self, topic: str, count: int, number: int = 0) -> None:
        for _ in range(count):
            self.cluster.produce(topic, number, value=topic.encode())

    def written(self, topic: str) -> list[str]:
        return [event.position.replace("#", "p") for event in self.lane.written if event.value == topic.encode()]

    def content_types(self, topic: str) -> list[str]:
        """Return with which one each batch of a topic was written."""
        return [batch.address.content_type for batch in self.lane.batches if batch.partition.topic == topic]

    def committed(self, partition: Partition) -> int | None:
        told = self.cluster.group("g").committed.get(partition)
        return None if told is None else told.offset


def lived(
    story: Callable[[Running], Awaitable[None]], now: Settings | None = None, board: MemoryBoard | None = None
) -> None:
    """Live a story with a process that has read for six seconds, and stop it in order."""

    async def live() -> None:
        it = Running(now or of(orders={}, mails={}), board)
        await asyncio.sleep(6)
        await story(it)
        it.lane.finish()
        it.app.stop()
        await it.task

    virtual_time.run(live())
