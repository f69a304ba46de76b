"""How a record's headers, key and routing travel in AMQP: names, values, and what is left out of a dead letter.

Pure. AMQP can't carry everything that a log can: what does not fit raises `UnfitError`, or `trim` takes it away first.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache

from proxy.bridge.addresses import key_of
from proxy.model import Event, Reason
from proxy.settings import RoutingKey

SHORT_STRING = 255
"""Bytes that a name, key or type may have at most: AMQP counts them in one byte."""
OMITTED_BYTES = 4_096
"""Room for the entries that say what was left out of a dead letter."""

_CONTENT_TYPE = "content-type"
_OMITTED_NAMES = 16
_SPOKEN = 80
"""Characters of a foreign name, written in ASCII, that a message repeats."""
_ENTRY_OVERHEAD = 16
"""More than type, lengths and array of one entry take."""
_length = struct.Struct(">I").pack


class UnfitError(Exception):
    """AMQP can't carry this event, or the limits forbid it."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def short_string(text: str | bytes, what: str) -> bytes:
    """Return `text` as a short string, length first.

    Raises `UnfitError` naming `what` if it is no UTF-8 or longer than 255 bytes.
    """
    try:
        encoded = text.encode() if isinstance(text, str) else text
        encoded.decode()
    except UnicodeError:
        raise UnfitError(Reason.BAD_PROPERTY, f"{what} is not UTF-8") from None
    if len(encoded) > SHORT_STRING:
        raise UnfitError(Reason.BAD_PROPERTY, f"{what} has {len(encoded)} bytes, AMQP carries {SHORT_STRING}")
    return bytes((len(encoded),)) + encoded


def spoken(name: str) -> str:
    """Return a foreign name in quotes and in ASCII, cut to what a message bears."""
    quoted = ascii(name[:_SPOKEN])  # one character may take ten
    if len(name) <= _SPOKEN and len(quoted) <= _SPOKEN + 2:
        return quoted
    return f"{quoted[: _SPOKEN + 1]}...{quoted[0]}"


def field(name: str, value: bytes) -> bytes:
    """Return one table entry; `value` begins with its type."""
    return short_string(name, f"header name {spoken(name)}") + value


def text_value(text: str) -> bytes:
    """Return a table value of type S; what UTF-8 can't carry is replaced."""
    encoded = text.encode(errors="replace")
    return b"S" + _length(len(encoded)) + encoded


def long_value(number: int) -> bytes:
    """Return a table value of type l, 64 bits with a sign."""
    return b"l" + struct.pack(">q", number)


def int_value(number: int) -> bytes:
    """Return a table value of type I, 32 bits with a sign."""
    return b"I" + struct.pack(">i", number)


def log_value(data: bytes | None) -> bytes:
    """Return a log header's value: S if it is UTF-8, else x; V for null."""
    if data is None:
        return b"V"
    try:
        data.decode()
    except UnicodeDecodeError:
        return b"x" + _length(len(data)) + data
    return b"S" + _length(len(data)) + data


def carried_name(name: str) -> str:
    """Return the name under which a log header travels: never one that the broker or Tidegate gives a meaning to."""
    if name in {"CC", "BCC"} or name.startswith(("x-", "tidegate-")):
        return f"log.{name}"
    return name


def log_fields(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Return the table entries of a record's headers but `content-type`; a repeated name has one entry, an array.

    Raises `UnfitError` for a name that is too long.
    """
    values: dict[bytes, bytes] = {}
    repeated: dict[bytes, list[bytes]] = {}
    for name, data in headers:
        short = _carried(name)
        if short in values:
            repeated.setdefault(short, [values[short]]).append(log_value(data))
        elif short:
            values[short] = log_value(data)
    for short, several in repeated.items():
        items = b"".join(several)
        values[short] = b"A" + _length(len(items)) + items
    return b"".join([part for entry in values.items() for part in entry])


def content_type(event: Event) -> bytes | None:
    """Return the record's own content type as a short string, the last one given; None if it has none.

    Raises `UnfitError` if it is no UTF-8 or too long.
    """
    found = None
    for name, value in event.headers:
        if value is not None and _is_content_type(name):
            found = value
    return None if found is None else short_string(found, "content type")


def routing_key(source: RoutingKey, event: Event) -> bytes:
    """Return what the event is routed by, as a short string. Raises `UnfitError` if there is nothing that fits."""
    if source.constant is not None:
        return short_string(source.constant, "routing key")
    found = key_of(source, event)
    if source.header is None:
        return short_string(found or b"", "routing key, which is the record's key,")
    if found is None:
        raise UnfitError(Reason.BAD_PROPERTY, f"there is no header {spoken(source.header)} to route by")
    return short_string(found, f"routing key, which is header {spoken(source.header)},")


def trim(event: Event, *, event_bytes: int, headers: int, room: int) -> tuple[Event, list[bytes]]:
    """Return what of an event fits the limits and a table of `room` bytes, and the entries that tell of the rest."""
    entries: list[bytes] = []
    omitted: list[str] = []
    room -= OMITTED_BYTES
    key, value = event.key, event.value
    if value is not None and len(value) > event_bytes:
        entries.append(field("tidegate-original-size", long_value(len(value))))
        value = value[:event_bytes]
    if key is not None:
        room -= len(key) + _ENTRY_OVERHEAD
        if room < 0:
            room += len(key) + _ENTRY_OVERHEAD
            key = None
            omitted.append("key")
    kept: list[tuple[str, bytes | None]] = []
    for name, data in event.headers:
        size = 4 * len(name) + len(data or b"") + _ENTRY_OVERHEAD
        if len(kept) < headers and size <= room and _is_fit(name, data):
            room -= size
            kept.append((name, data))
        else:
            omitted.append(name)
    if omitted:
        more = f" and {len(omitted) - _OMITTED_NAMES} more" if len(omitted) > _OMITTED_NAMES else ""
        names = ", ".join(map(spoken, omitted[:_OMITTED_NAMES]))
        entries.append(field("tidegate-omitted", text_value(names + more)))
    return Event(event.position, event.timestamp_ms, key, value, tuple(kept), min(event.size, event_bytes)), entries


def _is_content_type(name: str) -> bool:
    return len(name) == len(_CONTENT_TYPE) and name.lower() == _CONTENT_TYPE


def _is_fit(name: str, data: bytes | None) -> bool:
    try:
        short_string(carried_name(name), "")
        if data is not None and _is_content_type(name):
            short_string(data, "")
    except UnfitError:
        return False
    return True


@lru_cache(1_024)
def _carried(name: str) -> bytes:
    """Return the short string under which a log header travels, nothing for `content-type`; few names come often."""
    return b"" if _is_content_type(name) else short_string(carried_name(name), f"header name {spoken(name)}")
