"""One connection to a scripted node: login, tuning, heartbeats, channels, closing (AMQP 0-9-1, chapters 2.2 and 4)."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pamqp import commands, frame
from pamqp.body import ContentBody
from pamqp.common import FieldTable
from pamqp.heartbeat import Heartbeat

from tests.wire.rabbit.channel import RabbitChannel
from tests.wire.rabbit.frames import (
    BODY,
    GREETING,
    HEADER,
    HEARTBEAT,
    SMALLEST_FRAME_MAX,
    FrameReader,
    HardError,
    Message,
    SoftError,
)
from tests.wire.transport import WireTransport

if TYPE_CHECKING:
    from tests.wire.rabbit.cluster import RabbitCluster

FRAME_ERROR, NOT_ALLOWED, INTERNAL_ERROR = 501, 530, 541
_TEXT_CHARACTERS, _TEXT_BYTES = 252, 255
"""RabbitMQ cuts why it closes a channel at so many characters, though not more than so many bytes go into a frame."""
CLOSE_SECONDS = 5.0
"""How long a client may take to say that a connection is closed."""
_CAPABILITIES = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)


class RabbitConnection(asyncio.Protocol):
    """A node's end."""

    def __init__(self, cluster: "RabbitCluster", host: str) -> None:
        self.cluster = cluster
        self.host = host
        self.process = ""
        """Of the client."""
        self.name = ""
        """What the client calls itself."""
        self.secret = ""
        """Password or token that the client has shown last."""
        self.frame_max = SMALLEST_FRAME_MAX
        self.channels: dict[int, RabbitChannel] = {}
        self.has_published = False
        self.is_over = False
        """Closed, or closing: nothing is said any more."""
        self._transport: WireTransport
        self._reader = FrameReader()
        self._state = "start"
        self._capabilities: dict[str, Any] = {}
        self._is_blocked = False
        self._is_read = True
        self._heartbeat = 0
        self._heard = self._said = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.TimerHandle | None = None

    # -- asyncio's protocol -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, WireTransport)
        self._transport = transport
        self.process = transport.link.process
        self.cluster.connections.append(self)

    def connection_lost(self, _: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self.is_over = True
        if self in self.cluster.connections:
            self.cluster.connections.remove(self)
        for timer in (self._timer, self._closing):
            if timer is not None:
                timer.cancel()
        self.channels.clear()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._heard = self.cluster.loop.time()
        try:
            for kind, channel, value in self._reader.feed(data):
                self._take(kind, channel, value)
        except HardError as error:
            if error.code >= FRAME_ERROR and error.code != NOT_ALLOWED:
                self.cluster.on_wrong(self.process, error.text)
            if error.code:
                self.close(error.code, error.text)
            else:
                self._transport.write(GREETING)
                self._transport.close()

    # -- what the cluster does ----------------------------------------------------------------------------------------

    def abort(self) -> None:
        """End it without a word."""
        self.is_over = True
        self._transport.abort()
        self.connection_lost(None)

    def close(self, code: int, text: str, class_id: int = 0, method_id: int = 0) -> None:
        """Say `connection.close` and wait for the answer, not for ever."""
        if not self.is_over:
            self._say(commands.Connection.Close(code, text[:255], class_id, method_id))
            self.is_over = True
            self._state = "closing"
            self._transport.resume_reading()
            self._closing = self.cluster.loop.call_later(CLOSE_SECONDS, self._transport.abort)

    def follow_alarm(self) -> None:
        """Stop reading from a connection that has published, or read on; only an alarm is told."""
        cluster = self.cluster
        blocked = cluster.is_blocked and self.has_published
        if self.is_over:
            return
        if blocked != self._is_blocked:
            self._is_blocked = blocked
            if self._capabilities.get("connection.blocked"):
                self._say(commands.Connection.Blocked("low on memory") if blocked else commands.Connection.Unblocked())
        is_held = self.has_published and self.name == cluster.held
        is_read = not blocked and not is_held
        if is_read == self._is_read:
            return
        self._is_read = is_read
        if is_read:
            self._heard = cluster.loop.time()
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def unconfirmed(self) -> Iterator[Message]:
        """Yield what it published and was not told of."""
        for channel in self.channels.values():
            yield from channel.unconfirmed()

    # -- what its channels use ----------------------------------------------------------------------------------------

    def say(self, value: Any, channel: int) -> None:
        """Send a frame, unless the connection is over."""
        if not self.is_over:
            self._say(value, channel)

    def say_content(self, method: Any, header: Any, body: bytes, channel: int) -> None:
        """Send a message, its body in frames that fit."""
        most = (self.frame_max or len(body) + 8) - 8
        for value in (method, header):
            self.say(value, channel)
        for start in range(0, len(body), most):
            self.say(ContentBody(body[start : start + most]), channel)

    # -- within -------------------------------------------------------------------------------------------------------

    def _say(self, value: Any, channel: int = 0) -> None:
        self._said = self.cluster.loop.time()
        self._transport.write(frame.marshal(value, channel))

    def _take(self, kind: int, number: int, value: Any) -> None:
        if self._state == "closing":
            if isinstance(value, (commands.Connection.CloseOk, commands.Connection.Close)):
                self._transport.close()
            return
        if self.is_over:
            return
        if kind == HEARTBEAT:
            if number:
                raise HardError(501, "FRAME_ERROR - heartbeat on a channel")
        elif number == 0 or self._state != "open":
            self._negotiate(value, number)
        else:
            self._on_channel(kind, number, value)

    def _negotiate(self, value: Any, number: int) -> None:
        if number or (value is not None and not getattr(value, "name", "").startswith("Connection.")):
            raise HardError(503, f"COMMAND_INVALID - {getattr(value, 'name', value)!r} on channel {number}")
        match self._state, value:
            case "start", None:
                capabilities: FieldTable = dict.fromkeys(_CAPABILITIES, True)
                properties: FieldTable = {"product": "RabbitMQ", "version": "4.0.0", "capabilities": capabilities}
                self._say(commands.Connection.Start(0, 9, properties, "PLAIN AMQPLAIN EXTERNAL", "en_US"))
                self._state = "start-ok"
            case "start-ok", commands.Connection.StartOk():
                self._log_in(value)
            case "tune-ok", commands.Connection.TuneOk():
                self._tune(value)
            case "opening", commands.Connection.Open():
                if value.virtual_host not in self.cluster.virtual_hosts:
                    raise HardError(530, f"NOT_ALLOWED - vhost {value.virtual_host} not found")
                self._say(commands.Connection.OpenOk())
                self._state = "open"
            case _, commands.Connection.Close():
                self._say(commands.Connection.CloseOk())
                self.is_over = True
                self._transport.close()
            case "open", commands.Connection.UpdateSecret():
                self._update_secret(value.new_secret or "")
            case _:
                raise HardError(503, f"COMMAND_INVALID - {getattr(value, 'name', value)!r} in state {self._state}")

    def _log_in(self, value: commands.Connection.StartOk) -> None:
        properties: dict[str, Any] = dict(value.client_properties or {})
        self._capabilities = dict(properties.get("capabilities") or {})
        self.name = str(properties.get("connection_name", ""))
        cluster = self.cluster
        if not cluster.admits(value.mechanism, value.response):
            if not cluster.closes_on_refusal or not self._capabilities.get("authentication_failure_close"):
                self.is_over = True
                self._transport.close()
                return
            raise HardError(
                403,
                f"ACCESS_REFUSED - Login was refused using authentication mechanism {value.mechanism}. "
                "For details see the broker logfile.",
            )
        self.secret = value.response.rpartition("\0")[2]
        self._say(commands.Connection.Tune(cluster.channel_max, cluster.frame_max, cluster.heartbeat))
        self._state = "tune-ok"

    def _update_secret(self, secret: str) -> None:
        if secret not in self.cluster.passwords.values():
            raise HardError(NOT_ALLOWED, "NOT_ALLOWED - new token is not taken")
        self.secret = secret
        self._say(commands.Connection.UpdateSecretOk())

    def _tune(self, value: commands.Connection.TuneOk) -> None:
        offered, frame_max = self.cluster.frame_max, value.frame_max or 0
        if offered and (not frame_max or frame_max > offered):
            raise HardError(530, f"NOT_ALLOWED - negotiated frame_max = {frame_max} is higher than {offered}")
        if frame_max and frame_max < SMALLEST_FRAME_MAX:
            raise HardError(530, f"NOT_ALLOWED - negotiated frame_max = {frame_max} is lower than the minimum")
        self.frame_max = self._reader.frame_max = frame_max
        self._heartbeat = value.heartbeat or 0
        self._state = "opening"
        if self._heartbeat:
            self._beat()

    def _beat(self) -> None:
        """Say something every half interval; hang up on who has been silent for two."""
        loop = self.cluster.loop
        if self.is_over:
            return
        if self._is_read and loop.time() - self._heard > 2 * self._heartbeat:
            self.abort()
            return
        if loop.time() - self._said >= self._heartbeat / 2:
            self._say(Heartbeat())
        self._timer = loop.call_later(self._heartbeat / 2, self._beat)

    def _on_channel(self, kind: int, number: int, value: Any) -> None:
        channel = self.channels.get(number)
        if isinstance(value, commands.Channel.Open):
            if channel is not None:
                raise HardError(504, f"CHANNEL_ERROR - second 'channel.open' seen on channel {number}")
            if self.cluster.channel_max and number > self.cluster.channel_max:
                raise HardError(530, f"NOT_ALLOWED - number of channels opened ({number}) has reached the maximum")
            self.channels[number] = RabbitChannel(self, number)
            self.say(commands.Channel.OpenOk(), number)
        elif channel is None:
            if not isinstance(value, commands.Channel.CloseOk):
                raise HardError(504, f"CHANNEL_ERROR - expected 'channel.open' on channel {number}")
        elif isinstance(value, commands.Channel.Close):
            del self.channels[number]
            self.say(commands.Channel.CloseOk(), number)
        elif isinstance(value, commands.Channel.CloseOk):
            del self.channels[number]
        elif not channel.is_closing:
            self._let_channel(channel, kind, value)

    def _let_channel(self, channel: RabbitChannel, kind: int, value: Any) -> None:
        try:
            if kind in {HEADER, BODY}:
                channel.take_content(kind, value)
            else:
                channel.take_method(value)
        except SoftError as error:
            # Whatever is wrong with a message, it is said of `basic.publish`.
            class_and_method = (60, 40) if kind in {HEADER, BODY} else divmod(value.index, 1 << 16)
            channel.is_closing = True
            text = error.text[:_TEXT_CHARACTERS]
            if len(text.encode()) > _TEXT_BYTES:
                # As RabbitMQ 4 does: its writer fails at what its channel wants to say.
                self.close(INTERNAL_ERROR, "INTERNAL_ERROR")
                return
            self.say(commands.Channel.Close(error.code, text, *class_and_method), channel.number)
