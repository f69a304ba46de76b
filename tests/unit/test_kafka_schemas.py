"""The library's schemas as our own code reads them, against the library's own reading."""

import inspect
import struct
from io import BytesIO
from typing import Any

import pytest
from aiokafka.protocol import admin, commit, coordination, fetch, group, metadata, offset
from aiokafka.protocol.api import Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    Bytes,
    CompactArray,
    CompactBytes,
    CompactString,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
    UnsignedVarInt32,
)
from hypothesis import given
from hypothesis import strategies as st

from proxy.kafka_log import protocol
from proxy.kafka_log.schemas import reader

KINDS: dict[Any, st.SearchStrategy[Any]] = {
    Int8: st.integers(-(2**7), 2**7 - 1),
    Int16: st.integers(-(2**15), 2**15 - 1),
    Int32: st.integers(-(2**31), 2**31 - 1),
    Int64: st.integers(-(2**63), 2**63 - 1),
    Boolean: st.booleans(),
    Float64: st.floats(allow_nan=False),
    Bytes: st.none() | st.binary(max_size=9),
    CompactBytes: st.none() | st.binary(max_size=9),
    TaggedFields: st.just({}),  # what the library writes of others it can't read
    UnsignedVarInt32: st.integers(0, 2**31 - 1),
}


def _all() -> list[type[Response]]:
    kinds: list[Any] = []
    for module in (admin, commit, coordination, fetch, group, metadata, offset, protocol):
        kinds += [one for _, one in inspect.getmembers(module, inspect.isclass) if hasattr(one, "SCHEMA")]
    return [one for one in dict.fromkeys(kinds) if issubclass(one, Response) and hasattr(one.SCHEMA, "fields")]


def _values(field: Any) -> st.SearchStrategy[Any]:
    if isinstance(field, Schema):
        return st.tuples(*map(_values, field.fields))
    if isinstance(field, Array):
        return st.none() | st.lists(_values(field.array_of), max_size=4)
    if isinstance(field, String):
        return st.none() | st.text(max_size=200)
    return KINDS.get(field, st.just(""))  # an id of a topic


@pytest.mark.parametrize("kind", _all(), ids=lambda kind: kind.__name__)
def test_an_answer_is_what_the_library_would_read(kind: Any) -> None:
    @given(_values(kind.SCHEMA))
    def is_alike(values: tuple[Any, ...]) -> None:
        written = b"head" + kind.SCHEMA.encode(values)
        stream = BytesIO(written)
        stream.seek(4)
        theirs = kind.SCHEMA.decode(stream)
        assert reader(kind.SCHEMA)(written + b"tail", 4) == (theirs, len(written))

    is_alike()


LENGTHY = Schema(
    ("names", Array(String())), ("numbers", Array(Int64)), ("rows", CompactArray(("a", Int8), ("b", Int32)))
)
CUT = (struct.error, ValueError, IndexError)


@given(_values(LENGTHY), st.data())
def test_an_answer_is_refused_when_it_ends_too_soon(values: tuple[Any, ...], data: Any) -> None:
    written = LENGTHY.encode(values)
    with pytest.raises(CUT):
        reader(LENGTHY)(written[: data.draw(st.integers(0, len(written) - 1))], 0)


@pytest.mark.parametrize("field", [CompactString(), CompactArray(String()), UnsignedVarInt32])
def test_a_number_is_refused_when_it_never_ends(field: Any) -> None:
    with pytest.raises(ValueError, match="bits"):
        reader(field)(b"\xff" * 20, 0)


@given(KINDS[UnsignedVarInt32])
def test_a_number_is_what_the_library_would_read(number: int) -> None:
    written = UnsignedVarInt32.encode(number)
    assert reader(UnsignedVarInt32)(written, 0) == (number, len(written))
