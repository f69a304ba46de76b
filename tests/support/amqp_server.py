"""A broker that answers the client's handshake and then says what the test tells it: for what real ones rarely say."""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

from pamqp import commands, frame
from pamqp.common import FieldTable
from pamqp.header import ContentHeader

CAPABILITIES: FieldTable = {"capabilities": {"publisher_confirms": True, "basic.nack": True}}


class AmqpServer:
    """Accepts one client after the other."""

    def __init__(self) -> None:
        self.host = ""
        self.heard: list[tuple[int, Any]] = []
        self.properties = CAPABILITIES
        """What it says of itself."""
        self.refuse: commands.Connection.Close | None = None
        """Said instead of `tune`."""
        self.refuse_open: commands.Connection.Close | None = None
        """Said instead of `open-ok`."""
        self.acks = False
        """Whether what is published is confirmed, one by one."""
        self.refuse_consumer: str | None = "PRECONDITION_FAILED - of queue type rabbit_classic_queue"
        """How a consumer is refused; None: it is let in."""
        self.depths: dict[str, tuple[int, int]] = {}
        """What a passive declare tells: messages and consumers; others do not exist."""
        self.closes: dict[str, commands.Channel.Close | commands.Connection.Close] = {}
        """How a passive declare of these is refused."""
        self.tells_twice: set[str] = set()
        """Queues of which it tells the depth twice."""
        self.is_mute_to_queues: set[str] = set()
        """At a passive declare of these it falls silent on the channel: answers come in the order of questions."""
        self.is_mute_to_consumers = False
        self.is_mute_to_closes = False
        """Whether the end of a channel is not confirmed."""
        self.hangs_up_on_consumers = False
        self.hangs_up_behind: type | None = None
        """With the answer to such a frame it closes the connection in good order."""
        self.accepted = 0
        """Connections so far."""
        self._tags: Counter[int] = Counter()
        self._ended: set[int] = set()
        """Channels on which it is silent: if it has closed one, RabbitMQ passes over what comes before the answer."""
        self._writer: asyncio.StreamWriter

    @classmethod
    @asynccontextmanager
    async def open(cls, tls: ssl.SSLContext | None = None) -> AsyncIterator[Self]:
        """Listen until the end of the block."""
        self = cls()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24, ssl=tls)
        async with server:
            self.host = "127.0.0.1:{}".format(server.sockets[0].getsockname()[1])  # noqa: UP032 -- quotes within
            yield self

    def say(self, value: Any, channel: int = 1) -> None:
        """Send a frame."""
        if isinstance(value, commands.Channel.Close):
            self._ended.add(channel)
        self._writer.write(frame.marshal(value, channel))

    def give_back(self, message_id: str, body: bytes, channel: int = 1) -> None:
        """Return a message as unroutable."""
        self.say(commands.Basic.Return(312, "NO_ROUTE", "ex", "key"), channel)
        properties = commands.Basic.Properties(message_id=message_id)
        self.say(ContentHeader(body_size=len(body), properties=properties), channel)
        for start in range(0, len(body), 100):
            self.say(frame.body.ContentBody(body[start : start + 100]), channel)

    def say_raw(self, data: bytes) -> None:
        """Send bytes, frames or not."""
        self._writer.write(data)

    def read(self, *, on: bool) -> None:
        """Read on, or no more."""
        transport = self._writer.transport
        assert isinstance(transport, asyncio.Transport)
        (transport.resume_reading if on else transport.pause_reading)()

    def hang_up(self) -> None:
        """Cut the connection."""
        self._writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.accepted += 1
        self._tags.clear()
        self._ended.clear()
        try:
            await reader.readexactly(8)
            self.say(commands.Connection.Start(0, 9, self.properties, "PLAIN", "en_US"), 0)
            while True:
                head = await reader.readexactly(7)
                _, channel, size = frame.frame_parts(head)
                assert size is not None
                value = frame.unmarshal(head + await reader.readexactly(size + 1))[2]
                self.heard.append((channel, value))
                if isinstance(value, commands.Channel.CloseOk):
                    self._ended.discard(channel)
                elif channel not in self._ended:
                    self._answer(channel, value)
                if self.hangs_up_behind is not None and isinstance(value, self.hangs_up_behind):
                    return
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    def _answer(self, channel: int, value: Any) -> None:  # noqa: C901 -- a table
        match value:
            case commands.Connection.StartOk():
                self.say(self.refuse or commands.Connection.Tune(2047, 131_072, 5), 0)
            case commands.Connection.Open():
                self.say(self.refuse_open or commands.Connection.OpenOk(), 0)
            case commands.Connection.Close():
                self.say(commands.Connection.CloseOk(), 0)
            case commands.Channel.Open():
                self.say(commands.Channel.OpenOk(), channel)
            case commands.Confirm.Select():
                self.say(commands.Confirm.SelectOk(), channel)
            case commands.Channel.Close() if not self.is_mute_to_closes:
                self.say(commands.Channel.CloseOk(), channel)
            case commands.Queue.Declare():
                self._tell_depth(channel, value.queue)
            case commands.Basic.Consume():
                self._meet_consumer(channel)
            case commands.Basic.Publish():
                self._tags[channel] += 1
                if self.acks:
                    self.say(commands.Basic.Ack(self._tags[channel]), channel)

    def _tell_depth(self, channel: int, queue: str) -> None:
        if queue in self.is_mute_to_queues:
            self._ended.add(channel)
        elif queue in self.closes:
            close = self.closes[queue]
            self.say(close, channel if isinstance(close, commands.Channel.Close) else 0)
        elif queue in self.depths:
            for _ in range(1 + (queue in self.tells_twice)):
                self.say(commands.Queue.DeclareOk(queue, *self.depths[queue]), channel)
        else:
            self.say(commands.Channel.Close(404, f"NOT_FOUND - no queue '{queue}'", 50, 10), channel)

    def _meet_consumer(self, channel: int) -> None:
        if self.hangs_up_on_consumers:
            self.hang_up()
        elif self.refuse_consumer is not None and not self.is_mute_to_consumers:
            self.say(commands.Channel.Close(406, self.refuse_consumer, 60, 20), channel)
        elif not self.is_mute_to_consumers:
            self.say(commands.Basic.ConsumeOk("c"), channel)
