"""Consuming from RabbitMQ as the proofs do it: frames taken apart by hand, none of the bridge's client code, cheap.

A connection comes logged in and with a channel open, from `Wire.detach`; consumer tags are numbers.
"""

import asyncio
import struct
from abc import abstractmethod
from typing import NamedTuple, cast

from pamqp import base, frame

from load.wire import CHANNEL

_FRAME = struct.Struct(">BHI")
_SIZE = struct.Struct(">Q")
_METHOD, _HEADER, _BODY = 1, 2, 3
_DELIVER = b"\x00\x3c\x00\x3c"
_CLOSES = (b"\x00\x0a\x00\x32", b"\x00\x14\x00\x28")
_ACK = struct.Struct(">BHIHHQBB")


class Delivered(NamedTuple):
    """One message."""

    consumer: int
    """Its consumer's tag."""
    tag: int
    """To acknowledge it by."""
    redelivered: bool
    """Whether RabbitMQ says that it was given out before."""
    body: bytes


class Deliveries(asyncio.Protocol):
    """One connection; may be used for the next when it is lost."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        """None while there is no connection."""
        self._buffer = b""
        self._begun: tuple[int, int, bool] | None = None
        """Consumer, tag and redelivered of the message whose content comes."""
        self._missing = 0
        self._body: list[bytes] = []

    @abstractmethod
    def on_delivery(self, delivered: Delivered) -> None:
        """Take a message."""

    def on_method(self, payload: bytes) -> None:
        """Take any other method than a delivery or a close."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin anew."""
        self.transport = cast("asyncio.Transport", transport)
        self._buffer, self._begun, self._missing = b"", None, 0

    def connection_lost(self, _exc: Exception | None) -> None:
        """Forget what came in part."""
        self.transport = None

    def data_received(self, data: bytes) -> None:
        """Take all frames that are whole."""
        buffer, at = (self._buffer + data if self._buffer else data), 0
        whole = len(buffer)
        while whole - at >= 7:
            kind, _, size = _FRAME.unpack_from(buffer, at)
            if whole - at < size + 8:
                break
            self._on_frame(kind, buffer[at + 7 : at + 7 + size])
            at += size + 8
        self._buffer = buffer[at:]

    def send(self, method: base.Frame) -> None:
        """Send a method, if there is a connection."""
        if self.transport is not None:
            self.transport.write(frame.marshal(method, CHANNEL))

    def ack(self, tag: int, *, multiple: bool) -> None:
        """Acknowledge a message, or all up to it, likewise."""
        if self.transport is not None:
            self.transport.write(_ACK.pack(_METHOD, CHANNEL, 13, 60, 80, tag, multiple, 0xCE))

    def cut(self) -> None:
        """Break the connection, if there is one."""
        if self.transport is not None:
            self.transport.abort()

    def _on_frame(self, kind: int, payload: bytes) -> None:
        if kind == _BODY:
            self._body.append(payload)
            self._missing -= len(payload)
            self._on_content()
        elif kind == _HEADER:
            (self._missing,) = _SIZE.unpack_from(payload, 4)
            self._body.clear()
            self._on_content()
        elif kind == _METHOD and payload[:4] == _DELIVER:
            end = 5 + payload[4]
            (tag,) = _SIZE.unpack_from(payload, end)
            self._begun = int(payload[5:end]), tag, bool(payload[end + 8])
        elif kind == _METHOD and payload[:4] in _CLOSES:
            self.cut()
        elif kind == _METHOD:
            self.on_method(payload)

    def _on_content(self) -> None:
        if self._missing <= 0 and self._begun is not None:
            begun, self._begun = self._begun, None
            self.on_delivery(Delivered(*begun, b"".join(self._body)))
