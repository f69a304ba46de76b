"""The whole bridge with the real clients inside, between a scripted Kafka and a scripted RabbitMQ, without a fault.

Histories are short and full of faults; here hours pass in which one thing is done again and again.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any

from proxy.access import broker_access, log_access
from proxy.app import App
from proxy.kafka_log import KafkaLog
from proxy.model import Partition
from proxy.rabbitmq import RabbitBroker
from proxy.settings import BrokerSettings, EventType, LogSettings, Route, RoutingKey, Settings
from proxy.simulation import virtual_time
from tests.support.running import running
from tests.wire.chance import EPOCH, seeded
from tests.wire.kafka.cluster import ScriptedCluster
from tests.wire.kafka.node import Node
from tests.wire.loop import WireLoop
from tests.wire.rabbit.cluster import RabbitCluster
from tests.wire.rabbit.connection import RabbitConnection

TOPIC, QUEUE, GROUP = "orders", "work", "bridge"
PLACE = Partition(TOPIC, 0)
KAFKA, RABBIT = "kafka", "rabbit"
DEADLINE = 60.0
"""Virtual seconds in which everything comes about that is waited for."""
LOOK = 0.02
PAUSE = 0.2
"""Between two events of the flow."""
_TAKES = 1_000


def lived(story: Callable[[], Coroutine[Any, Any, None]], loop: type[WireLoop] = WireLoop) -> None:
    """Live a story under virtual time, with turns that take none."""
    with seeded(Random(1)):
        virtual_time.run(story(), partial(loop, Random(1), turn_seconds=0.0))


async def until(is_so: Callable[[], object]) -> None:
    """Look until it is so. Raises TimeoutError."""
    async with asyncio.timeout(DEADLINE):
        while not is_so():  # noqa: ASYNC110 -- seen by looking
            await asyncio.sleep(LOOK)


class Bridge:
    """One `App`, its adapters, the brokers, and what has come out. Made inside a `WireLoop`."""

    def __init__(self, log: dict[str, Any], broker: dict[str, Any]) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WireLoop)
        self.loop = loop
        self.kafka = ScriptedCluster(Random(2), [(KAFKA, 9092)])
        self.kafka.create_topic(TOPIC)
        self.node = Node(1, self.kafka)
        loop.network.serve(f"{KAFKA}:9092", self.node.serve)
        self.rabbit = RabbitCluster(loop.network, Random(3), [f"{RABBIT}:5672"])
        self.queue = self.rabbit.declare_queue(QUEUE)
        self.queue.consumers = 1
        settings = Settings(
            log=LogSettings.model_validate({"hosts": [f"{KAFKA}:9092"], "group": GROUP, "fetch_wait": 0.5} | log),
            broker=BrokerSettings.model_validate({"hosts": self.rabbit.hosts, "depth_interval": 1.0} | broker),
            routes={"main": Route(exchange="", queues=(QUEUE,), policy="static")},
            event_types={
                TOPIC: EventType(
                    name=TOPIC, topic=TOPIC, priority="P1", route="main", routing_key=RoutingKey(constant=QUEUE)
                )
            },
        )
        self.log_access = log_access(settings.log.security, wall=self.wall)
        self.log = KafkaLog(settings.log, settings.limits, access=self.log_access)
        access = broker_access(settings.broker, wall=self.wall)
        self.broker = RabbitBroker(settings.broker, settings.routes, settings.limits, access)
        self.monitor = self.broker.monitor()
        self.lane = self.broker.lane("main")
        self.app = App(
            settings,
            self.log,
            {"main": self.lane},
            self.broker.dead_letter_lane(),
            self.monitor,
            write=lambda _: None,
            wall=self.wall,
            instance="bridge",
        )
        self.produced = 0
        self.received: Counter[int] = Counter()

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        *,
        log: dict[str, Any] | None = None,
        broker: dict[str, Any] | None = None,
        prepare: Callable[["Bridge"], None] = lambda _: None,
    ) -> AsyncIterator["Bridge"]:
        """Run one until the end of the block; `prepare` is for the brokers, before anybody logs in."""
        bridge = cls(log or {}, broker or {})
        prepare(bridge)
        async with running(bridge.app, bridge.log_access.run(), bridge.broker.keep_access()) as task:
            await until(lambda: task.done() or bridge.flows)
            yield bridge
        await bridge.node.close()
        bridge.kafka.close()

    def wall(self) -> float:
        """Return the wall time, in seconds since 1970."""
        return EPOCH + self.loop.time()

    @property
    def flows(self) -> list[Any]:
        """The partitions of this replica; others after a rebalance."""
        return list(self.app.assignment.flows())

    @property
    def generation(self) -> int:
        """The group's generation; every rebalance adds one."""
        return self.kafka.group(GROUP).generation

    def connection(self, name: str) -> RabbitConnection:
        """Return the connection to RabbitMQ that is called so."""
        (found,) = (one for one in self.rabbit.connections if one.name == f"tidegate {name}" and not one.is_over)
        return found

    def produce(self) -> None:
        """Append one numbered event."""
        self.kafka.produce(TOPIC, 0, value=b"%d" % self.produced, timestamp_ms=round(1000 * self.wall()))
        self.produced += 1

    def take(self) -> None:
        """Consume what has come."""
        self.received.update(int(message.body) for message in self.queue.take(_TAKES))

    async def flow(self) -> None:
        """Produce and consume until cancelled."""
        while True:
            self.produce()
            self.take()
            await asyncio.sleep(PAUSE)

    async def arrived(self) -> None:
        """Wait until everything produced has come out and is committed."""

        def is_done() -> bool:
            self.take()
            committed = self.kafka.group(GROUP).committed.get(PLACE)
            return len(self.received) == self.produced and committed is not None and committed.offset == self.produced

        await until(is_done)

    async def reconnect_monitor(self) -> None:
        """Close the connection that publishes nothing, and wait until there is a new one."""
        await self.monitor.close()
        await until(lambda: self.monitor._inquiry._login is not None)

    async def reconnect_lane(self) -> None:
        """Let RabbitMQ close the lane's connection while nothing is in flight, and wait until there is a new one."""
        await until(lambda: not self.lane.in_flight)
        before = self.connection("main")
        before.close(320, "CONNECTION_FORCED - rotated")
        await until(lambda: any(one.name == before.name and one is not before for one in self.rabbit.connections))

    async def reconnect_questions(self) -> None:
        """Close the connections to Kafka on which nothing of the group depends, and wait until there are new ones."""
        client: Any = self.log._client
        before = list(client._conns.values())
        for connection in before:
            connection.close()
        await until(lambda: any(one not in before for one in client._conns.values()))


Rotate = Callable[[Bridge, int], Awaitable[None]]
