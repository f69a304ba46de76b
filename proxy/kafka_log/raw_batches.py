"""What a fetch brought of one partition, cut into batches without a copy: the library's cutter takes bytes only.

Length and magic are at the same place in every format. See Kafka's "Record Batch" and "Message sets" for both.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import google_crc32c
from aiokafka import errors
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.legacy_records import LegacyRecordBatch

_INT = struct.Struct(">i")
_LENGTH_AT = 8
_EPOCH_AT = 12
_MAGIC_AT = 16
_OLD_CRC_AT = 12
_OLD_CRC_COUNTS_FROM = 16
_OLD_ATTRIBUTES_AT = 17
_BEFORE_LENGTH_COUNTS = 12
_CRC = struct.Struct(">I")
_CRC_AT = 17
_CRC_COUNTS_FROM = 21
_STEP = 64 * 1024
"""Bytes of which a sum is made at once: it takes bytes only, and a copy of these costs next to nothing."""
_LEAST = 26
"""Bytes of the shortest message of the oldest format."""
_FIRST_OF_TODAY = 2
"""The magic of the format that Kafka has written since 0.11."""


class OldBatch:
    """A message in a format before 0.11, or a compressed one that holds others: long-lived topics still have them.

    The library's own, which does not say how it is compressed and can't be derived from. Its checksum is looked at
    first: what is damaged the library reads beyond its end. Raises, as its records do, `CorruptRecordException`.
    """

    is_control_batch = is_transactional = False
    producer_id = None

    def __init__(self, message: memoryview, magic: int) -> None:
        if crc32(message[_OLD_CRC_COUNTS_FROM:]) != _CRC.unpack_from(message, _OLD_CRC_AT)[0]:
            raise errors.CorruptRecordException("a message whose checksum does not hold")
        self.compression_type: int = message[_OLD_ATTRIBUTES_AT] & LegacyRecordBatch.CODEC_MASK
        with _readable():
            self._held = LegacyRecordBatch(message, magic)
        self.next_offset: int = self._held.next_offset

    def __iter__(self) -> Iterator[Any]:
        """Return its records, all of them read: the library decompresses with the first that is asked for."""
        with _readable():
            return iter(list(self._held))


class RawBatches:
    """As the library's `MemoryRecords`: batch after batch, each still to be opened; what ends too soon is left out."""

    def __init__(self, records: bytes | memoryview) -> None:
        self._view = memoryview(records)
        self._at = 0
        self._last = self._view[:0]
        whole: Any = self._view.obj
        self.kept_bytes = len(whole)
        """What lies in memory as long as this does."""

    def size_in_bytes(self) -> int:
        """Return the bytes of all batches."""
        return len(self._view)

    def has_next(self) -> bool:
        """Return whether another batch is there, whole."""
        return self._end() <= len(self._view)

    def next_batch(self) -> Any:
        """Return the next batch; None if `has_next` is false. Raises `CorruptRecordException` if it is none."""
        begin, end = self._at, self._end()
        if end > len(self._view):
            return None
        if end - begin < _LEAST:
            raise errors.CorruptRecordException(f"a batch of {end - begin} bytes, where {_LEAST} are the least")
        self._at = end
        magic = self._view[begin + _MAGIC_AT]
        self._last = batch = self._view[begin:end]
        return DefaultRecordBatch(batch) if magic >= _FIRST_OF_TODAY else OldBatch(batch, magic)

    @property
    def leader_epoch(self) -> int:
        """Of the leader that wrote the batch that `next_batch` returned last; -1 in formats that don't tell."""
        last = self._last
        return int(_INT.unpack_from(last, _EPOCH_AT)[0]) if last[_MAGIC_AT] >= _FIRST_OF_TODAY else -1

    def is_intact(self, batch: Any) -> bool:
        """Return whether the checksum of the batch holds that `next_batch` returned last.

        The library's own sum takes fourteen times as long: a seventh of all that an event of a megabyte costs.
        """
        last = self._last
        if isinstance(batch, OldBatch):
            return True  # or it would not have been made
        found = 0
        for at in range(_CRC_COUNTS_FROM, len(last), _STEP):
            found = google_crc32c.extend(found, bytes(last[at : at + _STEP]))
        return bool(found == _CRC.unpack_from(last, _CRC_AT)[0])

    def _end(self) -> int:
        """Return where the next batch ends; beyond what is there if not even its length is."""
        begin = self._at + _BEFORE_LENGTH_COUNTS
        if begin > len(self._view):
            return begin
        return begin + int(_INT.unpack_from(self._view, self._at + _LENGTH_AT)[0])


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (SystemError, AssertionError, IndexError) as error:
        # The library asks Python for as many bytes as a size says, also below none, and asserts what else it believes.
        raise errors.CorruptRecordException(f"a message that can't be read: {error}") from error
