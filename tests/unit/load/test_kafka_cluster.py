"""What clusters are asked by hand: the bytes of the questions, and of the answers."""

import struct

import pytest

from load import kafka_cluster
from load.faults.raw_client import java_hash
from load.stack import StackError


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, bytes]]:
    """Answer every call with what the test puts into `ANSWERS`."""
    calls: list[tuple[int, int, bytes]] = []

    def call(_port: int, api: int, version: int, body: bytes) -> bytes:
        calls.append((api, version, body))
        return ANSWERS[api]

    monkeypatch.setattr(kafka_cluster.probes, "kafka_call", call)
    return calls


ANSWERS: dict[int, bytes] = {}
TOPIC = b"\x13__cluster_metadata"


def test_the_leader_of_the_metadata_is_the_controller(asked: list[tuple[int, int, bytes]]) -> None:
    ANSWERS[55] = b"\0" + struct.pack(">h", 0) + b"\x02" + TOPIC + b"\x02" + struct.pack(">ihii", 0, 0, 3, 9)

    assert kafka_cluster.controller(1) == 3
    assert asked == [(55, 0, b"\0\x02" + TOPIC + b"\x02\0\0\0\0\0\0\0")]


def test_the_error_is_told_when_kafka_reassigns_nothing(asked: list[tuple[int, int, bytes]]) -> None:
    ANSWERS[45] = b"\0" + struct.pack(">ih", 0, 41)

    with pytest.raises(StackError, match="error 41"):
        kafka_cluster.reassign(1, "t", {0: [2, 3]})

    parts = struct.pack(">i", 0) + b"\x03" + struct.pack(">ii", 2, 3) + b"\0"
    assert asked == [(45, 0, b"\0" + struct.pack(">i", 10_000) + b"\x02\x02t\x02" + parts + b"\0\0")]


def test_a_topic_has_the_id_that_kafkas_tools_print(asked: list[tuple[int, int, bytes]]) -> None:
    node = struct.pack(">i", 1) + b"\x05host" + struct.pack(">i", 9092)
    nodes = b"\x03" + node + b"\0\0" + node + b"\x03r1" + b"\0"  # without a rack, and with one
    head = b"\0" + struct.pack(">i", 0) + nodes + b"\x03cl" + struct.pack(">i", 1) + b"\x02"
    ANSWERS[3] = head + struct.pack(">h", 0) + b"\x02t" + bytes(range(240, 256)) + b"\0\x01"

    assert kafka_cluster.topic_id(1, "t") == "8PHy8_T19vf4-fr7_P3-_w"
    assert asked == [(3, 10, b"\0\x02" + bytes(16) + b"\x02t\0\0\0\0\0")]

    ANSWERS[3] = head + struct.pack(">h", 3) + b"\x02t" + bytes(16) + b"\0\x01"
    with pytest.raises(StackError, match="error 3"):
        kafka_cluster.topic_id(1, "t")


@pytest.mark.parametrize("error", [0, 84])
def test_no_election_is_needed_when_all_lead_that_should(asked: list[tuple[int, int, bytes]], error: int) -> None:
    ANSWERS[43] = struct.pack(">ih", 0, error)

    kafka_cluster.elect_preferred(1)

    assert asked == [(43, 1, struct.pack(">bii", 0, -1, 10_000))]


@pytest.mark.parametrize(("text", "number"), [("hello", 99162322), ("polygenelubricants", 0), ("", 0)])
def test_groups_are_placed_as_java_does(text: str, number: int) -> None:
    assert java_hash(text) == number
