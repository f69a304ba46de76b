"""A Kafka request that aiokafka lacks: where the log of a leader ended (`OffsetForLeaderEpoch`, KIP-101).

Version 3 (Kafka 2.3) is the first that a consumer may ask, with the right to describe the topic.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from aiokafka import errors
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int16, Int32, Int64, Schema, String

from proxy.model import Partition

_CLIENT = -1
_ANY = -1
"""The epoch that the node leads by need not be ours."""
_UNKNOWN = -1


class _Ended(Response):  # type: ignore[misc]  # the library is untyped
    API_KEY = 23
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("topic", String()),
                (
                    "partitions",
                    Array(("error_code", Int16), ("partition", Int32), ("leader_epoch", Int32), ("end_offset", Int64)),
                ),
            ),
        ),
    )


class _Question(RequestStruct):  # type: ignore[misc]  # the library is untyped
    API_KEY = 23
    API_VERSION = 3
    RESPONSE_TYPE = _Ended
    SCHEMA = Schema(
        ("replica_id", Int32),
        (
            "topics",
            Array(
                ("topic", String()),
                ("partitions", Array(("partition", Int32), ("current_leader_epoch", Int32), ("leader_epoch", Int32))),
            ),
        ),
    )


class EpochEndsRequest(Request[_Question]):  # type: ignore[misc]  # the library is untyped
    """Ask where the log ended that was written up to these epochs."""

    API_KEY = 23

    def __init__(self, epochs: Mapping[Partition, int]) -> None:
        self._epochs = epochs

    def build(self, request_struct_class: type[RequestStruct]) -> RequestStruct:
        """Return the request on the wire."""
        topics: dict[str, list[tuple[int, int, int]]] = {}
        for (topic, number), epoch in self._epochs.items():
            topics.setdefault(topic, []).append((number, _ANY, epoch))
        return request_struct_class(_CLIENT, list(topics.items()))


def ends(response: Any) -> Iterator[tuple[Partition, int | None]]:
    """Yield where each ended; None: it can't be known. Those of which another node has to be asked are left out."""
    for topic, told in response.topics:
        for error, number, _, end in told:
            if error and getattr(errors.for_code(error), "retriable", False):
                continue
            yield Partition(topic, number), None if error or end == _UNKNOWN else end
