"""Fetches as our own code writes and reads them, against the library's."""

import struct
from io import BytesIO
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.protocol.api import RequestHeader_v1
from aiokafka.protocol.fetch import FetchRequest_v11, FetchResponse_v4, FetchResponse_v11
from hypothesis import given
from hypothesis import strategies as st

from proxy.kafka_log.fetch_sessions import Fetch, Wish
from proxy.kafka_log.fetch_wire import FetchAnswer, Told, adopted, decode, encode

INTS = st.integers(0, 2**31 - 1)
PARTITIONS = st.builds(TopicPartition, st.text(min_size=1, max_size=5), INTS)
OFFSETS = st.integers(0, 2**62)
ERRORS = st.integers(-1, 100)
ABORTED = st.lists(st.tuples(OFFSETS, OFFSETS), max_size=2)
TOLD = st.builds(Told, PARTITIONS, ERRORS, OFFSETS, OFFSETS, ABORTED, st.integers(-1, 5), st.binary(max_size=40))
FETCHES = st.builds(
    Fetch,
    st.builds(
        Wish, *[st.integers(0, 2**31 - 1)] * 3, st.integers(0, 1), st.integers(0, 2**31 - 1), st.text(max_size=5)
    ),
    st.tuples(st.integers(0, 2**31 - 1), st.integers(-1, 2**31 - 1)),
    st.dictionaries(PARTITIONS, OFFSETS, max_size=6),
    st.lists(PARTITIONS, max_size=4, unique=True),
    st.just({}),
)


@given(FETCHES, st.integers(0, 2**31 - 1))
def test_a_fetch_is_what_the_library_would_write(fetch: Fetch, number: int) -> None:
    request = fetch.build(FetchRequest_v11)
    theirs = RequestHeader_v1(request, number, "tidegate").encode() + request.encode()
    assert encode(fetch, number, "tidegate") == struct.pack(">i", len(theirs)) + theirs


def _written(told: list[Told], throttled: int = 0, error: int = 0, session: int = 0) -> bytes:
    topics = [(one.at.topic, [(one.at.partition, *one[1:4], 0, *one[4:])]) for one in told]
    return struct.pack(">i", 1) + bytes(FetchResponse_v11(throttled, error, session, topics).encode())


def _as_told(answer: Any) -> FetchAnswer:
    told = [
        Told(TopicPartition(topic, number), *of[:3], *of[4:])
        for topic, partitions in answer.topics
        for number, *of in partitions
    ]
    return FetchAnswer(answer.throttle_time_ms, answer.error_code, answer.session_id, told)


@given(st.lists(TOLD, max_size=5), st.integers(0, 9), ERRORS, st.integers(0, 9))
def test_an_answer_is_what_the_library_would_read(told: list[Told], throttled: int, error: int, session: int) -> None:
    frame = _written(told, throttled, error, session)
    read = decode(frame)
    assert read == FetchAnswer(throttled, error, session, told)
    assert _as_told(FetchResponse_v11.decode(BytesIO(frame[4:]))) == read
    assert adopted(read) is read


@given(st.lists(TOLD, min_size=1, max_size=3), st.data())
def test_an_answer_is_refused_when_it_ends_too_soon(told: list[Told], data: Any) -> None:
    frame = _written(told)
    end = data.draw(st.integers(0, len(frame) - 1))
    with pytest.raises((struct.error, UnicodeDecodeError)):
        decode(frame[:end])


@pytest.mark.parametrize(("small", "large"), [(40, 10_000), (3000, 4000)])
def test_only_records_that_are_most_of_an_answer_keep_it_in_memory(small: int, large: int) -> None:
    answer = _written(
        [Told(TopicPartition("orders", at), 0, 9, 9, [], -1, bytes(n)) for at, n in ((0, small), (1, large))]
    )
    copied, viewed = decode(bytearray(answer)).told
    assert isinstance(copied.records, bytes)
    assert isinstance(viewed.records, memoryview)
    assert (len(copied.records), len(viewed.records)) == (small, large)


def test_partitions_of_one_topic_are_told_apart_when_they_come_together() -> None:
    given = [(0, 0, 9, 8, 0, None, -1, b"a"), (1, 6, -1, -1, -1, None, -1, None)]
    read = decode(struct.pack(">i", 1) + FetchResponse_v11(0, 0, 7, [("orders", given)]).encode())
    assert read.told == [
        Told(TopicPartition("orders", 0), 0, 9, 8, [], -1, b"a"),
        Told(TopicPartition("orders", 1), 6, -1, -1, [], -1, b""),
    ]


def test_an_older_answer_is_brought_into_the_same_form() -> None:
    told = adopted(FetchResponse_v4(5, [("orders", [(2, 0, 9, 8, [(1, 3)], b"a")])]))
    assert told == FetchAnswer(5, 0, 0, [Told(TopicPartition("orders", 2), 0, 9, 8, [(1, 3)], -1, b"a")])
