"""A whole process on scripted ends."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from proxy.app import App
from proxy.bridge.broker import QueueState
from proxy.bridge.event_log import Survey
from proxy.model import Partition
from proxy.settings import BrokerSettings, EventType, LogSettings, Route, RoutingKey, Settings, TypePattern
from tests.support.bridge_fakes import ScriptedLane, ScriptedLog, ScriptedMonitor
from tests.support.events import events
from tests.support.memory_board import MemoryBoard

TRAITS: dict[str, Any] = {"priority": "P1", "route": "r", "routing_key": RoutingKey(constant="q")}


def settings(**parts: Any) -> Settings:
    return Settings(
        **{
            "log": LogSettings(hosts=["kafka:9092"], group="g"),
            "broker": BrokerSettings(hosts=["rabbit:5672"]),
            "routes": {"r": Route(exchange="x", policy="static", queues=("q1",))},
            "event_types": {"orders": EventType(name="orders", topic="orders", **TRAITS)},
            "patterns": (TypePattern(pattern="news.*", **TRAITS),),
            **parts,
        }
    )


class Process:
    """An `App` and its ends; `async with` runs it and stops it in order."""

    def __init__(self, wall: Callable[[], float] | None = None, board: MemoryBoard | None = None, **parts: Any) -> None:
        self.log, self.lane, self.dead_lane = ScriptedLog(), ScriptedLane(), ScriptedLane()
        self.log.surveyed = Survey(frozenset({"orders", "news.a", "other"}), frozenset(), frozenset())
        self.monitor = ScriptedMonitor({"q1": QueueState(3, 1)})
        self.records: list[Mapping[str, Any]] = []
        self.app = App(
            settings(**parts),
            self.log,
            {"r": self.lane},
            self.dead_lane,
            self.monitor,
            write=self.records.append,
            wall=wall or asyncio.get_running_loop().time,
            instance="i",
            board=board,
        )
        self.running = asyncio.create_task(self.app.run())

    async def feed(self, partition: Partition, first: int, end: int) -> None:
        """Assign a partition and let events be read."""
        self.log.paused |= set(self.app.assignment.on_assigned([partition]))
        self.log.fetched = {partition: events(first, end)}
        await asyncio.sleep(0.5)

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the records of one kind."""
        return [record for record in self.records if record["kind"] == kind]
