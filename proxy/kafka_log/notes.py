"""The board's notes as Kafka keeps them: batches of records, a key and a value each."""

import time
from typing import Any, NamedTuple

from aiokafka import errors
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from proxy.kafka_log.unpacking import unpack
from proxy.model import Note

MOST_UNPACKED = 64 * 1024**2
"""Bytes of one batch, decompressed; ours are not compressed, and hold one note."""

_VERSION = 2
_NO_PRODUCER = -1
_NO_COMPRESSION = 0


class Found(NamedTuple):
    """What a fetch brought."""

    notes: list[Note]
    next: int
    """The offset to go on from."""


def written(key: str, value: bytes | None) -> bytes:
    """Return a batch of one note."""
    builder: Any = DefaultRecordBatchBuilder(
        magic=_VERSION,
        compression_type=_NO_COMPRESSION,
        is_transactional=0,
        producer_id=_NO_PRODUCER,
        producer_epoch=_NO_PRODUCER,
        base_sequence=_NO_PRODUCER,
        batch_size=0,  # the first record always has room
    )
    builder.append(0, timestamp=time.time_ns() // 1_000_000, key=key.encode(), value=value, headers=[])
    return bytes(builder.build())


def found(records: bytes, first: int) -> Found:
    """Return the notes at `first` and later. Raises `KafkaError` if a batch can't be read, or is too large.

    What is no note, a record without a key, or one whose key is no text, is passed over.
    """
    notes: list[Note] = []
    batches: Any = MemoryRecords(records)
    while batches.has_next():
        batch = batches.next_batch()
        if not batch.validate_crc():
            raise errors.CorruptRecordException("a note's bytes are not those that were written")
        if not getattr(batch, "is_control_batch", False):
            notes += _read(batch, first)
        first = max(first, batch.next_offset)
    return Found(notes, first)


def _read(batch: Any, first: int) -> list[Note]:
    try:
        return [
            Note(bytes(record.key).decode(errors="replace"), None if record.value is None else bytes(record.value))
            for record in unpack(batch, MOST_UNPACKED)[0]
            if record.offset >= first and record.key is not None
        ]
    except UnicodeDecodeError as error:  # the name of a header, of which ours have none
        raise errors.CorruptRecordException(f"a record that is no note can't be read: {error}") from error
