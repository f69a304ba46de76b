"""What clusters are asked and told that aiokafka has no call for: who leads, and who is to lead. Blocking, plain text.

Requests are written by hand from Kafka's protocol guide; any node takes them, and hands on what is the controller's.
"""

import base64
import struct
from collections.abc import Mapping, Sequence

from load.stack import StackError, probes

METADATA, ELECT, REASSIGN, DESCRIBE_QUORUM = 3, 43, 45, 55
ELECTION_NOT_NEEDED = 84
QUORUM_TOPIC = "__cluster_metadata"
SECONDS_MS = 10_000


def controller(port: int) -> int:
    """Return the id of the node that is the active controller. Raises StackError."""
    topic = _text(QUORUM_TOPIC) + _count(1) + struct.pack(">i", 0) + b"\0\0"
    answer = _call(port, DESCRIBE_QUORUM, 0, _count(1) + topic + b"\0", is_flexible=True)
    (error,) = struct.unpack_from(">h", answer, 1)
    if error:
        raise StackError(f"Kafka does not tell its controller (error {error})")
    at = 1 + 2 + 1 + len(_text(QUORUM_TOPIC)) + 1  # behind tags, error, one topic, its name, one partition
    _, error, leader = struct.unpack_from(">ihi", answer, at)
    if error:
        raise StackError(f"Kafka does not tell its controller (error {error})")
    return int(leader)


def topic_id(port: int, topic: str) -> str:
    """Return a topic's id as Kafka's tools print it. Raises StackError; just after its creation it may not be there."""
    question = _count(1) + bytes(16) + _text(topic) + b"\0" + bytes(3) + b"\0"
    answer = _call(port, METADATA, 10, question, is_flexible=True)
    at = 1 + 4
    nodes, at = answer[at] - 1, at + 1
    for _ in range(nodes):
        at = _behind_text(answer, at + 4)  # its host
        at = _behind_text(answer, at + 4) + 1  # its rack
    at = _behind_text(answer, at) + 4 + 1  # the cluster's id
    (error,) = struct.unpack_from(">h", answer, at)
    if error:
        raise StackError(f"Kafka does not tell the id of {topic} (error {error})")
    at = _behind_text(answer, at + 2)
    return base64.urlsafe_b64encode(answer[at : at + 16]).decode().rstrip("=")


def elect_preferred(port: int) -> None:
    """Let the first node of each partition's list lead it again. Raises StackError."""
    answer = _call(port, ELECT, 1, struct.pack(">bii", 0, -1, SECONDS_MS))
    (error,) = struct.unpack_from(">h", answer, 4)
    if error not in {0, ELECTION_NOT_NEEDED}:
        raise StackError(f"Kafka elects no leaders (error {error})")


def reassign(port: int, topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
    """Have partitions of a topic kept by these nodes; returns when Kafka has taken the order. Raises StackError."""
    parts = b"".join(
        struct.pack(">i", number) + _count(len(ids)) + struct.pack(f">{len(ids)}i", *ids) + b"\0"
        for number, ids in replicas.items()
    )
    body = struct.pack(">i", SECONDS_MS) + _count(1) + _text(topic) + _count(len(replicas)) + parts + b"\0\0"
    answer = _call(port, REASSIGN, 0, body, is_flexible=True)
    (error,) = struct.unpack_from(">h", answer, 5)
    if error:
        raise StackError(f"Kafka does not reassign partitions of {topic} (error {error})")


def _call(port: int, api: int, version: int, body: bytes, *, is_flexible: bool = False) -> bytes:
    """Return the answer's body; in a flexible version behind the tags of its header."""
    try:
        return probes.kafka_call(port, api, version, b"\0" * is_flexible + body)
    except probes.NotReadyError as error:
        raise StackError(str(error)) from error


def _count(number: int) -> bytes:
    assert number < 127, "longer counts take more than a byte"
    return bytes([number + 1])


def _text(text: str) -> bytes:
    return _count(len(text)) + text.encode()


def _behind_text(answer: bytes, at: int) -> int:
    """Return where a text ends that may be none."""
    return at + 1 + max(answer[at] - 1, 0)
