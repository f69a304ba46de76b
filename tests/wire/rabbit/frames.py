"""What a node reads off a connection: frames by the rules of AMQP 0-9-1 (chapter 4.2), contents from their frames.

The values inside are decoded by pamqp, which the product does not use to write its messages.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pamqp import commands, frame
from pamqp.exceptions import PAMQPException
from pamqp.header import ContentHeader

GREETING = b"AMQP\x00\x00\x09\x01"
END = 0xCE
OVERHEAD = 8
SMALLEST_FRAME_MAX = 4_096
"""So long may a frame be before anything is negotiated, and at least afterwards."""
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
_head = struct.Struct(">BHI")


class HardError(Exception):
    """The connection must be closed."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class SoftError(Exception):
    """The channel must be closed."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class FrameReader:
    """Cuts what arrives, in whatever portions, into frames. Raises `HardError` for what is none."""

    def __init__(self) -> None:
        self.frame_max = SMALLEST_FRAME_MAX
        """0 is no bound."""
        self.is_greeted = False
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, int, Any]]:
        """Yield type, channel and value of every frame that is complete now; first `(0, 0, None)`, the greeting."""
        self._buffer += data
        if not self.is_greeted:
            if len(self._buffer) < len(GREETING):
                return
            if self._buffer[: len(GREETING)] != GREETING:
                raise HardError(0, "not AMQP 0-9-1")
            del self._buffer[: len(GREETING)]
            self.is_greeted = True
            yield 0, 0, None
        while len(self._buffer) >= _head.size:
            kind, channel, size = _head.unpack_from(self._buffer)
            if kind not in {METHOD, HEADER, BODY, HEARTBEAT}:
                raise HardError(501, f"FRAME_ERROR - type {kind}")
            if self.frame_max and size + OVERHEAD > self.frame_max:
                raise HardError(501, f"FRAME_ERROR - type {kind}, {size + OVERHEAD} bytes, max {self.frame_max}")
            if len(self._buffer) < size + OVERHEAD:
                return
            raw = bytes(self._buffer[: size + OVERHEAD])
            del self._buffer[: size + OVERHEAD]
            if raw[-1] != END:
                raise HardError(501, "FRAME_ERROR - invalid frame end")
            yield kind, channel, _decoded(kind, raw)


def _decoded(kind: int, raw: bytes) -> Any:
    if kind == BODY:
        return raw[7:-1]
    try:
        return frame.unmarshal(raw)[2]
    except (PAMQPException, ValueError, struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        raise HardError(502, f"SYNTAX_ERROR - {type(error).__name__}: {error}") from error


@dataclass(slots=True)
class Message:
    """What somebody published."""

    exchange: str
    key: str
    mandatory: bool
    properties: commands.Basic.Properties
    body: bytes
    process: str = ""
    """Of the client."""

    @property
    def id(self) -> str:
        """Its message id."""
        return self.properties.message_id or ""

    @property
    def headers(self) -> dict[str, Any]:
        """Its headers."""
        return dict(self.properties.headers or {})


class Content:
    """A message on its way in: its method has come, header and body follow (chapter 4.2.6)."""

    def __init__(self, method: commands.Basic.Publish) -> None:
        self._method = method
        self._header: ContentHeader | None = None
        self._body = bytearray()

    def add(self, kind: int, value: Any) -> Message | None:
        """Take the next frame; return the message if that was the last. Raises `HardError`."""
        if self._header is None:
            if kind != HEADER:
                raise HardError(505, "UNEXPECTED_FRAME - expected content header for class 60")
            self._header = value
        elif kind != BODY:
            raise HardError(505, "UNEXPECTED_FRAME - expected content body")
        else:
            self._body += value
        size = self._header.body_size if self._header is not None else 0
        if len(self._body) > size:
            raise HardError(501, f"FRAME_ERROR - {len(self._body)} bytes of a body of {size}")
        if self._header is None or len(self._body) < size:
            return None
        method = self._method
        return Message(
            method.exchange,
            method.routing_key,
            bool(method.mandatory),
            self._header.properties,
            bytes(self._body),
        )
