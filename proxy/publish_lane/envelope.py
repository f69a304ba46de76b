"""From an event to the frames of its message: pure functions of bytes.

How a record of the log becomes a message under `origin: id`:

    record                    message
    ------                    -------
    value                     body; a tombstone: empty body and header `tidegate-tombstone` (t) true
    key                       header `tidegate-key` (x), unless the route has `key: none`; absent for null, empty for
                              empty
    topic, partition,
    position, timestamp       property `message_id` (`message_ids`)
    header `content-type`     property `content_type` (in any case, the last one); else the address's, which is absent
                              if it is empty or `application/octet-stream`
    other headers             headers of the same name: S if the value is UTF-8, else x; V for null;
                              a repeated name: one array A of its values in order;
                              `CC`, `BCC`, `x-...`, `tidegate-...` get the prefix `log.`, as they have a meaning here
    sent again                header `tidegate-redriven` (I): how often, out of dead letters; absent if never
    the address's priority    property `priority`, for queues that know priorities; absent if it has none

A message that has no header has no table. Under `origin: full`, and where the id can't tell (`message_ids`), differ:

    topic, partition          headers `tidegate-topic` (S), `tidegate-partition` (I)
    position                  header `tidegate-position` (S)
    timestamp                 header `tidegate-timestamp` (l, milliseconds) and property `timestamp` (seconds, only
                              from 1970 to 9999); both absent if the record has none
    the address's notes       headers (S)
    content type              present whatever it says

Every message is persistent and mandatory. What does not fit raises `UnfitError`; at a lenient address (dead letters) it
is left out or cut instead: header `tidegate-omitted` (S) names the headers that are missing (`key` is the record's
key), `tidegate-original-size` (l) is there if the body was cut, `tidegate-unfit-routing-key` (S) says why it is empty.
"""

import struct
from sys import maxsize

from proxy.bridge.broker import Address
from proxy.model import Event, Origin, Partition, Reason
from proxy.publish_lane import content_header as header
from proxy.publish_lane.content_header import FullHeader, LeanHeader
from proxy.publish_lane.frames import BODY, END, FRAME_OVERHEAD, HEADER, METHOD, PIECE_BYTES, Long, frame
from proxy.publish_lane.headers import (
    SHORT_STRING,
    UnfitError,
    content_type,
    field,
    int_value,
    log_fields,
    routing_key,
    short_string,
    text_value,
    trim,
)
from proxy.publish_lane.message_ids import STAMPED_FROM, has_room, message_id, tells_all

_BEFORE_BODY = 2_048
"""Room for method and header, mostly shorter, in one piece with the body's first frame."""
_UNBOUNDED_FRAME = 131_072
"""Stands in for 0, by which a broker says that it sets no bound."""
_PUBLISH = b"\x00\x3c\x00\x28\x00\x00"
"""Class 60, method 40, a reserved word."""
_MANDATORY = b"\x01"
_YEAR_10000 = 253_402_300_800_000
"""Milliseconds since 1970. Later instants, as of a producer that counts nanoseconds, end the connection of clients that
make a date of the property: of consumers, and ours when the broker returns the message."""
_SAYS_NOTHING = {"", "application/octet-stream"}
"""Content types that tell a consumer no more than their absence."""
_length = struct.Struct(">I").pack
_size = struct.Struct(">Q").pack
_flags = struct.Struct(">H").pack
_TOMBSTONE_FIELD = b"\x12tidegate-tombstonet\x01"
_KEY_FIELD = b"\x0ctidegate-keyx"


class Envelope:
    """What the messages of one partition share at one address on one channel, encoded once.

    `event_bytes` and `headers` are the limits of those names; `frame_max` is what the broker negotiated, `body_bytes`
    the longest body that it takes. Raises `UnfitError` if the address itself can't be carried.
    """

    def __init__(
        self,
        address: Address,
        partition: Partition,
        *,
        channel: int,
        frame_max: int,
        event_bytes: int,
        headers: int,
        body_bytes: int = maxsize,
    ) -> None:
        self.address = address
        self._partition = partition
        self._channel = channel
        self._header_max = (frame_max or _UNBOUNDED_FRAME) - FRAME_OVERHEAD
        self._body_max = min(self._header_max, PIECE_BYTES - FRAME_OVERHEAD - _BEFORE_BODY)
        self._short = min(self._body_max, body_bytes)
        """Bodies of so many bytes take one frame."""
        self._event_bytes = event_bytes
        self._body_bytes = body_bytes
        self._headers = headers
        self._exchange = short_string(address.exchange, "exchange name")
        self._content_type = short_string(address.content_type, "content type")
        constant = address.routing_key.constant
        self._method = None if constant is None else self._publish(short_string(constant, "routing key"))
        is_lean = address.origin is Origin.ID and has_room(partition)
        kind = LeanHeader if is_lean else FullHeader
        self._usual = kind(address, partition, channel=channel, most=self._header_max)
        self._usual_type = b"" if is_lean and address.content_type in _SAYS_NOTHING else self._content_type
        self._first_stamp = STAMPED_FROM if is_lean else 0
        self._origin = header.origin_fields(address, partition)
        self._redriven = field("tidegate-redriven", int_value(address.redriven)) if address.redriven else b""

    def encode(self, event: Event) -> bytes | Long:
        """Return all frames of the event's message. Raises `UnfitError` if it can't be carried."""
        position, timestamp, key, value, headers, size = event
        if (
            not value
            or timestamp is None
            or not self._first_stamp <= timestamp < _YEAR_10000
            or size > self._event_bytes
            or len(headers) > self._headers
            or len(value) > self._short
            or self.address.lenient
        ):
            return self._encode_any(event)
        own, mime = self._redriven, self._usual_type
        if key is not None and self.address.carries_key:
            own = b"".join((own, _KEY_FIELD, _length(len(key)), key))
        if headers:
            own += log_fields(headers)
            mime = content_type(event) or mime
        content = self._usual.encode(position, timestamp, own, mime, len(value))
        if content is None:
            return self._encode_any(event)
        return b"".join(
            (self._method or self._publish(routing_key(self.address.routing_key, event)), content, value, END)
        )

    def _encode_any(self, event: Event) -> bytes | Long:
        """Encode a message of any shape."""
        address = self.address
        is_lean = tells_all(address, self._partition, event)
        remarks: list[bytes] = []
        if address.lenient:
            method, remarks = self._lenient_method(event)
            room = self._header_max - self._fixed(event, remarks)
            event, entries = trim(
                event, event_bytes=min(self._event_bytes, self._body_bytes), headers=self._headers, room=room
            )
            remarks += entries
        else:
            method = self._method or self._publish(routing_key(address.routing_key, event))
        if event.size > self._event_bytes:
            raise UnfitError(Reason.TOO_LARGE, f"{event.size} bytes, limits.event_bytes is {self._event_bytes}")
        if len(event.headers) > self._headers:
            many = f"{len(event.headers)} headers, limits.headers is {self._headers}"
            raise UnfitError(Reason.TOO_MANY_HEADERS, many)
        body = event.value or b""
        if len(body) > self._body_bytes:
            most = f"the broker takes {self._body_bytes} at most (max_message_size)"
            raise UnfitError(Reason.TOO_LARGE, f"a body of {len(body)} bytes, {most}")
        mime = content_type(event) or (self._usual_type if is_lean else self._content_type)
        start = b"" if is_lean else self._place(event)
        table = b"".join((start, self._own(event), *remarks, log_fields(event.headers)))
        content = header.CLASS_AND_WEIGHT + _size(len(body)) + self._properties(event, mime, table, is_lean=is_lean)
        if len(content) > self._header_max:
            excess = len(content) - self._header_max
            raise UnfitError(Reason.BAD_PROPERTY, f"key and headers are {excess} bytes longer than one frame carries")
        start = method + frame(HEADER, self._channel, content)
        if len(body) <= self._body_max:
            return start + frame(BODY, self._channel, body) if body else start
        message = Long(start, self._channel, memoryview(body), self._body_max)
        message.begin += message.next()
        return message

    def _properties(self, event: Event, mime: bytes, table: bytes, *, is_lean: bool) -> bytes:
        flags, priority = header.HAS_MODE | header.HAS_MESSAGE_ID, self.address.priority
        told = [header.PERSISTENT]
        if table or not is_lean:
            flags |= header.HAS_HEADERS
            told.insert(0, _length(len(table)) + table)
        if mime:
            flags |= header.HAS_CONTENT_TYPE
            told.insert(0, mime)
        if priority is not None:
            flags |= header.HAS_PRIORITY
            told.append(bytes((priority,)))
        told.append(short_string(message_id(self.address, self._partition, event), "message id"))
        if not is_lean and event.timestamp_ms is not None and 0 <= event.timestamp_ms < _YEAR_10000:
            flags |= header.HAS_TIMESTAMP
            told.append(_size(event.timestamp_ms // 1000))
        return b"".join((_flags(flags), *told))

    def _place(self, event: Event) -> bytes:
        """Return the table entries that say where the record comes from."""
        place = str(event.position).encode(errors="replace")
        start = self._origin + header.POSITION_FIELD + _length(len(place)) + place
        if event.timestamp_ms is not None:
            start += header.TIMESTAMP_FIELD + struct.pack(">q", event.timestamp_ms)
        return start

    def _own(self, event: Event) -> bytes:
        start = self._redriven if event.value is not None else self._redriven + _TOMBSTONE_FIELD
        if event.key is not None and self.address.carries_key:
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
        return len(self._place(bare)) + len(self._own(bare)) + sum(map(len, remarks)) + 3 * SHORT_STRING

    def _publish(self, key: bytes) -> bytes:
        return frame(METHOD, self._channel, b"".join((_PUBLISH, self._exchange, key, _MANDATORY)))
