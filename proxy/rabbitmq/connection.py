"""A lane's wire over a plain aio-pika connection: frames in large pieces, confirms as they come.

aio-pika has no way to publish many messages at once, so this stands on the layer below it, aiormq, which logs in, keeps
heartbeats and opens channels. Frames that are already encoded are written beside it, each time whole ones; what tells
of messages is taken off before it (`intake`), closes by a channel class of its own (`ConfirmChannel`). The private
names used are listed there and beside `_unblocked`; tests fail when aiormq changes one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiormq
from aiormq.abc import AbstractConnection, ChannelFrame
from aiormq.exceptions import (
    ConnectionCommandInvalid,
    ConnectionFrameError,
    ConnectionInternalError,
    ConnectionSyntaxError,
    ConnectionUnexpectedFrame,
)
from pamqp import commands
from pamqp.heartbeat import Heartbeat

from proxy.errors import BrokerError
from proxy.publish_lane.wire import Sent, WireEvents
from proxy.rabbitmq.login import Login, Logins
from proxy.rabbitmq.socket_queue import unacknowledged
from proxy.rabbitmq.words import cause, silent, speaking

_FRAMES_WAITING = 256
"""Frames read but not yet looked at, per channel."""
_HEARTBEATS_WAITING = 4
"""More heartbeats than this, unread by a blocked broker, are dropped: they would fill the write queue of 10."""
_CHANNELS = 65_535
"""Channel numbers, if the broker sets no bound."""
_BUFFERED_BYTES = 64 * 1024
"""As much may wait for the socket before the next piece waits, too: where asyncio's transports pause by default."""
_REFUSALS = (ConnectionFrameError, ConnectionSyntaxError, ConnectionCommandInvalid, ConnectionUnexpectedFrame)
"""How a broker closes the connection over what was written to it (501, 502, 503, 505)."""
_HEARTBEAT = ChannelFrame.marshall(0, [Heartbeat()]).payload


class ConfirmChannel(aiormq.Channel):
    """A channel that hands its closing on at once; confirms and returns never come to it (`intake`).

    Overrides the private `_on_close_frame`.
    """

    def __init__(self, connection: AbstractConnection, number: int, events: WireEvents) -> None:
        super().__init__(connection, number, publisher_confirms=True, frame_buffer=_FRAMES_WAITING)
        self.end_is_known = False
        """Whether the broker has closed it, or the wire does."""
        self._events = events

    async def close_at_broker(self) -> None:
        """Ask the broker to close it, and wait until it has; cancelled, it still closes when the answer comes.

        Where its own `close` is cancelled, aiormq asks again, and that ends the connection.
        """
        frame = commands.Channel.Close(reply_code=200, class_id=0, method_id=0)
        await self.write_queue.put(ChannelFrame.marshall(self.number, [frame]))
        await asyncio.wait([self.closing])

    async def _on_close_frame(self, frame: commands.Channel.Close) -> None:
        # Told before aiormq answers: not a single frame may be written after the answer, nor one left out before it.
        self.end_is_known = True
        rest = self._events.on_channel_closed(self.number, frame.reply_text or str(frame.reply_code))
        if rest is not None:
            await asyncio.wait([rest])
        await super()._on_close_frame(frame)


class RabbitWire:
    """See `proxy.publish_lane.wire.Wire`."""

    def __init__(self, login: Login, events: WireEvents) -> None:
        self._login = login
        self._events = events
        self._underlay = login.underlay
        self._intake = login.intake
        self._intake.tell(events)
        self._transport = login.writer.transport
        self._queue = self._underlay.write_queue
        # aiormq tells it only through a coroutine that waits until it is over, and it is asked in every turn.
        self._unblocked: asyncio.Event = self._underlay._Connection__connection_unblocked  # type: ignore[attr-defined]  # noqa: SLF001
        self._number = 0
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._closing = self._underlay.closing
        self._closing.add_done_callback(self._on_closing)

    @property
    def host(self) -> str:
        """Which broker it leads to."""
        return self._login.host

    @property
    def frame_max(self) -> int:
        """The longest frame, in bytes."""
        return int(self._underlay.connection_tune.frame_max or 0)

    @property
    def heartbeat(self) -> float:
        """Seconds within which the broker says something."""
        return float(self._underlay.connection_tune.heartbeat or 0)

    @property
    def heard(self) -> float:
        """When something last came."""
        return self._login.heard

    @property
    def writable(self) -> bool:
        """Whether a piece can be handed over now."""
        return not self._queue.full()

    @property
    def unsent(self) -> int:
        """Bytes handed over that the broker's host has not acknowledged."""
        return self._transport.get_write_buffer_size() + unacknowledged(self._transport.get_extra_info("socket"))

    def is_blocked(self) -> bool:
        """Return whether the broker takes nothing now; look often, for heartbeats pile up meanwhile."""
        if self._unblocked.is_set() and self._underlay.connected.is_set():
            return False
        if self._queue.qsize() > _HEARTBEATS_WAITING:
            self._drop_heartbeats()
        return True

    async def open_channel(self) -> int:
        """Open a channel with confirms; return its number."""
        channels = self._underlay.channels
        most = self._underlay.connection_tune.channel_max or _CHANNELS
        for _ in range(most):
            # The next number, not the lowest free one: what still arrives for a closed channel must not meet a new one.
            self._number = self._number % most + 1
            if self._number not in channels:
                break
        else:
            raise BrokerError(f"{self.host}: all {most} channels are in use")
        with speaking(self.host):
            channel = ConfirmChannel(self._underlay, self._number, self._events)
            channels[self._number] = channel
            channel.closing.add_done_callback(lambda closing: self._on_channel_end(channel, closing))
            await channel.open()
        self._intake.take(self._number)
        return self._number

    async def close_channel(self, number: int) -> None:
        """Close a channel on which nothing is open."""
        channel = self._underlay.channels.get(number)
        if isinstance(channel, ConfirmChannel) and not channel.end_is_known:
            channel.end_is_known = True
            with speaking(self.host):
                await channel.close_at_broker()

    def write(self, piece: bytes, sent: Sequence[Sent]) -> bool:  # noqa: ARG002 -- bytes say it all
        """Hand over whole frames; they have left when the socket has, or soon will have, all but a little."""
        if self._transport.is_closing():
            return False  # the client has ended the connection, and is about to say so
        self._transport.write(piece)
        if self._transport.get_write_buffer_size() < _BUFFERED_BYTES:
            return True
        written = self._loop.create_future()
        written.add_done_callback(self._on_written)
        self._queue.put_nowait(ChannelFrame(payload=b"", should_close=False, drain_future=written))
        return False

    async def close(self, *, gracefully: bool) -> None:
        """Close the connection; bounded, idempotent."""
        self._is_closed = True
        await self._login.close(gracefully=gracefully)

    def _on_written(self, _: asyncio.Future[None]) -> None:
        if not self._is_closed:
            self._events.on_written()

    def _on_closing(self, closing: asyncio.Future[Any]) -> None:
        error = None if closing.cancelled() else closing.exception()
        if not self._is_closed:
            # RabbitMQ 4 fails at saying what is wrong with an event if an exchange or a routing key is long and not
            # ASCII: it cuts its text at 252 characters, which are more bytes than go into it.
            refused, failed = isinstance(error, _REFUSALS), isinstance(error, ConnectionInternalError)
            self._events.on_lost(f"{self.host}: {cause(error)}", refused=refused, failed=failed)

    def _on_channel_end(self, channel: ConfirmChannel, closing: asyncio.Future[Any]) -> None:
        self._intake.end(channel.number)
        error = None if closing.cancelled() else closing.exception()
        if not self._is_closed and not channel.end_is_known and not self._underlay.is_closed:
            self._events.on_lost(f"{self.host}: a channel ended: {cause(error)}", refused=False)

    def _drop_heartbeats(self) -> None:
        waiting = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        for frame in waiting:
            if frame.payload != _HEARTBEAT:
                self._queue.put_nowait(frame)


class RabbitConnector:
    """Logs in for one lane, to the hosts in turn, and lets `prepare` use each connection first.

    See `proxy.publish_lane.wire.Connector`.
    """

    def __init__(self, logins: Logins, name: str, prepare: Callable[[Login], Awaitable[None]] | None = None) -> None:
        self._logins = logins
        self._hosts = logins.hosts()
        self.home = self._hosts.home
        self._asked = self.home
        self._name = name
        self._prepare = prepare

    async def connect(self, events: WireEvents, host: str | None = None) -> RabbitWire:
        """Try that host once, or the next one."""
        host = self._asked = host or self._hosts.next(asyncio.get_running_loop().time())
        try:
            login = await self._logins.log_in(host, self._name)
        except asyncio.CancelledError:
            self.doubt(host)  # the lane waits for it no longer
            raise
        try:
            if self._prepare is not None:
                await self._prepare(login)
        except BaseException:
            await login.close(gracefully=False)
            raise
        return RabbitWire(login, events)

    def silence(self, seconds: float) -> str:
        """See `Connector`."""
        return silent(self._asked, seconds, is_known=self._logins.was_let_in)

    def doubt(self, host: str) -> None:
        """See `Connector`."""
        self._logins.doubted.add(host, asyncio.get_running_loop().time())

    def trust(self, host: str) -> None:
        """See `Connector`."""
        self._logins.doubted.remove(host)
