"""The content header of a usual message: whose key, headers and timestamp are small and in order.

Encoded per event, so what messages share is made once: by content type, and by how long body and position are. Whatever
is unusual is encoded by `envelope`. Pure.
"""

import struct
from typing import NamedTuple

from proxy.bridge.broker import Address
from proxy.model import Partition, Position
from proxy.publish_lane.frames import BODY, END, FRAME_START, HEADER
from proxy.publish_lane.headers import SHORT_STRING, field, text_value
from proxy.publish_lane.message_ids import PAIRS, stamp

CLASS_AND_WEIGHT = b"\x00\x3c\x00\x00"
PERSISTENT = b"\x02"
HAS_CONTENT_TYPE, HAS_HEADERS, HAS_MODE, HAS_PRIORITY = 0x8000, 0x2000, 0x1000, 0x0800
HAS_MESSAGE_ID, HAS_TIMESTAMP = 0x0080, 0x0040
"""Bits of the property flags."""
POSITION_FIELD = b"\x11tidegate-positionS"
TIMESTAMP_FIELD = b"\x12tidegate-timestampl"
_SHAPES = 64
"""Shapes kept per partition and address; beyond it they are made anew."""
_LEAN_SHAPES = 8
"""Likewise of those that depend on the body's size, too: where sizes differ, a thousand event types would keep many."""
_START = 7
"""Bytes of a frame before its payload."""
_length = struct.Struct(">I").pack
_flags = struct.Struct(">H").pack


def origin_fields(address: Address, partition: Partition) -> bytes:
    """Return the table entries that all messages of a partition share at an address."""
    return b"".join(
        (
            field("tidegate-topic", text_value(partition.topic)),
            field("tidegate-partition", b"I" + struct.pack(">i", partition.number)),
            *(field(name, text_value(value)) for name, value in address.notes),
        )
    )


class _Shape(NamedTuple):
    """What messages share that have the same content type and positions of one length."""

    start: struct.Struct
    middle: struct.Struct
    origin: bytes
    """Table entries up to the position's length."""
    identity: bytes
    """Delivery mode, priority and message id up to the position."""
    table: int
    """Bytes of the table without the record's own entries."""
    beside: int
    """Bytes of the header frame's payload outside the table's entries."""


class FullHeader:
    """Under `origin: full`: headers say where the record comes from."""

    def __init__(self, address: Address, partition: Partition, *, channel: int, most: int) -> None:
        flags, self._mode = HAS_CONTENT_TYPE | HAS_HEADERS | HAS_MODE | HAS_MESSAGE_ID | HAS_TIMESTAMP, PERSISTENT
        if address.priority is not None:
            flags, self._mode = flags | HAS_PRIORITY, PERSISTENT + bytes((address.priority,))
        self._flags = _flags(flags)
        self._most = most
        self._identity_max = len(self._mode) + 1 + SHORT_STRING
        self._id_prefix = f"{partition}-".encode(errors="replace")
        self._origin = origin_fields(address, partition)
        self._header_start = FRAME_START.pack(HEADER, channel, 0)[:3]
        self._body_start = END + FRAME_START.pack(BODY, channel, 0)[:3]
        self._shapes: dict[tuple[int, bytes], _Shape] = {}

    def encode(self, position: Position, timestamp: int, own: bytes, mime: bytes, size: int) -> bytes | None:
        """Return the header's frame and the start of the body's; None if the message is none of the usual.

        `own` are table entries, `mime` a short string, `size` the body's bytes, from 1 to what one frame carries.
        """
        place = str(position).encode(errors="replace")
        shape = self._shapes.get((len(place), mime)) or self._shape(len(place), mime)
        start, middle, origin, identity, table, beside = shape
        table += len(own)
        if table + beside > self._most or len(identity) + len(place) > self._identity_max:
            return None
        return b"".join(
            (
                start.pack(
                    self._header_start,
                    table + beside,
                    CLASS_AND_WEIGHT,
                    size,
                    self._flags,
                    mime,
                    table,
                    origin,
                    place,
                    TIMESTAMP_FIELD,
                    timestamp,
                ),
                own,
                middle.pack(identity, place, timestamp // 1000, self._body_start, size),
            )
        )

    def _shape(self, digits: int, mime: bytes) -> _Shape:
        if len(self._shapes) >= _SHAPES:
            self._shapes.clear()
        identity = self._mode + bytes((min(len(self._id_prefix) + digits, SHORT_STRING),)) + self._id_prefix
        origin = self._origin + POSITION_FIELD + _length(digits)
        shape = _Shape(
            struct.Struct(f">3sI4sQ2s{len(mime)}sI{len(origin)}s{digits}s{len(TIMESTAMP_FIELD)}sq"),
            struct.Struct(f">{len(identity)}s{digits}sQ4sI"),
            origin,
            identity,
            table=len(origin) + digits + len(TIMESTAMP_FIELD) + 8,
            beside=14 + len(mime) + 4 + len(identity) + digits + 8,
        )
        self._shapes[digits, mime] = shape
        return shape


class LeanHeader:
    """Under `origin: id`: the message id says where the record comes from, and there is nothing that says nothing."""

    def __init__(self, address: Address, partition: Partition, *, channel: int, most: int) -> None:
        self._flags, self._mode = HAS_MODE | HAS_MESSAGE_ID, PERSISTENT
        if address.priority is not None:
            self._flags, self._mode = self._flags | HAS_PRIORITY, PERSISTENT + bytes((address.priority,))
        self._most = most
        self._id_prefix = f"{partition}-".encode(errors="replace")
        self._id_room = SHORT_STRING - len(self._id_prefix)
        self._header_start = FRAME_START.pack(HEADER, channel, 0)[:3]
        self._body_start = END + FRAME_START.pack(BODY, channel, 0)[:3]
        self._shapes: dict[tuple[int, int, bytes], tuple[bytes, bytes]] = {}
        self._high, self._high_stamp = 0, ""

    def encode(self, position: Position, timestamp: int, own: bytes, mime: bytes, size: int) -> bytes | None:
        """Return the header's frame and the start of the body's; None if the message is none of the usual."""
        high, low = divmod(timestamp, len(PAIRS))
        if high != self._high:
            self._high, self._high_stamp = high, stamp(high)
        place = f"{position}-{self._high_stamp}{PAIRS[low]}".encode(errors="replace")
        if len(place) > self._id_room:
            return None
        if own:
            return self._with_table(place, own, mime, size)
        shape = self._shapes.get((size, len(place), mime)) or self._shape(size, len(place), mime)
        return b"%b%b%b" % (shape[0], place, shape[1])

    def _shape(self, size: int, digits: int, mime: bytes) -> tuple[bytes, bytes]:
        if len(self._shapes) >= _LEAN_SHAPES:
            self._shapes.clear()
        shape = self._shapes[size, digits, mime] = self._around(digits, b"", mime, size)
        return shape

    def _with_table(self, place: bytes, own: bytes, mime: bytes, size: int) -> bytes | None:
        before, after = self._around(len(place), own, mime, size)
        too_long = len(before) - _START + len(place) > self._most
        return None if too_long else b"%b%b%b" % (before, place, after)

    def _around(self, digits: int, own: bytes, mime: bytes, size: int) -> tuple[bytes, bytes]:
        """Return what comes before the position, and what comes behind the message id."""
        flags, table = self._flags, b""
        if mime:
            flags |= HAS_CONTENT_TYPE
        if own:
            flags, table = flags | HAS_HEADERS, _length(len(own)) + own
        length = len(self._id_prefix) + digits
        rest = b"".join((_flags(flags), mime, table, self._mode, bytes((length,)), self._id_prefix))
        begin = struct.pack(">3sI4sQ", self._header_start, 12 + len(rest) + digits, CLASS_AND_WEIGHT, size)
        return begin + rest, self._body_start + _length(size)
