"""A fetch and its answer on the wire, version 13 (Kafka 3.1), which names topics by their ids.

A node keeps what is fetched in a table by the hash of topic and partition (KIP-227). Names that differ in a number only
and have a few partitions each fill it in clusters: a thousand of four partitions took Kafka 4.3 half a millisecond for
each of them that had news (docs/design/0069-fetch-by-id.md).
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka import TopicPartition
from aiokafka.protocol.types import UnsignedVarInt32

from proxy.kafka_log.fetch_wire import ABORTED, INT, KEY, UNKNOWN, WISH, FetchAnswer, Told, by_topic, records_of

VERSION = 13

_ID_BYTES = 16
_HEADER = struct.Struct(">hhih")
"""Key, version, correlation, bytes of the client's name."""
_WANTED = struct.Struct(">iiqiqix")
"""Partition, epoch of its leader (not said), offset, epoch of what was read last and first offset (neither said), most
bytes, no tags."""
_ANSWER = struct.Struct(">ihi")
"""Milliseconds of throttling, error, session."""
_TOLD = struct.Struct(">ihqqq")
"""Partition, error, high watermark, last stable offset, first offset."""
_NO_TAGS = b"\0"
_MOST_BYTES_OF_A_LENGTH = 5
_CONTINUED = 0x80


def encode(fetch: Any, number: int, client: str) -> bytes:
    """Return the request `number` on the wire, its size in front; `fetch.ids` has an id of every topic in it."""
    wish, ids, name, rack = fetch.wish, fetch.ids.of, client.encode(), fetch.wish.rack.encode()
    most = wish.partition_bytes
    named = [
        (topic, [_WANTED.pack(at, UNKNOWN, offset, UNKNOWN, UNKNOWN, most) for at, offset in places])
        for topic, places in by_topic(fetch.named).items()
    ]
    forgotten = [
        (topic, [INT.pack(at) for at, _ in places])
        for topic, places in by_topic(dict.fromkeys(fetch.forgotten, 0)).items()
    ]
    parts = [
        _HEADER.pack(KEY, VERSION, number, len(name)),
        name,
        _NO_TAGS,
        WISH.pack(UNKNOWN, *wish[:4], *fetch.session),
        *_topics(named, ids),
        *_topics(forgotten, ids),
        _length(len(rack)),
        rack,
        _NO_TAGS,
    ]
    body = b"".join(parts)
    return INT.pack(len(body)) + body


def _topics(topics: list[tuple[str, list[bytes]]], ids: Mapping[str, bytes]) -> Iterable[bytes]:
    yield _length(len(topics))
    for topic, partitions in topics:
        yield ids[topic]
        yield _length(len(partitions))
        yield from partitions
        yield _NO_TAGS


def _length(count: int) -> bytes:
    """Return a length as it stands before what is compact: one more."""
    written: bytes = UnsignedVarInt32.encode(count + 1)
    return written


def decode(frame: bytes | memoryview, names: Mapping[bytes, str]) -> FetchAnswer:
    """Return the answer of a frame, which begins with its correlation; `names` are those of the topics' ids.

    Raises `struct.error`, and `IndexError` or `KeyError` for what is cut off or was not asked for.
    """
    view = memoryview(frame)
    at = _skip_tags(view, INT.size)
    throttled, error, session = _ANSWER.unpack_from(view, at)
    topics, at = _number(view, at + _ANSWER.size)
    told: list[Told] = []
    for _ in range(topics - 1):
        topic = names[bytes(view[at : at + _ID_BYTES])]
        partitions, at = _number(view, at + _ID_BYTES)
        for _ in range(partitions - 1):
            at = _take(view, at, topic, told)
        at = _skip_tags(view, at)
    if _skip_tags(view, at) > len(view):
        raise struct.error("its tags are cut off")
    return FetchAnswer(throttled, error, session, told)


def _take(view: memoryview, at: int, topic: str, told: list[Told]) -> int:
    """Read what is told of one partition; return where the next begins."""
    number, failed, highwater, stable, _ = _TOLD.unpack_from(view, at)
    count, at = _number(view, at + _TOLD.size)
    aborted: list[tuple[int, int]] = []
    for _ in range(count - 1):
        aborted.append(ABORTED.unpack_from(view, at))
        at = _skip_tags(view, at + ABORTED.size)
    (replica,) = INT.unpack_from(view, at)
    size, at = _number(view, at + INT.size)
    records = records_of(view, at, size - 1)
    told.append(Told(TopicPartition(topic, number), failed, highwater, stable, aborted, replica, records))
    return _skip_tags(view, at + len(records))


def _number(view: memoryview, at: int) -> tuple[int, int]:
    """Return an unsigned number and where it ends; of a length it is one more, 0 stands for what is not there."""
    value = view[at]
    if value < _CONTINUED:
        return value, at + 1
    value &= _CONTINUED - 1
    for shift in range(7, 7 * _MOST_BYTES_OF_A_LENGTH, 7):
        at += 1
        byte = view[at]
        value |= (byte & (_CONTINUED - 1)) << shift
        if byte < _CONTINUED:
            return value, at + 1
    raise struct.error("a number of more than five bytes")


def _skip_tags(view: memoryview, at: int) -> int:
    """Return where tagged fields end: none of theirs is read here."""
    count, at = _number(view, at)
    for _ in range(count):
        _, at = _number(view, at)
        size, at = _number(view, at)
        at += size
    return at
