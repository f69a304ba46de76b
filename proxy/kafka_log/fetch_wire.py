"""A fetch and its answer on the wire, version 11 (Kafka 2.3), each in one step: the library takes 200 calls for both.

What a node of an older version answers is brought into the same form.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from aiokafka import TopicPartition

VERSION = 11
"""The highest that the library speaks, too."""

KEY = 1
UNKNOWN = -1
_HEADER = struct.Struct(">hhi")
_SHORT = struct.Struct(">h")
INT = struct.Struct(">i")
WISH = struct.Struct(">iiiibii")
"""Replica (none), wait, least and most bytes, isolation, session and its epoch."""
_WANTED = struct.Struct(">iiqqi")
"""Partition, epoch of its leader and first offset (neither said), offset, most bytes; in the order of the protocol."""
_ANSWER = struct.Struct(">iihii")
"""Correlation, milliseconds of throttling, error, session, topics."""
_TOLD = struct.Struct(">ihqqqi")
"""Partition, error, high watermark, last stable offset, first offset, aborted transactions."""
ABORTED = struct.Struct(">qq")
_RECORDS = struct.Struct(">ii")
"""Node to read from, bytes of records."""

Places = Mapping[TopicPartition, int]
"""Offsets by partition."""


class Told(NamedTuple):
    """What a node tells of one partition."""

    at: TopicPartition
    error: int
    highwater: int
    stable: int | None
    """Last stable offset."""
    aborted: list[tuple[int, int]] | None
    """Producers and first offsets of transactions that were aborted."""
    replica: int
    """Node from which it is rather to be read; -1: this one."""
    records: bytes | memoryview
    """A view of the answer if they are most of it: kept, it keeps the whole answer."""


class FetchAnswer(NamedTuple):
    """What a node answers to a fetch."""

    throttle_time_ms: int
    error_code: int
    session_id: int
    told: list[Told]


def encode(fetch: Any, number: int, client: str) -> bytes:
    """Return the request `number` on the wire, its size in front."""
    wish, name, rack = fetch.wish, client.encode(), fetch.wish.rack.encode()
    most = wish.partition_bytes

    def wanted(places: list[tuple[int, int]]) -> bytes:
        return b"".join([_WANTED.pack(at, UNKNOWN, offset, UNKNOWN, most) for at, offset in places])

    parts = [
        _HEADER.pack(KEY, VERSION, number),
        _SHORT.pack(len(name)),
        name,
        WISH.pack(UNKNOWN, *wish[:4], *fetch.session),
        _topics(fetch.named, wanted),
        _topics(dict.fromkeys(fetch.forgotten, 0), lambda ats: b"".join([INT.pack(at) for at, _ in ats])),
        _SHORT.pack(len(rack)),
        rack,
    ]
    body = b"".join(parts)
    return INT.pack(len(body)) + body


def by_topic(places: Places) -> dict[str, list[tuple[int, int]]]:
    """Return partitions and offsets by topic."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for (topic, number), offset in places.items():
        topics.setdefault(topic, []).append((number, offset))
    return topics


def _topics(places: Places, partitions: Callable[[list[tuple[int, int]]], bytes]) -> bytes:
    if not places:
        return INT.pack(0)
    topics = by_topic(places)
    parts = [INT.pack(len(topics))]
    for topic, ats in topics.items():
        name = topic.encode()
        parts += (_SHORT.pack(len(name)), name, INT.pack(len(ats)), partitions(ats))
    return b"".join(parts)


def decode(frame: bytes | memoryview) -> FetchAnswer:
    """Return the answer of a frame, which begins with its correlation. Raises `struct.error`, UnicodeDecodeError."""
    _, throttled, error, session, topics = _ANSWER.unpack_from(frame)
    at = _ANSWER.size
    told: list[Told] = []
    view = memoryview(frame)
    for _ in range(topics):
        (length,) = _SHORT.unpack_from(frame, at)
        at += _SHORT.size + length
        topic = str(frame[at - length : at], "utf-8")
        (partitions,) = INT.unpack_from(frame, at)
        at += INT.size
        for _ in range(partitions):
            number, failed, highwater, stable, _, count = _TOLD.unpack_from(frame, at)
            at += _TOLD.size
            aborted: list[tuple[int, int]] = []
            for _ in range(count):
                aborted.append(ABORTED.unpack_from(frame, at))
                at += ABORTED.size
            replica, size = _RECORDS.unpack_from(frame, at)
            at += _RECORDS.size
            records = records_of(view, at, size)
            at += len(records)
            told.append(Told(TopicPartition(topic, number), failed, highwater, stable, aborted, replica, records))
    return FetchAnswer(throttled, error, session, told)


def records_of(answer: memoryview, at: int, size: int) -> bytes | memoryview:
    """Return the records that stand there in an answer; a size of 0 or less is none.

    A view of the answer only if they are most of it. Raises `struct.error` if not all of them have come.
    """
    records: bytes | memoryview = answer[at : at + size] if size > 0 else b""
    if 2 * len(records) < len(answer):
        records = bytes(records)
    if len(records) < size:
        raise struct.error(f"records of {size} bytes, of which {len(records)} came")
    return records


def adopted(response: Any) -> FetchAnswer:
    """Return the library's answer of a version before 11 in our form; one that is of it already as it is."""
    if isinstance(response, FetchAnswer):
        return response
    told: list[Told] = []
    for topic, partitions in response.topics:
        for number, error, highwater, *of, records in partitions:
            stable, aborted = (of[0], of[-1]) if of else (None, None)
            told.append(Told(TopicPartition(topic, number), error, highwater, stable, aborted, UNKNOWN, records or b""))
    return FetchAnswer(
        getattr(response, "throttle_time_ms", 0),
        getattr(response, "error_code", 0),
        getattr(response, "session_id", 0),
        told,
    )
