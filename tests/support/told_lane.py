"""A lane at a broker that says whatever bytes the test tells it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import pairwise

from pamqp import commands

from proxy.publish_lane import PublishLane
from proxy.publish_lane.wire import WireEvents
from proxy.rabbitmq.connection import RabbitConnector, RabbitWire
from proxy.rabbitmq.login import Logins
from proxy.settings import BrokerSettings, Limits
from tests.support.amqp_server import AmqpServer
from tests.support.events import ADDRESS, PARTITION, events
from tests.support.recipient import Recorder

DEADLINE = 10.0
"""Seconds within which every awaited state must come about."""


class Counted:
    """Passes on what a wire tells and counts the confirms and returns."""

    def __init__(self, inner: WireEvents) -> None:
        self.on_written = inner.on_written
        self.on_channel_closed = inner.on_channel_closed
        self.on_lost = inner.on_lost
        self._inner = inner
        self._count = 0
        self._changed = asyncio.Event()

    def on_confirm(self, channel: int, tag: int, *, multiple: bool, acked: bool) -> None:
        self._inner.on_confirm(channel, tag, multiple=multiple, acked=acked)
        self._count += 1
        self._changed.set()

    def on_return(self, channel: int, message_id: bytes, why: str) -> None:
        self._inner.on_return(channel, message_id, why)
        self._count += 1
        self._changed.set()

    async def counted(self, count: int) -> None:
        async with asyncio.timeout(DEADLINE):
            while self._count < count:
                self._changed.clear()
                await self._changed.wait()


class Connector(RabbitConnector):
    """Counts what is told."""

    told: Counted

    async def connect(self, events: WireEvents, host: str | None = None) -> RabbitWire:
        self.told = Counted(events)
        return await super().connect(self.told, host)


class ToldLane:
    """The lane, its broker and one recipient; event 0 is confirmed already."""

    def __init__(self, server: AmqpServer) -> None:
        self.server = server
        logins = Logins(BrokerSettings(hosts=[server.host], heartbeat=60))
        self.connector = Connector(logins, "test")
        self.lane = PublishLane(
            "orders",
            self.connector,
            window_events=10_000,
            window_bytes=10**8,
            limits=Limits(),
            backoff=0.001,
            backoff_limit=0.01,
        )
        self.recorder = Recorder(ADDRESS, PARTITION)

    @classmethod
    @asynccontextmanager
    async def open(cls) -> "AsyncIterator[ToldLane]":
        async with AmqpServer.open() as server:
            stage = cls(server)
            running = asyncio.create_task(stage.lane.run())
            await stage.publish(1)  # returns when the lane is open
            server.say(commands.Basic.Ack(1))
            await stage.recorder.ended(1)
            try:
                yield stage
                assert not running.done(), "the lane must live on"
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running

    async def publish(self, count: int) -> None:
        start = sum(len(batch.events) for batch in self.recorder.batches)
        async with asyncio.timeout(DEADLINE):
            await self.lane.publish([self.recorder.batch(events(start, start + count))])

    async def say(self, data: bytes, cuts: Sequence[int]) -> None:
        """Send in pieces, each of which the lane's side may read before the next one comes."""
        places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
        for start, end in pairwise(places):
            self.server.say_raw(data[start:end])
            await asyncio.sleep(0)
