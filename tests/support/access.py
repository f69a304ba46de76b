"""The whole bridge in this process on secured listeners, and a flow of events that must miss and double none."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from aio_pika.abc import AbstractIncomingMessage

from proxy import config
from proxy.access import log_access
from proxy.app import App
from proxy.kafka_log import KafkaLog
from proxy.kafka_log.login import SecuredConnection
from proxy.rabbitmq import RabbitBroker
from tests.support.running import running
from tests.support.tidegate import Ends, until

PAUSE = 0.01
"""Between two events of the flow."""


class Bridge:
    """One `App` on real brokers, its parts at hand."""

    def __init__(self, settings: config.Settings) -> None:
        self.records: list[Mapping[str, Any]] = []
        self.log_access = log_access(settings.log.security)
        self.broker = RabbitBroker(settings.broker, settings.routes, settings.limits)
        self.log = KafkaLog(settings.log, settings.limits, access=self.log_access)
        self.monitor = self.broker.monitor()
        self.lanes = {name: self.broker.lane(name) for name in settings.routes}
        self.app = App(
            settings, self.log, self.lanes, self.broker.dead_letter_lane(), self.monitor, write=self.records.append
        )

    @classmethod
    @asynccontextmanager
    async def running(cls, folder: Path, settings: dict[str, Any]) -> AsyncIterator["Bridge"]:
        """Run until the end of the block."""
        file = folder / "tidegate.yaml"
        file.write_text(yaml.safe_dump(settings))
        bridge = cls(config.load(file, {}))
        async with running(bridge.app, bridge.log_access.run(), bridge.broker.keep_access()):
            yield bridge

    @property
    def generation(self) -> int:
        """The group's generation; every rebalance adds one."""
        return int(self.log._consumer._coordinator.generation)

    @property
    def connections(self) -> list[SecuredConnection]:
        """All connections to Kafka."""
        clients = (self.log._client, self.log._consumer._client)
        return [connection for client in clients for connection in client._conns.values()]

    async def logged_in_anew(self) -> None:
        """Wait until every connection to Kafka has logged in once more, or is another one."""
        before = {id(connection): connection._renewal for connection in self.connections}
        await until(lambda: all(before.get(id(one)) is not one._renewal for one in self.connections))

    async def reconnect_questions(self) -> None:
        """Close the connections on which nothing of the group depends, and wait until there are new ones."""
        before = list(self.log._client._conns.values())
        for connection in before:
            connection.close()
        await until(lambda: any(one not in before for one in self.log._client._conns.values()))

    async def reconnect_monitor(self) -> None:
        """Close the connection that publishes nothing, and wait until there is a new one."""
        await self.monitor.close()
        await until(lambda: self.monitor._inquiry._login is not None)


class Flow:
    """Numbered events, produced without a pause and received on the other side."""

    def __init__(self, ends: Ends, topic: str, queue: str) -> None:
        self._ends, self._topic, self._queue = ends, topic, queue
        self.produced = 0
        self.received: Counter[int] = Counter()

    @classmethod
    @asynccontextmanager
    async def through(cls, ends: Ends, topic: str, queue: str) -> AsyncIterator["Flow"]:
        """Produce until the end of the block, and receive until as many events have come as were produced."""
        flow = cls(ends, topic, queue)
        consumed = await ends.channel.declare_queue(queue, passive=True)
        tag = await consumed.consume(flow._on_message, no_ack=True)
        producing = asyncio.create_task(flow._produce())
        try:
            await until(lambda: flow.received)
            yield flow
        finally:
            producing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await producing
        await until(lambda: len(flow.received) >= flow.produced)
        await consumed.cancel(tag)

    async def moves(self) -> None:
        """Wait until events come that are produced from now on."""
        now = self.produced
        await until(lambda: max(self.received, default=0) > now)

    async def _on_message(self, message: AbstractIncomingMessage) -> None:
        self.received[int(message.body)] += 1

    async def _produce(self) -> None:
        while True:
            sending = await self._ends.producer.send(self._topic, b"%d" % self.produced)
            self.produced += 1
            await sending
            await asyncio.sleep(PAUSE)
