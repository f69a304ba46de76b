"""From an event to AMQP 0-9-1 frames, without a client: pure functions of bytes.

How a record of the log becomes a message:

    record                    message
    ------                    -------
    value                     body; a tombstone: empty body and header `tidegate-tombstone` (t) true
    key                       header `tidegate-key` (x); absent for null, empty for empty
    topic, partition          headers `tidegate-topic` (S), `tidegate-partition` (I)
    position                  header `tidegate-position` (S)
    timestamp                 header `tidegate-timestamp` (l, milliseconds) and property `timestamp` (seconds, only
                              from 1970 to 9999); both absent if the record has none
    header `content-type`     property `content_type` (in any case, the last one); else the address's
    other headers             headers of the same name: S if the value is UTF-8, else x; V for null;
                              a repeated name: one array A of its values in order;
                              `CC`, `BCC`, `x-...`, `tidegate-...` get the prefix `log.`, as they have a meaning here
    topic-partition-position  property `message_id`; the BLAKE2 digest of it if it is longer than 255 bytes
    the address's priority    property `priority`, for queues that know priorities; absent if it has none
    the address's notes       headers (S)

Every message is persistent and mandatory. What does not fit raises `UnfitError`; at a lenient address (dead letters) it
is left out or cut instead: header `tidegate-omitted` (S) names the headers that are missing (`key` is the record's
key), `tidegate-original-size` (l) is there if the body was cut, `tidegate-unfit-routing-key` (S) says why it is empty.
"""

import struct
from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from proxy.bridge.broker import Address
from proxy.model import Event, Partition, Reason
from proxy.publish_lane.headers import (
    SHORT_STRING,
    UnfitError,
    content_type,
    field,
    log_fields,
    routing_key,
    short_string,
    text_value,
    trim,
)

PIECE_BYTES = 64 * 1024
"""What is written at once; bodies are split into frames that fit."""

_METHOD, _HEADER, _BODY = 1, 2, 3
_END = b"\xce"
_FRAME_OVERHEAD = 8
_BEFORE_BODY = 2_048
"""Room for method and header, mostly shorter, in one piece with the body's first frame."""
_UNBOUNDED_FRAME = 131_072
"""Stands in for 0, by which a broker says that it sets no bound."""
_PUBLISH = b"\x00\x3c\x00\x28\x00\x00"
"""Class 60, method 40, a reserved word."""
_MANDATORY = b"\x01"
_PERSISTENT = b"\x02"
_CLASS_AND_WEIGHT = b"\x00\x3c\x00\x00"
_FLAGS = 0xB080
"""Content type, headers, delivery mode, message id."""
_FLAG_OF_PRIORITY = 0x0800
_FLAG_OF_TIMESTAMP = 0x0040
_YEAR_10000 = 253_402_300_800_000
"""Milliseconds since 1970. Later instants, as of a producer that counts nanoseconds, end the connection of clients that
make a date of the property: of consumers, and ours when the broker returns the message."""
_SHAPES = 64
"""Shapes kept per envelope; beyond it they are made anew."""
_start = struct.Struct(">BHI")
_length = struct.Struct(">I").pack
_size = struct.Struct(">Q").pack
_flags = struct.Struct(">H").pack
_POSITION_FIELD = b"\x11tidegate-positionS"
_TIMESTAMP_FIELD = b"\x12tidegate-timestampl"
_TOMBSTONE_FIELD = b"\x12tidegate-tombstonet\x01"
_KEY_FIELD = b"\x0ctidegate-keyx"


class _Shape(NamedTuple):
    """What messages with a timestamp share that have the same content type and positions of one length."""

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


def message_id(partition: Partition, event: Event) -> bytes:
    """Return the message id, the same at every attempt; a message that the broker returns is known by it."""
    full = f"{partition}-{event.position}".encode(errors="replace")
    return full if len(full) <= SHORT_STRING else blake2b(full, digest_size=16).hexdigest().encode()


class Envelope:
    """What the messages of one partition share at one address on one channel, encoded once.

    `event_bytes` and `headers` are the limits of those names; `frame_max` is what the broker negotiated. Raises
    `UnfitError` if the address itself can't be carried.
    """

    def __init__(
        self, address: Address, partition: Partition, *, channel: int, frame_max: int, event_bytes: int, headers: int
    ) -> None:
        self.address = address
        self._partition = partition
        self._channel = channel
        self._header_max = (frame_max or _UNBOUNDED_FRAME) - _FRAME_OVERHEAD
        self._body_max = min(self._header_max, PIECE_BYTES - _FRAME_OVERHEAD - _BEFORE_BODY)
        self._event_bytes = event_bytes
        self._headers = headers
        self._exchange = short_string(address.exchange, "exchange name")
        self._content_type = short_string(address.content_type, "content type")
        constant = address.routing_key.constant
        self._method = None if constant is None else self._publish(short_string(constant, "routing key"))
        flags, self._mode = _FLAGS, _PERSISTENT
        if address.priority is not None:
            flags, self._mode = _FLAGS | _FLAG_OF_PRIORITY, _PERSISTENT + bytes((address.priority,))
        self._identity_max = len(self._mode) + 1 + SHORT_STRING
        self._flags = _flags(flags)
        self._flags_with_timestamp = _flags(flags | _FLAG_OF_TIMESTAMP)
        self._id_prefix = f"{partition}-".encode(errors="replace")
        self._origin = b"".join(
            (
                field("tidegate-topic", text_value(partition.topic)),
                field("tidegate-partition", b"I" + struct.pack(">i", partition.number)),
                *(field(name, text_value(value)) for name, value in address.notes),
            )
        )
        self._header_start = _start.pack(_HEADER, channel, 0)[:3]
        self._body_start = _END + _start.pack(_BODY, channel, 0)[:3]
        self._shapes: dict[tuple[int, bytes], _Shape] = {}

    def encode(self, event: Event) -> bytes:
        """Return all frames of the event's message. Raises `UnfitError` if it can't be carried."""
        position, timestamp, key, value, headers, size = event
        if (
            not value
            or timestamp is None
            or not 0 <= timestamp < _YEAR_10000
            or size > self._event_bytes
            or len(headers) > self._headers
            or len(value) > self._body_max
            or self.address.lenient
        ):
            return self._encode_any(event)
        own = b"" if key is None else b"".join((_KEY_FIELD, _length(len(key)), key))
        mime = self._content_type
        if headers:
            own += log_fields(headers)
            mime = content_type(event) or mime
        place = str(position).encode(errors="replace")
        shape = self._shapes.get((len(place), mime)) or self._shape(len(place), mime)
        start, middle, origin, identity, table, beside = shape
        table += len(own)
        if table + beside > self._header_max or len(identity) + len(place) > self._identity_max:
            return self._encode_any(event)
        return b"".join(
            (
                self._method or self._publish(routing_key(self.address.routing_key, event)),
                start.pack(
                    self._header_start,
                    table + beside,
                    _CLASS_AND_WEIGHT,
                    len(value),
                    self._flags_with_timestamp,
                    mime,
                    table,
                    origin,
                    place,
                    _TIMESTAMP_FIELD,
                    timestamp,
                ),
                own,
                middle.pack(identity, place, timestamp // 1000, self._body_start, len(value)),
                value,
                _END,
            )
        )

    def _shape(self, digits: int, mime: bytes) -> _Shape:
        if len(self._shapes) >= _SHAPES:
            self._shapes.clear()
        identity = self._mode + bytes((min(len(self._id_prefix) + digits, SHORT_STRING),)) + self._id_prefix
        origin = self._origin + _POSITION_FIELD + _length(digits)
        shape = _Shape(
            struct.Struct(f">3sI4sQ2s{len(mime)}sI{len(origin)}s{digits}s{len(_TIMESTAMP_FIELD)}sq"),
            struct.Struct(f">{len(identity)}s{digits}sQ4sI"),
            origin,
            identity,
            table=len(origin) + digits + len(_TIMESTAMP_FIELD) + 8,
            beside=14 + len(mime) + 4 + len(identity) + digits + 8,
        )
        self._shapes[digits, mime] = shape
        return shape

    def _encode_any(self, event: Event) -> bytes:
        """Encode a message of any shape."""
        address = self.address
        remarks: list[bytes] = []
        if address.lenient:
            method, remarks = self._lenient_method(event)
            room = self._header_max - self._fixed(event, remarks)
            event, entries = trim(event, event_bytes=self._event_bytes, headers=self._headers, room=room)
            remarks += entries
        else:
            method = self._method or self._publish(routing_key(address.routing_key, event))
        if event.size > self._event_bytes:
            raise UnfitError(Reason.TOO_LARGE, f"{event.size} bytes, limits.event_bytes is {self._event_bytes}")
        if len(event.headers) > self._headers:
            many = f"{len(event.headers)} headers, limits.headers is {self._headers}"
            raise UnfitError(Reason.TOO_MANY_HEADERS, many)
        body = event.value or b""
        table = b"".join((self._table_start(event), *remarks, log_fields(event.headers)))
        tail = self._mode + short_string(message_id(self._partition, event), "message id")
        flags = self._flags
        if event.timestamp_ms is not None and 0 <= event.timestamp_ms < _YEAR_10000:
            flags = self._flags_with_timestamp
            tail += _size(event.timestamp_ms // 1000)
        header = b"".join(
            (
                _CLASS_AND_WEIGHT,
                _size(len(body)),
                flags,
                content_type(event) or self._content_type,
                _length(len(table)),
                table,
                tail,
            )
        )
        if len(header) > self._header_max:
            excess = len(header) - self._header_max
            raise UnfitError(Reason.BAD_PROPERTY, f"key and headers are {excess} bytes longer than one frame carries")
        return b"".join((method, self._frame(_HEADER, header), *self._body_frames(body)))

    def _table_start(self, event: Event) -> bytes:
        place = str(event.position).encode(errors="replace")
        start = self._origin + _POSITION_FIELD + _length(len(place)) + place
        if event.timestamp_ms is not None:
            start += _TIMESTAMP_FIELD + struct.pack(">q", event.timestamp_ms)
        if event.value is None:
            start += _TOMBSTONE_FIELD
        if event.key is not None:
            start += _KEY_FIELD + _length(len(event.key)) + event.key
        return start

    def _lenient_method(self, event: Event) -> tuple[bytes, list[bytes]]:
        if self._method is not None:
            return self._method, []
        try:
            return self._publish(routing_key(self.address.routing_key, event)), []
        except UnfitError as error:
            return self._publish(b"\x00"), [field("tidegate-unfit-routing-key", text_value(error.detail))]

    def _fixed(self, event: Event, remarks: list[bytes]) -> int:
        """Return how much of a header frame is taken before the record's own key and headers."""
        bare = event._replace(key=None)
        return len(self._table_start(bare)) + sum(map(len, remarks)) + 3 * SHORT_STRING

    def _publish(self, key: bytes) -> bytes:
        return self._frame(_METHOD, b"".join((_PUBLISH, self._exchange, key, _MANDATORY)))

    def _frame(self, kind: int, payload: bytes) -> bytes:
        return b"".join((_start.pack(kind, self._channel, len(payload)), payload, _END))

    def _body_frames(self, body: bytes) -> Iterator[bytes]:
        for start in range(0, len(body), self._body_max):
            yield self._frame(_BODY, body[start : start + self._body_max])


def cut(frames: bytes, limit: int) -> Iterator[bytes]:
    """Yield `frames` in pieces of at most `limit` bytes that end where frames end; a longer frame is a piece alone."""
    begin = end = 0
    while end < len(frames):
        after = end + _FRAME_OVERHEAD + _start.unpack_from(frames, end)[2]
        if after - begin > limit and end > begin:
            yield frames[begin:end]
            begin = end
        end = after
    if begin < len(frames):
        yield frames[begin:]


def without_channel(frames: bytes, channel: int) -> bytes:
    """Return `frames` but those of one channel."""
    kept: list[bytes] = []
    begin = 0
    while begin < len(frames):
        _, number, size = _start.unpack_from(frames, begin)
        end = begin + _FRAME_OVERHEAD + size
        if number != channel:
            kept.append(frames[begin:end])
        begin = end
    return b"".join(kept)
