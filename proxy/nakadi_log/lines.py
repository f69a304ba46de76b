"""What comes over a stream: lines out of bytes, a batch out of a line, events out of a batch. Pure.

An event's bytes go through as they came: they are cut out of the line between its borders, neither parsed as a whole
nor written anew. Of its metadata only what the bridge needs is read.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from proxy.model import Event
from proxy.nakadi_log.offsets import place

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LongLineError(Exception):
    """A line is longer than it may be."""


class BadLineError(Exception):
    """A line is none of this API; the words say what is wrong with it."""


class Cursor(msgspec.Struct, frozen=True, gc=False):
    """Up to where a partition was sent, the last event of its batch included; what is committed, as it came."""

    partition: str
    offset: str
    event_type: str
    cursor_token: str


class _Line(msgspec.Struct, gc=False):
    cursor: Cursor | None = None
    events: list[msgspec.Raw] | None = None


class _Metadata(msgspec.Struct, gc=False):
    occurred_at: datetime | None = None
    partition_compaction_key: str | None = None


class _Head(msgspec.Struct, gc=False):
    metadata: _Metadata | None = None


class _Key(msgspec.Struct, gc=False):
    partition_compaction_key: str | None = None


class _KeyAlone(msgspec.Struct, gc=False):
    metadata: _Key | None = None


class Batch(msgspec.Struct, frozen=True):
    """One line: what is committed for it, and its events, the last of which stands at `place`; none: a keep-alive."""

    cursor: Cursor
    number: int
    """Of the partition."""
    place: int
    """Where the cursor stands."""
    events: list[Event]
    size: int
    """Bytes of keys and values."""


_line = msgspec.json.Decoder(_Line)
_head = msgspec.json.Decoder(_Head)
_key = msgspec.json.Decoder(_KeyAlone)
_NO_METADATA = _Head()


class Lines:
    """Puts lines together from the pieces in which they come; holds `bound` bytes of an unfinished one at most."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._pieces: list[bytes] = []
        self._held = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the lines that end in this piece, empty ones left out. Raises `LongLineError`."""
        begin = 0
        while (end := piece.find(b"\n", begin)) >= 0:
            line = piece[begin:end]
            if self._pieces:
                self._pieces.append(line)
                line = b"".join(self._pieces)
                self._pieces, self._held = [], 0
            if len(line) > self._bound:
                raise LongLineError
            if line.strip():
                yield line
            begin = end + 1
        if begin < len(piece):
            self._pieces.append(piece[begin:])
            self._held += len(piece) - begin
            if self._held > self._bound:
                raise LongLineError


def batch(line: bytes) -> Batch | None:
    """Return what a line says; None if it only has words, as a stream's last one may. Raises `BadLineError`."""
    try:
        told = _line.decode(line)
        cursor = told.cursor
        if cursor is None:
            return None
        at, number = place(cursor.offset), int(cursor.partition)
    except (msgspec.DecodeError, ValueError, UnicodeDecodeError) as error:
        raise BadLineError(str(error)[:200]) from error
    raw = told.events or ()
    events: list[Event] = []
    size = 0
    # An offset is told of a batch's last event alone; a log that is not compacted leaves none out.
    for position, piece in enumerate(raw, at + 1 - len(raw)):
        value = bytes(piece)
        try:
            metadata = _head.decode(value).metadata
        except (msgspec.DecodeError, UnicodeDecodeError):
            metadata = _without_instant(value)
        stamp, key, octets = None, None, len(value)
        if metadata is not None:
            if metadata.occurred_at is not None:
                stamp = milliseconds(metadata.occurred_at)
            if metadata.partition_compaction_key is not None:
                key = metadata.partition_compaction_key.encode(errors="replace")
                octets += len(key)
        events.append(Event(position, stamp, key, value, (), octets))
        size += octets
    return Batch(cursor, number, at, events, size)


def milliseconds(instant: datetime) -> int | None:
    """Return an instant in milliseconds since 1970, as whole as it was written; None if it names no zone."""
    if instant.tzinfo is None:
        return None
    since = instant - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _without_instant(value: bytes) -> _Metadata | None:
    """Return what there is of metadata that is not as it should be; of what is no JSON nothing."""
    try:
        told = _key.decode(value).metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if told is None else _Metadata(None, told.partition_compaction_key)
