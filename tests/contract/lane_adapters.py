"""What the contract tests need of a broker beyond the protocol, once in memory, once on RabbitMQ."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any, Protocol
from uuid import uuid4

import aio_pika

from load.stack import Stack
from proxy.bridge.broker import Address, DepthMonitor, LaneState
from proxy.model import Partition
from proxy.publish_lane import PublishLane
from proxy.rabbitmq import RabbitBroker
from proxy.settings import BrokerSettings, Limits, Route, RoutingKey
from tests.histories.memory_broker import MemoryBroker
from tests.support.recipient import Recorder
from tests.wire.loop import WireLoop
from tests.wire.rabbit.cluster import RabbitCluster

DEADLINE = 20.0
"""Seconds within which every awaited state must come about."""

WIRE_HOSTS = ("rabbit-1:5672", "rabbit-2:5672", "rabbit-3:5672")


async def until(condition: Any, *, deadline: float = DEADLINE) -> None:
    """Wait for a state."""
    async with asyncio.timeout(deadline):
        while not condition():  # noqa: ASYNC110 -- any state at all, and most have no event
            await asyncio.sleep(0.002)


class World(Protocol):
    """One broker, and what a test does to it."""

    async def queue(self, *, bound: int | None = None) -> str:
        """Make a queue that the default exchange leads to under its name."""
        ...

    async def fan_out(self, *queues: str) -> str:
        """Make an exchange that leads every key to all the queues."""
        ...

    def made(self, limits: Limits, **route: Any) -> PublishLane: ...

    def monitor(self) -> DepthMonitor: ...

    async def ids(self, queue: str) -> list[str]:
        """Take everything out of the queue; return the message ids in order."""
        ...

    async def block(self) -> None: ...

    async def unblock(self) -> None: ...

    async def drop_connections(self) -> None: ...


class Bench:
    """A world with what every test needs around it."""

    def __init__(self, world: World) -> None:
        self.world = world

    @asynccontextmanager
    async def lane(
        self, limits: Limits | None = None, *, alone: bool = True, **route: Any
    ) -> AsyncIterator[PublishLane]:
        """Run a lane until the end of the block; it must end then and, if nothing else runs, leave no task."""
        before = asyncio.all_tasks()
        lane = self.world.made(limits or Limits(), **route)
        running = asyncio.create_task(lane.run())
        try:
            await until(lambda: lane.state is LaneState.OPEN or running.done())
            yield lane
            assert not running.done(), running.exception()
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
        assert lane.in_flight == 0
        if alone:
            with suppress(TimeoutError):
                await until(lambda: not asyncio.all_tasks() - before, deadline=3)
            assert not asyncio.all_tasks() - before

    def recorder(self, queue: str, *, exchange: str = "", topic: str | None = None, rank: int = 0) -> Recorder:
        """Return a recipient whose events go to a queue."""
        address = Address(exchange, RoutingKey(constant=queue), "text/plain")
        return Recorder(address, Partition(topic or f"topic.{uuid4().hex[:8]}", 0), rank=rank)


class MemoryWorld:
    """A broker in memory."""

    def __init__(self, seed: int = 0, **broker: Any) -> None:
        self.broker = MemoryBroker(Random(seed), **broker)

    async def queue(self, *, bound: int | None = None) -> str:
        name = f"q{len(self.broker.queues)}"
        self.broker.declare_queue(name, bound=bound)
        return name

    async def fan_out(self, *queues: str) -> str:
        self.broker.declare_exchange("fan")
        for queue in queues:
            self.broker.bind("fan", queue)
        return "fan"

    def made(self, limits: Limits, **route: Any) -> PublishLane:
        return self.broker.lane("memory", Route(**{"exchange": "", **route}), limits, backoff=0.01, backoff_limit=0.1)

    def monitor(self) -> DepthMonitor:
        return self.broker.monitor()

    async def ids(self, queue: str) -> list[str]:
        return [message.id for message in self.broker.queues[queue].take(10**9)]

    async def block(self) -> None:
        self.broker.block()

    async def unblock(self) -> None:
        self.broker.unblock()

    async def drop_connections(self) -> None:
        self.broker.drop_connections()


class WireWorld:
    """A scripted RabbitMQ in memory, with the real client in front of it; runs under a `WireLoop` only."""

    def __init__(self, seed: int = 0) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WireLoop)
        self.broker = RabbitCluster(loop.network, Random(seed), WIRE_HOSTS)
        self.settings = BrokerSettings(hosts=list(WIRE_HOSTS), backoff=0.01)

    async def queue(self, *, bound: int | None = None) -> str:
        name = f"q{len(self.broker.queues)}"
        self.broker.declare_queue(name, bound=bound)
        return name

    async def fan_out(self, *queues: str) -> str:
        self.broker.declare_exchange("fan", "fanout")
        for queue in queues:
            self.broker.bind("fan", queue)
        return "fan"

    def made(self, limits: Limits, **route: Any) -> PublishLane:
        return RabbitBroker(self.settings, {"r": Route(**{"exchange": "", **route})}, limits).lane("r")

    def monitor(self) -> DepthMonitor:
        return RabbitBroker(self.settings, {}, Limits()).monitor()

    async def ids(self, queue: str) -> list[str]:
        return [message.id for message in self.broker.queues[queue].take(10**9)]

    async def block(self) -> None:
        self.broker.block()

    async def unblock(self) -> None:
        self.broker.unblock()

    async def drop_connections(self) -> None:
        self.broker.drop_connections()


class RabbitWorld:
    """A real RabbitMQ."""

    def __init__(self, stack: Stack, channel: aio_pika.abc.AbstractChannel) -> None:
        self.stack = stack
        self.channel = channel
        self.settings = BrokerSettings(hosts=[f"127.0.0.1:{stack.amqp_port}"])

    @classmethod
    @asynccontextmanager
    async def open(cls, stack: Stack) -> AsyncIterator["RabbitWorld"]:
        """Connect for the test's own needs."""
        connection = await aio_pika.connect_robust(stack.amqp)
        async with connection:
            yield cls(stack, await connection.channel())

    async def queue(self, *, bound: int | None = None) -> str:
        name = f"lane.{uuid4().hex[:12]}"
        arguments = None if bound is None else {"x-max-length": bound, "x-overflow": "reject-publish"}
        await self.channel.declare_queue(name, durable=True, arguments=arguments)
        return name

    async def fan_out(self, *queues: str) -> str:
        exchange = await self.channel.declare_exchange(f"fan.{uuid4().hex[:12]}", "fanout", durable=True)
        for name in queues:
            queue = await self.channel.get_queue(name)
            await queue.bind(exchange)
        return exchange.name

    def made(self, limits: Limits, **route: Any) -> PublishLane:
        return RabbitBroker(self.settings, {"r": Route(**{"exchange": "", **route})}, limits).lane("r")

    def monitor(self) -> DepthMonitor:
        return RabbitBroker(self.settings, {}, Limits()).monitor()

    async def messages(self, queue: str) -> list[aio_pika.abc.AbstractIncomingMessage]:
        """Take everything out of the queue."""
        connection = await aio_pika.connect(self.stack.amqp)
        async with connection:
            channel = await connection.channel()
            await channel.set_qos(prefetch_count=1000)
            found: list[aio_pika.abc.AbstractIncomingMessage] = []
            declared = await channel.declare_queue(queue, passive=True)
            count = declared.declaration_result.message_count or 0
            if count:
                async with declared.iterator(no_ack=True) as iterator:
                    async for message in iterator:
                        found.append(message)
                        if len(found) == count:
                            break
            return found

    async def ids(self, queue: str) -> list[str]:
        return [str(message.message_id) for message in await self.messages(queue)]

    async def block(self) -> None:
        await asyncio.to_thread(self.stack.rabbitmqctl, "set_vm_memory_high_watermark", "absolute", "1000")
        # Once the alarm can be read every connection has been told; before, what is published next might slip through.
        async with asyncio.timeout(DEADLINE):
            while not await self._alarm():  # noqa: ASYNC110 -- the broker is asked
                await asyncio.sleep(0.1)

    async def _alarm(self) -> bool:
        return "memory" in await asyncio.to_thread(self.stack.rabbitmqctl, "eval", "rabbit_alarm:get_alarms().")

    async def unblock(self) -> None:
        await asyncio.to_thread(self.stack.rabbitmqctl, "set_vm_memory_high_watermark", "0.4")

    async def drop_connections(self) -> None:
        await asyncio.to_thread(self.stack.rabbitmqctl, "close_all_connections", "test")
