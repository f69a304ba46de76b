"""Decompresses what a fetch brought, within a bound: bytes on the wire say nothing, as 2 KB can hold 64 MiB.

It stands in for the library's own functions. What holds more than it may raises `RecordTooLargeError`, what can't be
undone `CorruptRecordException`, whatever the compression.
"""

import mmap
import threading
import zlib
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any

import aiokafka.record._crecords.default_records
import aiokafka.record._crecords.legacy_records
import aiokafka.record.default_records
import aiokafka.record.legacy_records
import cramjam
from aiokafka import errors

AT_ONCE = 2 * 1024**2
"""So many bytes may come of a batch where it stands: some milliseconds. One that holds more is opened on a thread."""

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_BYTES = 16
_SIZE = Struct(">i")
_GZIP = 16 + zlib.MAX_WBITS
_NO_ROOM = "whole buffer"
"""What the library says of output that does not fit."""


class _Bound(threading.local):
    """What the decompression under way may yield and what it has yielded, in bytes; each thread has one under way."""

    most = 64 * 1024**2
    """As `unpack` is told; this for whoever reads batches without it."""
    size = 0

    def __init__(self) -> None:
        self.room = bytearray(AT_ONCE)
        """Where small batches are opened. One room for two threads would mix their events."""


_bound = _Bound()


def unpack(batch: Any, most: int) -> tuple[Iterator[Any], int]:
    """Return the records of a batch, and the bytes they take now that they are decompressed; 0 if they never were not.

    Raises `RecordTooLargeError` if they take more than `most`, `CorruptRecordException`. May be tried again with more.
    """
    _bound.most, _bound.size = most, 0
    return iter(batch), _bound.size


def _bounded(undo: Callable[[bytes, int], bytes]) -> Callable[[Any], bytes]:
    def decode(payload: Any) -> bytes:
        try:
            content = undo(bytes(payload), _bound.most)
        except (cramjam.DecompressionError, zlib.error) as error:
            if _NO_ROOM in str(error):
                raise _too_large(_bound.most) from error
            raise errors.CorruptRecordException(f"it can't be decompressed: {error}") from error
        _bound.size = len(content)
        return content

    return decode


def _too_large(most: int) -> errors.RecordTooLargeError:
    return errors.RecordTooLargeError(f"a batch of more than {most} bytes, decompressed; see log.batch_bytes")


def _gunzip(payload: bytes, most: int) -> bytes:
    parts, left = [], most
    while payload:
        stream = zlib.decompressobj(_GZIP)
        part = stream.decompress(payload, left + 1)
        left -= len(part)
        if left < 0:
            raise _too_large(most)
        if not stream.eof:
            raise zlib.error("it ends too soon")
        parts.append(part)
        payload = stream.unused_data.lstrip(b"\0")
    return b"".join(parts)


def _unsnap(payload: bytes, most: int) -> bytes:
    """Undo both forms: blocks with their sizes before them, as Java writes them, or one block alone."""
    blocks = [payload]
    if payload.startswith(_XERIAL):
        blocks, at = [], _XERIAL_BYTES
        while at < len(payload):
            end = at + _SIZE.size
            end += _SIZE.unpack_from(payload, at)[0] if end <= len(payload) else len(payload)
            if not at + _SIZE.size < end <= len(payload):
                raise errors.CorruptRecordException("it can't be decompressed: a block has no such size")
            blocks.append(payload[at + _SIZE.size : end])
            at = end
    if sum(cramjam.snappy.decompress_raw_len(block) for block in blocks) > most:
        raise _too_large(most)
    return b"".join(bytes(cramjam.snappy.decompress_raw(block)) for block in blocks)


def _into(decompress: Callable[[bytes, Any], int]) -> Callable[[bytes, int], bytes]:
    def undo(payload: bytes, most: int) -> bytes:
        if most <= AT_ONCE:
            room = memoryview(_bound.room)
            return bytes(room[: decompress(payload, room[:most])])
        with mmap.mmap(-1, most) as large:  # takes memory only as it is filled
            return large[: decompress(payload, large)]

    return undo


DECODERS: dict[str, Callable[[Any], bytes]] = {
    "gzip_decode": _bounded(_gunzip),
    "snappy_decode": _bounded(_unsnap),
    "lz4_decode": _bounded(_into(cramjam.lz4.decompress_into)),
    "zstd_decode": _bounded(_into(cramjam.zstd.decompress_into)),
}
"""By the names under which the library looks them up."""


def teach() -> None:
    """Let the library decompress within the bound; may be called any number of times."""
    for module in (
        aiokafka.record._crecords.default_records,  # noqa: SLF001  # where it looks them up
        aiokafka.record._crecords.legacy_records,  # noqa: SLF001
        aiokafka.record.default_records,
        aiokafka.record.legacy_records,
    ):
        for name, decode in DECODERS.items():
            if hasattr(module, name):
                setattr(module, name, decode)
