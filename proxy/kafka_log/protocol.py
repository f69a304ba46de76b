"""The one Kafka request that aiokafka lacks: topics, with their ids and what this login may do to each.

aiokafka stops at version 5 of the metadata request. Version 8 (Kafka 2.3) also tells the operations allowed on a topic,
so that one that may be described but not read is known before it is subscribed to. Version 10 (Kafka 2.8) tells the
topic's id, which no other topic ever gets, not even one of the same name.
"""

from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterator
from io import BytesIO
from typing import Any, NamedTuple, TypeAlias

from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    String,
    TaggedFields,
)

_READ = 1 << 3
"""Bit of the operation READ in Kafka's numbering."""
_ID_BYTES = 16
_Field: TypeAlias = tuple[str, Any]
"""Name and kind of one field on the wire."""
_TAGS: tuple[_Field, ...] = (("tags", TaggedFields),)
"""What closes every structure since version 9."""


class _TopicId(AbstractType[str]):  # type: ignore[misc]  # the library is untyped
    """As Kafka's tools print it; empty if there is none."""

    @classmethod
    def encode(cls, _: str) -> bytes:
        """Return none: topics are asked for by name."""
        return bytes(_ID_BYTES)

    @classmethod
    def decode(cls, data: BytesIO) -> str:
        """Return 22 characters of base64."""
        told = data.read(_ID_BYTES)
        return urlsafe_b64encode(told).rstrip(b"=").decode() if any(told) else ""


def _answer(array: Any, string: Any, *, topic_id: tuple[_Field, ...] = (), end: tuple[_Field, ...] = ()) -> Schema:
    """Return what a version answers, made of its kinds of arrays and strings; `end` closes every structure."""
    partition = (
        ("error_code", Int16),
        ("partition", Int32),
        ("leader", Int32),
        ("leader_epoch", Int32),
        ("replicas", array(Int32)),
        ("isr", array(Int32)),
        ("offline_replicas", array(Int32)),
    )
    topic = (
        ("error_code", Int16),
        ("topic", string()),
        *topic_id,
        ("is_internal", Boolean),
        ("partitions", array(*partition, *end)),
        ("authorized_operations", Int32),
    )
    return Schema(
        ("throttle_time_ms", Int32),
        ("brokers", array(("node_id", Int32), ("host", string()), ("port", Int32), ("rack", string()), *end)),
        ("cluster_id", string()),
        ("controller_id", Int32),
        ("topics", array(*topic, *end)),
        ("cluster_authorized_operations", Int32),
        *end,
    )


class _TopicsResponse(Response):  # type: ignore[misc]  # the library is untyped
    API_KEY = 3
    API_VERSION = 8
    SCHEMA = _answer(Array, String)


class _TopicsQuestion(RequestStruct):  # type: ignore[misc]  # the library is untyped
    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = _TopicsResponse
    SCHEMA = Schema(
        ("topics", Array(String())),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
    )


class _NamedTopicsResponse(Response):  # type: ignore[misc]  # the library is untyped
    API_KEY = 3
    API_VERSION = 10
    SCHEMA = _answer(CompactArray, CompactString, topic_id=(("topic_id", _TopicId),), end=_TAGS)


class _NamedTopicsQuestion(RequestStruct):  # type: ignore[misc]  # the library is untyped
    API_KEY = 3
    API_VERSION = 10
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _NamedTopicsResponse
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _TopicId), ("topic", CompactString()), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicsRequest(Request[_TopicsQuestion | _NamedTopicsQuestion]):  # type: ignore[misc]  # the library is untyped
    """Ask for the named topics, or for all that may be described (None); creates none."""

    API_KEY = 3

    def __init__(self, topics: Collection[str] | None, *, with_rights: bool) -> None:
        self._topics = None if topics is None else sorted(topics)
        self._with_rights = with_rights

    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        """Return the request on the wire."""
        rights = (False, False, self._with_rights)  # creates none, not the cluster's
        if request_struct_class is _TopicsQuestion:
            return request_struct_class(self._topics, *rights)
        named: list[tuple[str, str, dict[int, bytes]]] | None
        named = None if self._topics is None else [("", topic, {}) for topic in self._topics]
        return request_struct_class(named, *rights, {})


class Topic(NamedTuple):
    """What Kafka tells of one topic."""

    error: int
    """Its code; 0 for none."""
    id: str
    """As Kafka's tools print it; empty if the broker tells none."""
    may_read: bool
    """Known only if the request asked for rights."""


def topics(response: Any) -> dict[str, Topic]:
    """Return what the response tells of each topic; Kafka's internal topics are left out."""
    return {
        name: Topic(error, topic_id, bool(operations & _READ))
        for error, name, topic_id, is_internal, _, operations in _topics(response)
        if not is_internal
    }


def leaders(response: Any) -> Iterator[tuple[int, str, str, bool, list[tuple[Any, ...]]]]:
    """Yield error, name, id, whether it is internal, and partitions of each topic.

    A partition is its error, its number, its leader, the leader's epoch, its replicas, those in sync, those offline.
    """
    for error, name, topic_id, is_internal, partitions, _ in _topics(response):
        yield error, name, topic_id, is_internal, [tuple(partition[:7]) for partition in partitions]


def _topics(response: Any) -> Iterator[tuple[int, str, str, bool, Any, int]]:
    for topic in response.topics:
        if response.API_VERSION < _NamedTopicsResponse.API_VERSION:
            error, name, is_internal, partitions, operations = topic
            yield error, name, "", is_internal, partitions, operations
        else:
            error, name, topic_id, is_internal, partitions, operations, _ = topic
            yield error, name, topic_id, is_internal, partitions, operations
