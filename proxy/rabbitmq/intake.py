"""What a connection brings, before the client sees it: confirms and returns are taken off, the rest is bounded.

The client reads each frame by two waits, makes objects of it and hands it from task to task: 9 us for a confirm that is
21 bytes long (0.2 us here). All frames of a channel that tell of messages are taken, so they stay in their order.
"""

import asyncio
import struct
from collections.abc import Callable
from typing import Any

from pamqp import frame
from pamqp.body import ContentBody
from pamqp.exceptions import PAMQPException
from pamqp.header import ContentHeader

from proxy.publish_lane.wire import WireEvents

FRAME_BYTES = 129 * 1024**2
"""The longest frame taken from a broker that sets no bound: the largest event that the settings allow, come back."""
FIRST_BYTES = 8
"""So much of what comes first is kept: a version of AMQP is told in so many."""

_START = struct.Struct(">BHI")
_NAME = 4
"""Bytes of a method's class and number."""
_CONFIRM = struct.Struct(">QB")
"""Tag and bits."""
_OVERHEAD = 8
_CONFIRM_BYTES = _OVERHEAD + _NAME + _CONFIRM.size
_METHOD, _HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
_KINDS = {_METHOD, _HEADER, _BODY, _HEARTBEAT}
_END = 0xCE
_ACK, _NACK, _RETURN = b"\x00\x3c\x00\x50", b"\x00\x3c\x00\x78", b"\x00\x3c\x00\x32"
_DECLARED = b"\x00\x32\x00\x0b"
_COUNTS = struct.Struct(">II")
"""Messages and consumers, behind a queue's name."""
_CLOSE, _CLOSE_OK = b"\x00\x14\x00\x28", b"\x00\x14\x00\x29"
_TEXT = _START.size + _NAME + 2
"""Where the text of a close begins, with its length: behind a code."""
_BEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
_BEAT_SECONDS = 1.0
"""So often the client is told of a heartbeat while all that comes is taken: it would take the broker for dead."""
UNREADABLE = (PAMQPException, ValueError, struct.error, IndexError, KeyError, TypeError)
"""What pamqp raises of a frame that can't be read. The client turns the first alone into an error of its own."""


class BrokenFrameError(Exception):
    """What came breaks the protocol; nothing after it can be believed."""


class Returned:
    """A message that comes back, until its body is whole."""

    def __init__(self, why: str) -> None:
        self.why = why
        self.message_id = b""
        self._missing: int | None = None
        """Bytes of its body; None until its header has come."""

    def is_whole_with(self, value: Any, channel: int) -> bool:
        """Take its next frame; return whether that was the last. Raises `BrokenFrameError` if it is none of its own."""
        if self._missing is None and isinstance(value, ContentHeader):
            self.message_id = (value.properties.message_id or "").encode()
            self._missing = value.body_size
        elif self._missing is not None and isinstance(value, ContentBody):
            self._missing -= len(value.value)
        else:
            raise BrokenFrameError(f"channel {channel}: {type(value).__name__} within a message that comes back")
        return self._missing <= 0


class Intake:
    """Stands between a connection and the client's reader."""

    def __init__(self, reader: Any) -> None:
        """Stand before an `asyncio.StreamReader`: its `feed_data` and `feed_eof` are what a transport calls."""
        self.longest = FRAME_BYTES
        """Bytes of a frame's payload and end at most."""
        self.first = b""
        """What came first, as much as tells protocols apart."""
        self._now = asyncio.get_running_loop().time
        self.heard = self._now()
        """When something last came."""
        self._pass_on = reader.feed_data
        self._end = reader.feed_eof
        self._rest = b""
        self._is_foreign = False
        """What comes are no frames, or none that are agreed: the client says what is wrong with them."""
        self._events: WireEvents | None = None
        self._channels: dict[int, Returned | None] = {}
        """Those whose frames are taken, and what comes back on them."""
        self._answered: dict[int, Callable[[int, int], None]] = {}
        """Those on which queues are asked for, and who is told."""
        self._beaten = 0.0
        reader.feed_data, reader.feed_eof = self._feed, self._feed_eof

    def tell(self, events: WireEvents) -> None:
        """Tell these of confirms and returns."""
        self._events = events

    def take(self, channel: int) -> None:
        """Take the confirms and returns of a channel, until it is closed."""
        self._channels[channel] = None

    def answer(self, channel: int, told: Callable[[int, int], None]) -> None:
        """Take what a channel tells of queues that are declared: messages and consumers."""
        self._answered[channel] = told

    def end(self, channel: int) -> None:
        """Take nothing of it any more."""
        self._channels.pop(channel, None)
        self._answered.pop(channel, None)

    def _feed(self, data: bytes) -> None:
        self.heard = self._now()
        if len(self.first) < FIRST_BYTES:
            self.first += data[: FIRST_BYTES - len(self.first)]
        if self._is_foreign:
            self._pass_on(data)
            return
        data = self._rest + data if self._rest else bytes(data)
        try:
            begin, end = self._scan(data)
        except BrokenFrameError as error:
            self._is_foreign = True
            self._pass_on = lambda _: None
            if self._events is not None:
                self._events.on_lost(str(error), refused=False)
            return
        self._rest = data[end:]
        if begin < end:
            self._pass_on(data[begin:end])
            self._beaten = self.heard
        elif begin and self.heard - self._beaten > _BEAT_SECONDS:
            self._beaten = self.heard
            self._pass_on(_BEAT)

    def _scan(self, data: bytes) -> tuple[int, int]:
        """Take what is ours and pass on what lies between; return where the rest begins, and where whole frames end.

        Raises `BrokenFrameError`.
        """
        begin = at = 0
        size = len(data)
        while size - at >= _START.size:
            kind, channel, length = _START.unpack_from(data, at)
            if kind not in _KINDS or length >= self.longest:
                self._is_foreign = True
                return begin, size
            end = at + length + _OVERHEAD
            if end > size:
                break
            if (channel in self._channels and self._is_taken(kind, channel, data, at, end)) or (
                channel in self._answered and self._is_answer(kind, channel, data, at, end)
            ):
                if begin < at:
                    self._pass_on(data[begin:at])
                begin = end
            elif kind == _METHOD and data[at + _START.size : at + _START.size + _NAME] == _CLOSE:
                self._pass_on(data[begin:at] + _readable(data[at:end]))
                begin = end
            at = end
        return begin, at

    def _feed_eof(self) -> None:
        if self._rest:
            self._pass_on(self._rest)
            self._rest = b""
        self._end()

    def _is_taken(self, kind: int, channel: int, data: bytes, at: int, end: int) -> bool:
        """Tell whether the frame that is `data[at:end]` is ours, and of it. Raises `BrokenFrameError`."""
        returned = self._channels[channel]
        assert self._events is not None
        name = data[at + _START.size : at + _START.size + _NAME] if kind == _METHOD else b""
        if returned is None and name in {_ACK, _NACK}:
            if end - at != _CONFIRM_BYTES or data[end - 1] != _END:
                raise BrokenFrameError(f"channel {channel}: a confirm of {end - at} bytes")
            tag, bits = _CONFIRM.unpack_from(data, at + _START.size + _NAME)
            self._events.on_confirm(channel, tag, multiple=bool(bits & 1), acked=name == _ACK)
            return True
        if name in {_CLOSE, _CLOSE_OK}:
            del self._channels[channel]
            return False
        if returned is None and name != _RETURN:
            return False
        value = _decoded(data[at:end])
        if returned is None:
            why = f"{value.reply_text}: exchange {value.exchange!r}, routing key {value.routing_key!r}"
            self._channels[channel] = Returned(why)
        elif returned.is_whole_with(value, channel):
            self._channels[channel] = None
            self._events.on_return(channel, returned.message_id, returned.why)
        return True

    def _is_answer(self, kind: int, channel: int, data: bytes, at: int, end: int) -> bool:
        """Tell whether the frame that is `data[at:end]` tells of a queue; one that is not whole is the client's."""
        name = at + _START.size
        if kind != _METHOD or data[name : name + _NAME] != _DECLARED or data[end - 1] != _END:
            return False
        counts = name + _NAME + 1 + data[name + _NAME]
        if counts + _COUNTS.size != end - 1:
            return False
        self._answered[channel](*_COUNTS.unpack_from(data, counts))
        return True


def _readable(close: bytes) -> bytes:
    """Return a frame that closes a channel with a text that can be read.

    RabbitMQ 3.10 cuts it at 252 bytes, within a character, if there is an exchange or a routing key in it that is long
    and not ASCII; the client would give up the connection.
    """
    begin = _TEXT + 1
    text = close[begin : begin + int.from_bytes(close[_TEXT:begin])]
    sound = text.decode(errors="ignore").encode().ljust(len(text), b"?")
    return close if sound == text else close[:begin] + sound + close[begin + len(text) :]


def _decoded(data: bytes) -> Any:
    try:
        return frame.unmarshal(data)[2]
    except UNREADABLE as error:
        raise BrokenFrameError(f"a frame can't be read: {error}") from error


class BoundedReader:
    """What the client calls of a reader; it would gather a frame as long as its head says, up to 4 GiB."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.intake = Intake(reader)
        self.at_eof = reader.at_eof
        self.read = reader.read
        self._read = reader.readexactly

    async def readexactly(self, size: int) -> bytes:
        """Read as `asyncio.StreamReader` does. Raises `OSError` if it is more than a frame may have."""
        if size > self.intake.longest:
            raise OSError(f"a frame of {size} bytes, at most {self.intake.longest} are agreed")
        return await self._read(size)
