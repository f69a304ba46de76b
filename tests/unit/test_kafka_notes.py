"""Notes as Kafka keeps them."""

import pytest
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder

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
