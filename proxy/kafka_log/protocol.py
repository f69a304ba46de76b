"""The one Kafka request that aiokafka lacks: topics together with what this login may do to each.

aiokafka stops at version 5 of the metadata request. Version 8 (Kafka 2.3) also tells the operations allowed on a topic,
so that one that may be described but not read is known before it is subscribed to.
"""

from collections.abc import Collection
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

_READ = 1 << 3
"""Bit of the operation READ in Kafka's numbering."""


class _TopicsResponse(Response):  # type: ignore[misc]  # the library is untyped
    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", Array(("node_id", Int32), ("host", String()), ("port", Int32), ("rack", String()))),
        ("cluster_id", String()),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", String()),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", Array(Int32)),
                        ("isr", Array(Int32)),
                        ("offline_replicas", Array(Int32)),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
        ("cluster_authorized_operations", Int32),
    )


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


class TopicsRequest(Request[_TopicsQuestion]):  # type: ignore[misc]  # the library is untyped
    """Ask for the named topics, or for all that may be described (None); creates none."""

    API_KEY = 3

    def __init__(self, topics: Collection[str] | None) -> None:
        self._topics = None if topics is None else sorted(topics)

    def build(self, request_struct_class: type[_TopicsQuestion]) -> _TopicsQuestion:
        """Return the request on the wire."""
        return request_struct_class(self._topics, False, False, True)  # noqa: FBT003  # the order is the schema's


def states(response: Any) -> dict[str, tuple[int, bool]]:
    """Return each topic's error code and whether this login may read it; Kafka's internal topics are left out."""
    return {
        topic: (error, bool(operations & _READ))
        for error, topic, is_internal, _, operations in response.topics
        if not is_internal
    }
