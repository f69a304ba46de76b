"""What a topic's id is asked by, told by, kept in, and how often it is looked at."""

import struct

import pytest

from proxy.kafka_log.protocol import Topic, TopicsRequest, topics
from proxy.model import Partition
from proxy.positions.identity import LOOK_SECONDS, TOPICS_PER_LOOK, Committed, Looks

METADATA = 3
"""Kafka's number for the request."""


@pytest.mark.parametrize(
    ("metadata", "known"),
    [
        ("topic WB57JKiGRBSLHEppylHgyw", "WB57JKiGRBSLHEppylHgyw"),
        ("", ""),
        (None, ""),
        ("by hand", ""),
        ("topic ", ""),
        ("move topic x", ""),
    ],
)
def test_an_offset_is_of_no_known_topic_when_somebody_else_committed_it(metadata: str | None, known: str) -> None:
    assert Committed.read(7, metadata) == Committed(7, known)


@pytest.mark.parametrize("topic_id", ["WB57JKiGRBSLHEppylHgyw", ""])
@pytest.mark.parametrize("move", ["", "12-ab12cd34"])
def test_what_was_committed_is_the_same_when_it_is_read_again(topic_id: str, move: str) -> None:
    committed = Committed(7, topic_id, move)
    assert Committed.read(committed.offset, committed.metadata) == committed


def test_a_tidegate_that_knows_no_moves_takes_an_offset_for_nobodys_when_it_was_moved() -> None:
    assert not Committed(7, "WB57JKiGRBSLHEppylHgyw", "12-ab").metadata.startswith("topic ")  # all that it asks


def test_every_topic_is_looked_at_within_seconds_when_there_are_many() -> None:
    looks, now = Looks(), 100.0
    partitions = [Partition(f"topic-{number}", 0) for number in range(1000)]
    seen: set[str] = set()
    for _ in range(5):
        due = looks.due(partitions, now)
        assert len(due) == TOPICS_PER_LOOK
        assert not looks.due(partitions, now + 0.9 * LOOK_SECONDS)
        seen |= due
        now += LOOK_SECONDS
    assert seen == {topic for topic, _ in partitions}
    assert looks.due([Partition("alone", 0), Partition("alone", 1)], now) == {"alone"}
    assert looks.due([], now + LOOK_SECONDS) == set()


@pytest.mark.parametrize(("newest", "chosen"), [(8, 8), (9, 8), (10, 10), (13, 10)])
def test_the_request_has_the_newest_form_that_the_broker_knows(newest: int, chosen: int) -> None:
    request = TopicsRequest({"b", "a"}, with_rights=True).prepare({METADATA: (0, newest)})
    assert chosen == request.API_VERSION
    body = request.encode()
    if chosen == 10:
        name = bytes(16) + b"\x02%s\x00"
        assert body == b"\x03" + name % b"a" + name % b"b" + b"\x00\x00\x01\x00"
    else:
        assert body == struct.pack(">ih1sh1s???", 2, 1, b"a", 1, b"b", False, False, True)  # noqa: FBT003


def test_ids_are_read_as_the_tools_print_them_when_the_broker_tells_them() -> None:
    partition = struct.pack(">hiii", 0, 0, 1, 0) + b"\x02\x00\x00\x00\x01" * 2 + b"\x01" + b"\x00"
    told = [
        (0, b"orders", bytes.fromhex("581e7b24a88644148b1c4a69ca51e0cb"), False),
        (0, b"ageing", bytes(16), False),
        (3, b"absent", bytes(16), False),
        (0, b"hidden", bytes(range(16)), True),
    ]
    body = struct.pack(">i", 0) + b"\x02" + struct.pack(">i", 1) + b"\x02h" + struct.pack(">i", 9092) + b"\x00\x00"
    body += b"\x02c" + struct.pack(">i", 1) + bytes([len(told) + 1])
    for error, name, topic_id, is_internal in told:
        body += struct.pack(">h", error) + bytes([len(name) + 1]) + name + topic_id + struct.pack("?", is_internal)
        body += b"\x02" + partition + struct.pack(">i", 8) + b"\x00"
    body += struct.pack(">i", 0) + b"\x00"
    request = TopicsRequest(None, with_rights=True).prepare({METADATA: (0, 12)})
    assert topics(request.RESPONSE_TYPE.decode(body)) == {
        "orders": Topic(0, "WB57JKiGRBSLHEppylHgyw", may_read=True),
        "ageing": Topic(0, "", may_read=True),
        "absent": Topic(3, "", may_read=True),
    }
