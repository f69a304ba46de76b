"""Kinds of values on Kafka's wire, each read from and written to bytes.

Structures are dicts by the names of their fields, in the order of their declaration.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, NamedTuple, TypeAlias


class TruncatedError(Exception):
    """The bytes end before the value does."""


class Input:
    """Bytes, and how far they have been read."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        """Return the next so many bytes. Raises `TruncatedError`."""
        end = self.at + count
        if end > len(self.data):
            raise TruncatedError(f"{count} bytes are wanted at {self.at} of {len(self.data)}")
        taken = self.data[self.at : end]
        self.at = end
        return taken


class Kind(NamedTuple):
    """How a value is read and written."""

    read: Callable[[Input], Any]
    write: Callable[[bytearray, Any], None]


Fields: TypeAlias = Mapping[str, Kind]


def _number(form: str) -> Kind:
    layout = Struct(">" + form)
    unpack, pack, size = layout.unpack, layout.pack, layout.size

    def read(data: Input) -> Any:
        return unpack(data.take(size))[0]

    def write(out: bytearray, value: Any) -> None:
        out += pack(value)

    return Kind(read, write)


INT8, INT16, INT32, INT64, BOOL = map(_number, "bhiq?")


def read_varint(data: Input) -> int:
    """Read an unsigned number of seven bits a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = data.take(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7


def write_varint(out: bytearray, value: int) -> None:
    """Write one; it must not be negative."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_zigzag(out: bytearray, value: int) -> None:
    """Write a signed number so that small ones of either sign are short."""
    write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _read_compact(data: Input) -> int:
    return read_varint(data) - 1


def _write_compact(out: bytearray, length: int) -> None:
    write_varint(out, length + 1)


_LENGTHS = {
    "short": INT16,
    "long": INT32,
    "compact": Kind(_read_compact, _write_compact),
}
"""How the length of what follows is told; -1 for none."""


def _bytes(length: Kind) -> Kind:
    def read(data: Input) -> bytes | None:
        size = length.read(data)
        return None if size < 0 else data.take(size)

    def write(out: bytearray, value: bytes | None) -> None:
        length.write(out, -1 if value is None else len(value))
        out += value or b""

    return Kind(read, write)


def _string(length: Kind) -> Kind:
    plain = _bytes(length)

    def read(data: Input) -> str | None:
        told = plain.read(data)
        return None if told is None else told.decode()

    def write(out: bytearray, value: str | None) -> None:
        plain.write(out, None if value is None else value.encode())

    return Kind(read, write)


BYTES = _bytes(_LENGTHS["long"])
COMPACT_BYTES = _bytes(_LENGTHS["compact"])
STRING = _string(_LENGTHS["short"])
COMPACT_STRING = _string(_LENGTHS["compact"])


def array(of: Kind, *, compact: bool = False) -> Kind:
    """Return the kind of a list; None is one that is not there."""
    length = _LENGTHS["compact" if compact else "long"]

    def read(data: Input) -> list[Any] | None:
        count = length.read(data)
        return None if count < 0 else [of.read(data) for _ in range(count)]

    def write(out: bytearray, values: list[Any] | None) -> None:
        length.write(out, -1 if values is None else len(values))
        for value in values or ():
            of.write(out, value)

    return Kind(read, write)


def fixed(size: int) -> Kind:
    """Return the kind of so many bytes."""

    def write(out: bytearray, value: bytes) -> None:
        out += value

    return Kind(lambda data: data.take(size), write)


def struct(fields: Fields, *, tagged: bool = False) -> Kind:
    """Return the kind of a structure; one that may carry tagged fields passes over those it reads."""
    kinds = tuple(fields.items())

    def read(data: Input) -> dict[str, Any]:
        value = {name: kind.read(data) for name, kind in kinds}
        if tagged:
            skip_tags(data)
        return value

    def write(out: bytearray, value: Mapping[str, Any]) -> None:
        for name, kind in kinds:
            kind.write(out, value[name])
        if tagged:
            out.append(0)

    return Kind(read, write)


def skip_tags(data: Input) -> None:
    """Pass over the tagged fields."""
    for _ in range(read_varint(data)):
        read_varint(data)
        data.take(read_varint(data))


def encode(kind: Kind, value: Any) -> bytes:
    """Return a value's bytes."""
    out = bytearray()
    kind.write(out, value)
    return bytes(out)


def decode(kind: Kind, data: bytes) -> Any:
    """Return the value that the bytes begin with. Raises `TruncatedError`."""
    return kind.read(Input(data))
