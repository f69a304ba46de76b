"""Notes as Kafka keeps them."""

from contextlib import suppress

import pytest
from aiokafka.errors import CorruptRecordException, KafkaError
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from hypothesis import given
from hypothesis import strategies as st

from proxy.kafka_log.client import teach_manners
from proxy.kafka_log.notes import found, written
from proxy.model import Note


def test_a_note_is_found_as_it_was_written_when_its_value_is_none_or_empty_or_large() -> None:
    for value in (None, b"", bytes(900_000)):
        assert found(written("häuser/1", value), 0) == ([Note("häuser/1", value)], 1)


def test_what_stands_before_is_not_found_again_when_it_is_in_the_same_batch() -> None:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1000)
    for number in range(3):
        builder.append(number, 0, b"%d" % number, b"", [])
    assert found(bytes(builder.build()), 1) == ([Note("1", b""), Note("2", b"")], 3)


def test_nothing_is_found_when_only_a_part_of_a_batch_has_come() -> None:
    whole = written("a", b"first")
    assert found(whole[:-1], 7) == ([], 7)


def test_a_batch_is_refused_when_its_bytes_have_changed() -> None:
    batch = bytearray(written("a", b"first"))
    batch[-2] ^= 1
    with pytest.raises(CorruptRecordException):
        found(bytes(batch), 0)


@given(st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_batch_is_read_or_refused_and_nothing_else_when_it_is_malformed_under_a_right_checksum(
    changes: list[tuple[int, int]],
) -> None:
    teach_manners()
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1000)
    builder.append(0, 0, b"intervention/a", b"some value", [("name", b"of a header")])
    built = bytearray(builder.build())
    for at, byte in changes:
        built[21 + at % (len(built) - 21)] = byte
    built[17:21] = calc_crc32c(bytes(built[21:])).to_bytes(4, "big")
    with suppress(KafkaError):
        found(bytes(built), 0)


def test_a_batch_is_refused_when_somebody_has_written_a_header_that_is_no_text() -> None:
    teach_manners()
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1000)
    builder.append(0, 0, b"intervention/a", b"", [("name", b"")])
    built = bytearray(builder.build()).replace(b"name", b"n\xffme")
    built[17:21] = calc_crc32c(bytes(built[21:])).to_bytes(4, "big")
    with pytest.raises(CorruptRecordException, match="no note"):
        found(bytes(built), 0)
