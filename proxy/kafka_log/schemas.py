"""The library's schemas read in few steps: it reads field by field, each through four calls.

An answer about 1,000 partitions takes it 4 to 6 ms, and some such answers come every second however little happens. A
schema is taken apart once, into a reader for what has one length and readers for the rest.
"""

import struct
from collections.abc import Callable
from functools import cache
from io import BytesIO
from typing import Any

from aiokafka.protocol import struct as library
from aiokafka.protocol.api import RequestStruct
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
    UnsignedVarInt32,
)

Reader = Callable[[bytes, int], tuple[Any, int]]
"""From what came and a place in it to a value and the place behind it."""

_NULLABLE = "aborted_transactions"
"""The one array in what is answered to us that may be none; in a request others mean all there is by that."""
_FIXED: dict[Any, str] = {Int8: "b", Int16: "h", Int32: "i", Int64: "q", Boolean: "?"}
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_MORE, _BITS = 0x80, 7
_LONGEST = 28
"""Bits before the last byte of a number."""


def teach() -> None:
    """Let the library read so; may be called any number of times."""
    library.Struct.decode = classmethod(_decode)


def _decode(kind: Any, data: BytesIO | bytes) -> Any:
    """Return what stands there. Raises `ValueError`, `struct.error` or IndexError if it ends too soon."""
    stream = BytesIO(data) if isinstance(data, bytes) else data
    values, end = reader(kind.SCHEMA, issubclass(kind, RequestStruct))(stream.getvalue(), stream.tell())
    stream.seek(end)
    return kind(*values)


@cache
def reader(field: Any, may_lack_arrays: bool = True) -> Reader:
    """Return the reader of a field, a schema or a kind that the library knows."""
    match field:
        case Schema():
            made = _schema(field, may_lack_arrays=may_lack_arrays)
        case Array():  # a compact one is an array, too
            made = _array(field, may_lack_arrays=may_lack_arrays)
        case CompactString():
            made = _string(_number, 1, field.encoding)
        case String():
            made = _string(_short, 0, field.encoding)
        case _ if _is_fixed(field):
            made = _first_of(struct.Struct(">" + _FIXED[field]))
        case _:
            made = {TaggedFields: _tags, UnsignedVarInt32: _number}.get(field) or _as_the_library(field)
    return made


def _schema(schema: Schema, *, may_lack_arrays: bool) -> Reader:
    steps: list[tuple[struct.Struct | None, Reader]] = []
    formats = ""
    for name, field in (*zip(schema.names, schema.fields, strict=True), ("", None)):
        if field is not None and _is_fixed(field):
            formats += _FIXED[field]
            continue
        if formats:
            steps.append((struct.Struct(">" + formats), _short))
            formats = ""
        if field is not None:
            steps.append((None, reader(field, may_lack_arrays or name == _NULLABLE)))

    def read(frame: bytes, at: int) -> tuple[Any, int]:
        values: list[Any] = []
        for fixed, other in steps:
            if fixed is not None:
                values += fixed.unpack_from(frame, at)
                at += fixed.size
            else:
                value, at = other(frame, at)
                values.append(value)
        return tuple(values), at

    return read


def _array(array: Array, *, may_lack_arrays: bool) -> Reader:
    element, is_compact = array.array_of, isinstance(array, CompactArray)
    fields = element.fields if isinstance(element, Schema) else (element,)
    length = _number if is_compact else _first_of(_INT)
    row = struct.Struct(">" + "".join(_FIXED[one] for one in fields)) if all(map(_is_fixed, fields)) else None
    each = reader(element, may_lack_arrays)

    def read(frame: bytes, at: int) -> tuple[Any, int]:
        count, at = length(frame, at)
        count -= is_compact
        if count < 0:
            if count == -1 and may_lack_arrays:
                return None, at
            raise ValueError(f"an array of {count} elements")
        if row is not None:
            end = at + max(0, count) * row.size
            rows = list(row.iter_unpack(frame[at:end]))
            if len(rows) < count:
                raise ValueError(f"{count} elements, of which {len(rows)} came")
            return rows if isinstance(element, Schema) else [value for (value,) in rows], end
        values = []
        for _ in range(count):
            value, at = each(frame, at)
            values.append(value)
        return values, at

    return read


def _is_fixed(field: Any) -> bool:
    return isinstance(field, type) and field in _FIXED


def _first_of(fixed: struct.Struct) -> Reader:
    def read(frame: bytes, at: int) -> tuple[Any, int]:
        return fixed.unpack_from(frame, at)[0], at + fixed.size

    return read


_short = _first_of(_SHORT)


def _string(length: Reader, more: int, encoding: str) -> Reader:
    """Return the reader of a text whose length is told `more` too large, 0 or less: there is none."""

    def read(frame: bytes, at: int) -> tuple[Any, int]:
        size, at = length(frame, at)
        size -= more
        if size < 0:
            return None, at
        value = frame[at : at + size]
        if len(value) < size:
            raise ValueError(f"a text of {size} bytes, of which {len(value)} came")
        return value.decode(encoding), at + size

    return read


def _number(frame: bytes, at: int) -> tuple[int, int]:
    """Read a number of so many bytes as it needs, seven bits in each."""
    byte = frame[at]
    at += 1
    value, shift = byte & (_MORE - 1), _BITS
    while byte & _MORE:
        if shift > _LONGEST:
            raise ValueError(f"a number of more than {_LONGEST + _BITS} bits")
        byte = frame[at]
        at += 1
        value |= (byte & (_MORE - 1)) << shift
        shift += _BITS
    return value, at


def _tags(frame: bytes, at: int) -> tuple[dict[int, bytes], int]:
    if frame[at] == 0:
        return {}, at + 1
    return _as_the_library(TaggedFields)(frame, at)


def _as_the_library(field: Any) -> Reader:
    def read(frame: bytes, at: int) -> tuple[Any, int]:
        stream = BytesIO(frame)
        stream.seek(at)
        return field.decode(stream), stream.tell()

    return read
