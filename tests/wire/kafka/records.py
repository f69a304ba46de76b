"""Records as partitions hold them and answers carry them: batches of format 2, with or without compression.

After <https://kafka.apache.org/documentation/#recordbatch>.
"""

import gzip
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from aiokafka.record.util import calc_crc32c

from proxy.model import Event
from tests.wire.kafka.codec import write_zigzag

_HEAD = Struct(">qiib")
"""Base offset, length, epoch of the leader, magic."""
_BODY = Struct(">hiqqqhii")
"""Attributes, last offset, first and last timestamp, producer's id and epoch, first sequence, number of records."""
_CHECKSUM_BYTES = 4
MAGIC = 2
GZIP = 1
TRANSACTIONAL = 1 << 4
CONTROL = 1 << 5
_COMMIT, _ABORT = b"\0\0\0\1", b"\0\0\0\0"
"""Keys of the records that end a transaction: version 0, and the type."""
_NO_TIME = -1


class Batch(NamedTuple):
    """Some records that lie together."""

    base: int
    last: int
    """The last offset it stands for, whether or not there is a record left at it."""
    data: bytes
    records: int
    """How many there are."""
    aborted_by: int | None = None
    """The producer whose transaction it belonged to, if that was aborted."""


def batch(
    base: int,
    last: int,
    events: Sequence[tuple[int, Event]],
    *,
    epoch: int = 0,
    compressed: bool = False,
    attributes: int = 0,
    producer: int = -1,
) -> Batch:
    """Return a batch of events at their offsets."""
    first_time = events[0][1].timestamp_ms if events else None
    first = _NO_TIME if first_time is None else first_time
    records = bytearray()
    latest = first
    for offset, event in events:
        time = first if event.timestamp_ms is None else event.timestamp_ms
        latest = max(latest, time)
        records += _record(offset - base, time - first, event.key, event.value, event.headers)
    aborted_by = producer if attributes & TRANSACTIONAL and not attributes & CONTROL else None
    kind = attributes | (GZIP if compressed else 0)
    payload = gzip.compress(bytes(records), 1, mtime=0) if compressed else bytes(records)
    body = _BODY.pack(kind, last - base, first, latest, producer, 0 if producer >= 0 else -1, -1, len(events)) + payload
    return Batch(base, last, sealed(base, epoch, body), len(events), aborted_by)


def sealed(base: int, epoch: int, body: bytes, *, magic: int = MAGIC, spoiled: bool = False) -> bytes:
    """Return what surrounds a batch's body; a spoiled one has a wrong checksum."""
    checksum: int = calc_crc32c(body) ^ spoiled
    length = _HEAD.size - 12 + _CHECKSUM_BYTES + len(body)
    return _HEAD.pack(base, length, epoch, magic) + checksum.to_bytes(_CHECKSUM_BYTES) + body


def body_of(data: bytes) -> bytes:
    """Return the body of a batch."""
    return data[_HEAD.size + _CHECKSUM_BYTES :]


def marker(offset: int, producer: int, *, commits: bool, epoch: int = 0) -> Batch:
    """Return the record that ends a transaction."""
    event = Event(offset, 0, _COMMIT if commits else _ABORT, b"\0\0\0\0\0\0", (), 0)
    attributes = TRANSACTIONAL | CONTROL
    return batch(offset, offset, [(offset, event)], epoch=epoch, attributes=attributes, producer=producer)


def _record(
    offset: int, time: int, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]
) -> bytes:
    out = bytearray(1)
    write_zigzag(out, time)
    write_zigzag(out, offset)
    _write_bytes(out, key)
    _write_bytes(out, value)
    write_zigzag(out, len(headers))
    for name, text in headers:
        _write_bytes(out, name.encode())
        _write_bytes(out, text)
    size = bytearray()
    write_zigzag(size, len(out))
    return bytes(size + out)


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    write_zigzag(out, -1 if value is None else len(value))
    out += value or b""
