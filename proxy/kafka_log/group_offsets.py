"""What a group commits and is asked for, in the first versions that tell a leader's epoch: aiokafka stops before them.

Version 6 of the commit and version 5 of the question are of Kafka 2.1 (KIP-320).
"""

from collections.abc import Collection
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int16, Int32, Int64, Schema, String

from proxy.positions.port import Membership


class _Taken(Response):  # type: ignore[misc]  # the library is untyped
    API_KEY = 8
    API_VERSION = 6
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("topics", Array(("topic", String()), ("partitions", Array(("partition", Int32), ("error_code", Int16))))),
    )


class _Commit(RequestStruct):  # type: ignore[misc]  # the library is untyped
    API_KEY = 8
    API_VERSION = 6
    RESPONSE_TYPE = _Taken
    SCHEMA = Schema(
        ("group", String()),
        ("generation", Int32),
        ("member", String()),
        (
            "topics",
            Array(
                ("topic", String()),
                (
                    "partitions",
                    Array(("partition", Int32), ("offset", Int64), ("leader_epoch", Int32), ("metadata", String())),
                ),
            ),
        ),
    )


class OffsetCommitRequest(Request[_Commit]):  # type: ignore[misc]  # the library is untyped
    """Commit: number, offset, leader's epoch (-1: not known) and metadata of each partition, by topic."""

    API_KEY = 8

    def __init__(
        self, group: str, membership: Membership, topics: Collection[tuple[str, list[tuple[int, int, int, str]]]]
    ) -> None:
        self._values = group, *membership, list(topics)

    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        """Return the request on the wire."""
        return request_struct_class(*self._values)


class _Committed(Response):  # type: ignore[misc]  # the library is untyped
    API_KEY = 9
    API_VERSION = 5
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", String()),
                (
                    "partitions",
                    Array(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", String()),
                        ("error_code", Int16),
                    ),
                ),
            ),
        ),
        ("error_code", Int16),
    )


class _Question(RequestStruct):  # type: ignore[misc]  # the library is untyped
    API_KEY = 9
    API_VERSION = 5
    RESPONSE_TYPE = _Committed
    SCHEMA = Schema(("group", String()), ("topics", Array(("topic", String()), ("partitions", Array(Int32)))))


class OffsetFetchRequest(Request[_Question]):  # type: ignore[misc]  # the library is untyped
    """Ask for everything that the group has committed."""

    API_KEY = 9

    def __init__(self, group: str) -> None:
        self._group = group

    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        """Return the request on the wire."""
        everything: Any = None
        return request_struct_class(self._group, everything)
