"""The proof's own view of RabbitMQ: one blocking connection, one channel, nothing of the bridge's client code in it.

It asks for depths, declares and deletes queues, and reads whole queues fast: what checks the bridge should neither
share its faults nor take the processor that it is measured on.
"""

import socket
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

from pamqp import base, commands, exceptions, frame

FRAME_MAX = 131_072
CHANNEL = 1
SECONDS = 15.0
"""How long one answer may take; a broker that has just been restarted can be slow."""

_FRAME_HEAD = struct.Struct(">BHI")
_METHOD_FRAME, _HEADER_FRAME, _BODY_FRAME = 1, 2, 3
_DELIVER = b"\x00\x3c\x00\x3c"
_READ = 1 << 18


class WireError(Exception):
    """RabbitMQ closed the connection or channel, or did not answer in time."""


class QueueCount(NamedTuple):
    """What a passive declare says of a queue."""

    ready: int
    consumers: int


class Delivery(NamedTuple):
    """One message as it came, its properties still encoded."""

    properties: bytes
    """The content header's flags and properties, as on the wire."""
    body: bytes


def deliveries(data: bytes) -> Iterator[Delivery]:
    """Yield the messages of a consumer's stream, whole frames from its beginning on; what ends in part is left out."""
    at, head, body, missing = 0, b"", b"", 0
    while len(data) - at >= _FRAME_HEAD.size:
        kind, _, size = _FRAME_HEAD.unpack_from(data, at)
        if len(data) - at < size + 8:
            return
        payload = data[at + 7 : at + 7 + size]
        at += size + 8
        if kind == _HEADER_FRAME:
            head, body, missing = payload, b"", int.from_bytes(payload[4:12], "big")
        elif kind == _BODY_FRAME:
            body += payload
            missing -= size
            if missing == 0:
                yield Delivery(head[12:], body)


class Wire:
    """One connection as guest on 127.0.0.1, virtual host `/`. Every method raises WireError when it gets no answer.

    An answer may take so many `seconds`.
    """

    def __init__(self, port: int, seconds: float = SECONDS) -> None:
        self._buffer, self._at = b"", 0
        self._seconds = seconds
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.sendall(b"AMQP\x00\x00\x09\x01")
            self._answer("Connection.Start", 0)
            self._send(commands.Connection.StartOk({}, "PLAIN", "\x00guest\x00guest", "en_US"), 0)
            tune = cast("commands.Connection.Tune", self._answer("Connection.Tune", 0))
            self._send(commands.Connection.TuneOk(tune.channel_max, FRAME_MAX, 0), 0)
            self._call(commands.Connection.Open("/"), "Connection.OpenOk", 0)
            self._call(commands.Channel.Open(), "Channel.OpenOk")
        except OSError as error:
            raise WireError(f"RabbitMQ on port {port}: {error}") from error

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def declare(self, queue: str, arguments: dict[str, Any] | None = None) -> None:
        """Declare a durable queue, anew if it is there."""
        self.delete(queue)
        self._call(commands.Queue.Declare(queue=queue, durable=True, arguments=arguments or {}), "Queue.DeclareOk")

    def exchange(self, name: str) -> None:
        """Declare a durable topic exchange."""
        call = commands.Exchange.Declare(exchange=name, exchange_type="topic", durable=True)
        self._call(call, "Exchange.DeclareOk")

    def bind(self, queue: str, exchange: str, key: str) -> None:
        """Bind a queue to an exchange."""
        self._call(commands.Queue.Bind(queue=queue, exchange=exchange, routing_key=key), "Queue.BindOk")

    def delete(self, queue: str, *, if_empty: bool = False) -> None:
        """Delete a queue and what is in it; nothing happens if there is none.

        With `if_empty` a queue that holds messages is left, and the refusal closes the channel (WireError).
        """
        self._call(commands.Queue.Delete(queue=queue, if_empty=if_empty), "Queue.DeleteOk")

    def count(self, queue: str) -> QueueCount:
        """Return the messages ready and the consumers of a queue."""
        answer = self._call(commands.Queue.Declare(queue=queue, passive=True), "Queue.DeclareOk")
        ok = cast("commands.Queue.DeclareOk", answer)
        return QueueCount(ok.message_count or 0, ok.consumer_count or 0)

    def drain(self, queue: str, expected: int) -> Iterator[Delivery]:
        """Take `expected` messages out of a queue, in its order, unacknowledged: what is not yielded is gone.

        Raises WireError when the queue gives nothing more for 15 s.
        """
        tag = "drain"
        self._send(commands.Basic.Consume(queue=queue, consumer_tag=tag, no_ack=True))
        self._answer("Basic.ConsumeOk")
        taken = 0
        while taken < expected:
            _, payload = self._frame()
            if not payload.startswith(_DELIVER):
                raise WireError(f"unexpected while draining: {payload[:40]!r}")
            _, head = self._frame()
            (size,) = struct.unpack_from(">Q", head, 4)
            body = b""
            while len(body) < size:
                body += self._frame()[1]
            taken += 1
            yield Delivery(head[12:], body)
        self._send(commands.Basic.Cancel(consumer_tag=tag))
        self._answer("Basic.CancelOk")

    def delete_exchange(self, name: str) -> None:
        """Delete an exchange; nothing happens if there is none."""
        self._call(commands.Exchange.Delete(exchange=name), "Exchange.DeleteOk")

    def publish(self, queue: str, bodies: Iterable[bytes]) -> None:
        """Publish transient messages into a queue by the default exchange, unconfirmed."""
        head = frame.marshal(commands.Basic.Publish(routing_key=queue), CHANNEL)
        for body in bodies:
            content = struct.pack(">HHQH", 60, 0, len(body), 0)
            framed = (_HEADER_FRAME, content), (_BODY_FRAME, body)
            parts = [_FRAME_HEAD.pack(kind, CHANNEL, len(part)) + part + b"\xce" for kind, part in framed]
            self._write(head + b"".join(parts))

    def detach(self) -> socket.socket:
        """Hand over the connection, logged in and with channel 1 open, to whoever goes on with it."""
        self._socket.settimeout(0)
        return self._socket

    def close(self) -> None:
        """Close the connection; never fails."""
        with suppress(WireError):
            self._send(commands.Connection.Close(200, "done", 0, 0), 0)
        self._socket.close()

    def _call(self, call: base.Frame, answer: str, channel: int = CHANNEL) -> base.Frame:
        self._send(call, channel)
        return self._answer(answer, channel)

    def _send(self, method: base.Frame, channel: int = CHANNEL) -> None:
        self._write(frame.marshal(method, channel))

    def _write(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise WireError(f"RabbitMQ: {error}") from error

    def _answer(self, name: str, channel: int = CHANNEL) -> base.Frame:
        """Read to the method of this name; deliveries on the way are passed over."""
        deadline = time.monotonic() + self._seconds
        while time.monotonic() < deadline:
            kind, payload = self._frame()
            if kind != _METHOD_FRAME or payload.startswith(_DELIVER):
                continue
            try:
                _, _, method = frame.unmarshal(_FRAME_HEAD.pack(kind, channel, len(payload)) + payload + b"\xce")
            except exceptions.UnmarshalingException as error:
                raise WireError(f"not AMQP: {error}") from error
            if isinstance(method, (commands.Connection.Close, commands.Channel.Close)):
                raise WireError(f"RabbitMQ: {method.reply_code} {method.reply_text}")
            if isinstance(method, base.Frame) and method.name == name:
                return method
        raise WireError(f"RabbitMQ gave no {name} within {self._seconds:.0f} s")

    def _frame(self) -> tuple[int, bytes]:
        """Return kind and payload of the next frame that is no heartbeat."""
        while True:
            head = self._read(_FRAME_HEAD.size)
            kind, _, size = _FRAME_HEAD.unpack(head)
            payload = self._read(size + 1)[:-1]
            if kind in {_METHOD_FRAME, _HEADER_FRAME, _BODY_FRAME}:
                return kind, payload

    def _read(self, size: int) -> bytes:
        while len(self._buffer) - self._at < size:
            try:
                more = self._socket.recv(_READ)
            except OSError as error:
                raise WireError(f"RabbitMQ: {error}") from error
            if not more:
                raise WireError("RabbitMQ closed the connection")
            self._buffer, self._at = self._buffer[self._at :] + more, 0
        start, self._at = self._at, self._at + size
        return self._buffer[start : self._at]
