"""Answers read in slices hold what the library reads of them as a whole."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, READ_UNCOMMITTED
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.kafka_log.answer import Batches, Room
from proxy.kafka_log.events import events as events_of
from proxy.kafka_log.leader_epochs import LeaderEpochs
from proxy.kafka_log.opening import Opener
from proxy.kafka_log.range_count import RangeCount
from proxy.kafka_log.raw_batches import RawBatches

AT = TopicPartition("orders", 0)
_CRC, _ATTRIBUTES, _LAST = 17, 21, 23
"""Where these fields stand in a batch."""
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
MOST = 20
"""Batches that are looked at: more than were made."""
(WHOLE,) = Batches.__bases__
"""The library's own."""

batches = st.lists(
    st.tuples(
        st.integers(1, 9),  # events
        st.integers(0, 3),  # offsets that compaction took after them
        st.sampled_from([0, 1, 2, 3, 4]),  # compression
        st.sampled_from(["plain", "transaction", "commit", "abort"]),
        st.integers(1, 2),  # producer
    ),
    max_size=8,
)


def an_opener() -> Opener:
    """One for whom nothing lies open."""
    return Opener(lambda: 0, lambda: None)


def built(first: int, events: int, gap: int, compression: int, kind: str, producer: int) -> bytes:
    is_marker = kind in {"commit", "abort"}
    builder = DefaultRecordBatchBuilder(2, 0 if is_marker else compression, kind != "plain", producer, 0, 0, 1 << 20)
    if is_marker:
        events, marker = 1, b"\0\0\0" + bytes([kind == "commit"])
        builder.append(0, 0, marker, b"\0\0\0\0\0\0", [])
    else:
        for number in range(events):
            builder.append(number, 1000 + number, None if number % 3 else b"key", b"%d" % number, [("h", b"x")])
    whole = bytearray(builder.build())
    whole[:8] = first.to_bytes(8, "big")
    if is_marker:
        whole[_ATTRIBUTES + 1] |= _CONTROL
    whole[_LAST : _LAST + 4] = (events - 1 + gap).to_bytes(4, "big")
    whole[_CRC : _CRC + 4] = calc_crc32c(bytes(whole[_ATTRIBUTES:])).to_bytes(4, "big")
    return bytes(whole)


@pytest.mark.parametrize("size", [1, 65_000, 65_536, 200_000])
def test_a_changed_byte_is_noticed_wherever_it_is_and_however_large_the_batch(size: int) -> None:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, 0, 1 << 20)
    builder.append(0, 1000, None, bytes(size), [])
    content = bytearray(builder.build())
    for at in (None, 21, len(content) // 2, len(content) - 1):
        changed = bytearray(content)
        if at is not None:
            changed[at] ^= 1
        batches = RawBatches(memoryview(changed))
        assert batches.is_intact(batches.next_batch()) is (at is None)


def test_an_answer_is_given_back_as_soon_as_nobody_looks_at_it() -> None:
    content = bytearray(built(0, 3, 0, 0, "plain", 1))
    held = Batches(LeaderEpochs(), AT, RawBatches(memoryview(content)), None, 0, None, None, True, READ_COMMITTED)  # noqa: FBT003  # as above
    taken, is_more = held.take(Room(10, 1000), an_opener())
    assert (len(taken), is_more) == (3, False)
    with pytest.raises(BufferError):
        content.append(0)
    del held
    content.append(0)


def content_of(record: Any) -> tuple[Any, ...]:
    return record.offset, record.timestamp, record.key, record.value, tuple(record.headers)


@given(batches, st.integers(0, 12), st.booleans(), st.integers(1, 7), st.integers(1, 64))
def test_slices_hold_what_the_library_reads_as_a_whole(
    given_batches: list[Any], begin: int, is_committed: bool, events: int, size: int
) -> None:
    content, first, aborted = b"", 0, []
    open_since: dict[int, int] = {}
    for batch in given_batches:
        count, gap, _, kind, producer = batch
        content += built(first, *batch)
        if kind == "transaction":
            open_since.setdefault(producer, first)
        elif kind in {"commit", "abort"}:
            since = open_since.pop(producer, None)
            if kind == "abort" and since is not None:
                aborted.append((producer, since))
        after = first + (1 if kind in {"commit", "abort"} else count) + gap
        begin = begin % after if first == 0 else begin  # Kafka's answer begins with the batch that holds what is wanted
        first = after
    level = READ_COMMITTED if is_committed else READ_UNCOMMITTED

    def of(kind: Any, records: Any) -> Any:
        return kind(AT, records, list(aborted), begin, None, None, True, level)  # noqa: FBT003  # as the library has it

    whole, sliced = (
        of(WHOLE, MemoryRecords(content)),
        of(partial(Batches, LeaderEpochs()), RawBatches(memoryview(b"..." + content + b".")[3:-1])),
    )
    expected = [content_of(one) for one in whole]
    found: list[Any] = []
    is_more = True
    while is_more:
        room = Room(events, size)
        taken, is_more = sliced.take(room, an_opener())
        assert len(taken) <= events
        found += [content_of(one) for one in taken]
        if found:
            assert sliced.next_fetch_offset > found[-1][0]
    assert found == expected
    assert sliced.next_fetch_offset == whole.next_fetch_offset


def old(first: int, events: int, magic: int, compression: int) -> bytes:
    """Make messages as Kafka kept them before 0.11: a compressed one is called as the last that it holds.

    Those of the second format are counted from 0 within it.
    """
    is_packed = compression != 0
    builder = LegacyRecordBatchBuilder(magic, compression, 1 << 20)
    for number in range(events):
        place = number if is_packed and magic else first + number
        builder.append(place, 1000 + number, None if number % 3 else b"key", b"%d" % number)
    content = bytes(builder.build())
    return (first + events - 1).to_bytes(8, "big") + content[8:] if is_packed else content


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from([0, 1, 2]), st.sampled_from([0, 1, 2])),  # events, format, packing
        min_size=1,
        max_size=6,
    ),
    st.integers(0, 12),
    st.integers(1, 7),
)
def test_messages_of_old_formats_are_read_wherever_they_stand(
    given_batches: list[tuple[int, int, int]], begin: int, most: int
) -> None:
    content, expected = b"", []
    for count, magic, compression in given_batches:
        first = len(expected)
        made = old(first, count, magic, compression) if magic < 2 else built(first, count, 0, compression, "plain", 1)
        content += made
        for number in range(count):
            key = None if number % 3 else b"key"
            expected.append((first + number, 1000 + number if magic else None, key, b"%d" % number))
    records = RawBatches(content)
    sliced = Batches(LeaderEpochs(), AT, records, [], begin, None, None, True, READ_COMMITTED)  # noqa: FBT003  # as the library has it
    found: list[Any] = []
    is_more = True
    while is_more:
        taken, is_more = sliced.take(Room(most, 1000), an_opener())
        assert len(taken) <= most
        found += [event[:4] for event in events_of(taken)]
    assert found == expected[begin:]
    assert sliced.next_fetch_offset == max(begin, len(expected))


def test_a_range_is_counted_when_it_holds_messages_of_old_formats() -> None:
    content = old(0, 3, 0, 0) + old(3, 4, 1, 1) + built(7, 2, 0, 0, "plain", 1)
    count = RangeCount(1, 9, 1001, 1 << 20)
    count.take(content, [])
    assert (count.is_done, count.events, count.newer) == (True, 8, 3 + 1)
    damaged = bytearray(old(0, 1, 1, 0))
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecordException):
        RangeCount(0, 1, None, 1 << 20).take(bytes(damaged), [])


@given(batches, st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=2), st.integers(0, 60))
@example(
    [*[(1, 0, 0, "commit", 1)] * 3, (2, 0, 2, "plain", 1), (4, 0, 2, "plain", 1), (8, 0, 1, "plain", 1)], [(578, 0)], 60
)
@example([(1, 0, 0, "plain", 1)] * 2, [(16, 1)], 0)
def test_batches_are_cut_as_the_library_cuts_them_when_some_are_malformed_or_cut_off(
    given_batches: list[Any], changes: list[tuple[int, int]], missing: int
) -> None:
    content = bytearray(b"".join(built(0, *batch) for batch in given_batches))
    del content[len(content) - missing :]
    for at, byte in changes:
        if content:
            content[at % len(content)] = byte

    def cut(records: Any, is_intact: Callable[[Any], bool]) -> list[Any]:
        found: list[Any] = []
        try:
            while records.has_next() and len(found) < MOST:
                batch = records.next_batch()
                if not is_intact(batch):
                    found.append(CorruptRecordException)
                    break  # nobody reads on behind it
                found.append((isinstance(batch, DefaultRecordBatch), batch.next_offset))
        except (CorruptRecordException, UnsupportedCodecError) as error:
            found.append(type(error))
        except SystemError:
            assert records is theirs, "nobody can sort this out"
            found.append(CorruptRecordException)
        return found

    theirs = MemoryRecords(bytes(content))
    ours = RawBatches(memoryview(b"..." + content)[3:])
    assert ours.size_in_bytes() == theirs.size_in_bytes() == len(content)
    found, expected = cut(ours, ours.is_intact), cut(theirs, lambda batch: batch.validate_crc())
    assert all(one is CorruptRecordException or one[0] for one in found), "none of an old format was written"
    if CorruptRecordException in expected:  # the library looks further ahead, and stops at damage not come to yet
        expected.pop()
        found = found[: len(expected)]
    assert found == expected
    assert ours.kept_bytes == len(content) + 3
