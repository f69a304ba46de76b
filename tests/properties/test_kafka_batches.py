"""Answers read in slices hold what the library reads of them as a whole."""

import asyncio
from typing import Any

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, READ_UNCOMMITTED
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import calc_crc32c
from hypothesis import given
from hypothesis import strategies as st

from proxy.kafka_log.answer import Batches, Room

AT = TopicPartition("orders", 0)
_CRC, _ATTRIBUTES, _LAST = 17, 21, 23
"""Where these fields stand in a batch."""
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
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
        first += (1 if kind in {"commit", "abort"} else count) + gap
    level = READ_COMMITTED if is_committed else READ_UNCOMMITTED

    def of(kind: Any) -> Any:
        return kind(AT, MemoryRecords(content), list(aborted), begin, None, None, True, level)  # noqa: FBT003  # as the library has it

    whole, sliced = of(WHOLE), of(Batches)
    expected = [content_of(one) for one in whole]
    found: list[Any] = []
    is_more = True
    while is_more:
        room = Room(events, size)
        taken, is_more = sliced.take(room, 1 << 20, asyncio.Event().set)
        assert len(taken) <= events
        found += [content_of(one) for one in taken]
        if found:
            assert sliced.next_fetch_offset > found[-1][0]
    assert found == expected
    assert sliced.next_fetch_offset == whole.next_fetch_offset
