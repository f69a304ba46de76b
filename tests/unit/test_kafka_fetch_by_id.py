"""Fetches that name topics by their ids as our own code writes and reads them, against the protocol field by field."""

import struct
from typing import Any

import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from proxy.kafka_log.fetch_by_id import VERSION, decode, encode
from proxy.kafka_log.fetch_sessions import Fetch, Wish
from proxy.kafka_log.fetch_wire import FetchAnswer, Told
from proxy.kafka_log.topic_ids import TopicIds
from tests.wire.kafka.messages import FORMS, Api, Request, read_request, written_answer

TOPICS = [f"orders-{number}" for number in range(4)]
IDS = TopicIds(
    {topic: bytes([number + 1]) * 16 for number, topic in enumerate(TOPICS)},
    {bytes([number + 1]) * 16: topic for number, topic in enumerate(TOPICS)},
)
INTS = st.integers(0, 2**31 - 1)
OFFSETS = st.integers(0, 2**62)
PARTITIONS = st.builds(TopicPartition, st.sampled_from(TOPICS), INTS)
ABORTED = st.lists(st.tuples(OFFSETS, OFFSETS), max_size=3)
TOLD = st.builds(
    Told, PARTITIONS, st.integers(-1, 106), OFFSETS, OFFSETS, ABORTED, st.integers(-1, 5), st.binary(max_size=300)
)
FETCHES = st.builds(
    Fetch,
    st.builds(Wish, INTS, INTS, INTS, st.integers(0, 1), INTS, st.text(max_size=200)),
    st.tuples(INTS, st.integers(-1, 2**31 - 1)),
    st.dictionaries(PARTITIONS, OFFSETS, max_size=200),
    st.lists(PARTITIONS, max_size=4, unique=True),
    st.just({}),
    st.just(IDS),
)


@given(FETCHES, INTS)
def test_a_fetch_is_what_the_protocol_says(fetch: Fetch, number: int) -> None:
    frame = encode(fetch, number, "tidegate")
    assert struct.unpack(">i", frame[:4]) == (len(frame) - 4,)
    request = read_request(frame[4:])
    assert request[:4] == (Api.FETCH, VERSION, number, "tidegate")
    body, wish = request.body, fetch.wish
    assert (body["wait_ms"], body["least_bytes"], body["most_bytes"], body["isolation"]) == wish[:4]
    assert (body["session"], body["session_epoch"], body["rack"]) == (*fetch.session, wish.rack)
    asked = {(IDS.names[one["topic_id"]], at["partition"]): at for one in body["topics"] for at in one["partitions"]}
    assert {at: one["offset"] for at, one in asked.items()} == fetch.named
    unsaid = {"leader_epoch": -1, "read_epoch": -1, "log_start": -1, "most_bytes": wish.partition_bytes}
    assert all(one.items() >= unsaid.items() for one in asked.values())
    left = {(IDS.names[one["topic_id"]], number) for one in body["forgotten"] for number in one["partitions"]}
    assert left == set(fetch.forgotten)


def _written(told: list[Told], throttled: int = 0, error: int = 0, session: int = 0) -> bytes:
    topics = [
        {
            "topic_id": IDS.of[one.at.topic],
            "partitions": [
                {
                    "partition": one.at.partition,
                    "error": one.error,
                    "high_watermark": one.highwater,
                    "last_stable": one.stable,
                    "log_start": 0,
                    "aborted": [{"producer": producer, "first": first} for producer, first in one.aborted or ()],
                    "preferred_replica": one.replica,
                    "records": one.records,
                }
            ],
        }
        for one in told
    ]
    answer = {"throttle_ms": throttled, "error": error, "session": session, "topics": topics}
    return written_answer(Request(Api.FETCH, VERSION, 1, None, {}), answer)[4:]


@given(st.lists(TOLD, max_size=200), st.integers(0, 9), st.integers(-1, 106), INTS)
def test_an_answer_is_what_the_protocol_says(told: list[Told], throttled: int, error: int, session: int) -> None:
    assert decode(_written(told, throttled, error, session), IDS.names) == FetchAnswer(throttled, error, session, told)


def test_what_is_not_there_is_empty_when_an_answer_says_so() -> None:
    """No aborted transactions and no records are told by a length of none, too."""
    frame = _written([Told(TopicPartition(TOPICS[0], 3), 6, -1, -1, [], -1, b"")])
    for length in (b"\x01", b"\x00"):
        at = len(frame) - 4  # behind come the tags of the partition, of the topic and of the whole
        read = decode(frame[:at] + length + frame[at + 1 :], IDS.names)
        assert read.told == [Told(TopicPartition(TOPICS[0], 3), 6, -1, -1, [], -1, b"")]


def test_tagged_fields_are_passed_over() -> None:
    """A node of a newer Kafka tells in them where the leader is now."""
    told = [Told(TopicPartition(TOPICS[0], 3), 6, 8, 8, [], -1, b"abc")]
    frame, tags = _written(told), b"\x02" + b"\x01\x04abcd" + b"\xff\x01\x80\x01" + bytes(128)
    end = len(frame) - 3
    tagged = frame[:4] + tags + frame[5:end] + tags * 3
    assert decode(tagged, IDS.names).told == told


@given(st.lists(TOLD, min_size=1, max_size=3), st.data())
def test_an_answer_is_refused_when_it_ends_too_soon(told: list[Told], data: Any) -> None:
    frame = _written(told)
    end = data.draw(st.integers(0, len(frame) - 1))
    with pytest.raises((struct.error, IndexError, KeyError)):
        decode(frame[:end], IDS.names)


def test_an_answer_is_refused_when_it_tells_of_a_topic_that_nobody_asked_for() -> None:
    with pytest.raises(KeyError):
        decode(_written([Told(TopicPartition(TOPICS[0], 0), 0, 0, 0, [], -1, b"")]), {})


def test_an_answer_is_refused_when_a_length_has_no_end() -> None:
    frame = _written([])
    with pytest.raises(struct.error, match="five bytes"):
        decode(frame[:4] + b"\xff" * 9 + frame[5:], IDS.names)


@pytest.mark.parametrize(("small", "large"), [(40, 10_000), (3000, 4000)])
def test_only_records_that_are_most_of_an_answer_keep_it_in_memory(small: int, large: int) -> None:
    told = [Told(TopicPartition(TOPICS[0], at), 0, 9, 9, [], -1, bytes(size)) for at, size in ((0, small), (1, large))]
    copied, viewed = decode(bytearray(_written(told)), IDS.names).told
    assert isinstance(copied.records, bytes)
    assert isinstance(viewed.records, memoryview)
    assert (len(copied.records), len(viewed.records)) == (small, large)


def test_the_form_is_one_that_the_protocol_has() -> None:
    assert FORMS[Api.FETCH, VERSION].is_flexible
