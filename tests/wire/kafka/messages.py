"""The requests that a consumer sends, and their answers: each version that is offered, field by field.

After <https://kafka.apache.org/protocol.html>. To offer another version is to declare it here.
"""

from enum import IntEnum
from typing import Any, NamedTuple

from tests.wire.kafka.codec import (
    BOOL,
    BYTES,
    COMPACT_BYTES,
    COMPACT_STRING,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Input,
    Kind,
    array,
    encode,
    fixed,
    skip_tags,
    struct,
)


class Api(IntEnum):
    """A request by its key."""

    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    LEADER_ENDS = 23
    SASL_AUTHENTICATE = 36


class Error(IntEnum):
    """What an answer may say instead."""

    UNKNOWN = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER = 6
    REQUEST_TIMED_OUT = 7
    REPLICA_NOT_AVAILABLE = 9
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOADING = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    ILLEGAL_GENERATION = 22
    INCONSISTENT_PROTOCOL = 23
    INVALID_GROUP = 24
    UNKNOWN_MEMBER = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    KAFKA_STORAGE_ERROR = 56
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    SASL_AUTHENTICATION_FAILED = 58
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE = 82
    UNSTABLE_OFFSET_COMMIT = 88
    UNKNOWN_TOPIC_ID = 100
    FETCH_SESSION_TOPIC_ID_ERROR = 106


class Form(NamedTuple):
    """One version of a request and its answer."""

    request: Kind
    answer: Kind
    is_flexible: bool = False


def _by_topic(**partition: Kind) -> Kind:
    return array(struct({"topic": STRING, "partitions": array(struct(partition))}))


def _metadata(*, compact: bool, with_id: bool, with_rights: bool) -> Kind:
    string = COMPACT_STRING if compact else STRING

    def listed(kind: Kind) -> Kind:
        return array(kind, compact=compact)

    def closed(**fields: Kind) -> Kind:
        return struct(fields, tagged=compact)

    numbers = listed(INT32)
    epoch = {"leader_epoch": INT32} if with_rights else {}
    partition = closed(
        error=INT16, partition=INT32, leader=INT32, **epoch, replicas=numbers, in_sync=numbers, offline=numbers
    )
    topic_id = {"topic_id": fixed(16)} if with_id else {}
    rights = {"operations": INT32} if with_rights else {}
    topic = closed(error=INT16, topic=string, **topic_id, is_internal=BOOL, partitions=listed(partition), **rights)
    return closed(
        throttle_ms=INT32,
        brokers=listed(closed(node=INT32, host=string, port=INT32, rack=string)),
        cluster=string,
        controller=INT32,
        topics=listed(topic),
        **({"cluster_operations": INT32} if with_rights else {}),
    )


def _fetch(*, by_id: bool) -> Form:
    string, octets = (COMPACT_STRING, COMPACT_BYTES) if by_id else (STRING, BYTES)
    topic = {"topic_id": fixed(16)} if by_id else {"topic": STRING}
    read_last = {"read_epoch": INT32} if by_id else {}

    def closed(**fields: Kind) -> Kind:
        return struct(fields, tagged=by_id)

    def listed(kind: Kind) -> Kind:
        return array(kind, compact=by_id)

    asked = closed(partition=INT32, leader_epoch=INT32, offset=INT64, **read_last, log_start=INT64, most_bytes=INT32)
    wish = {"wait_ms": INT32, "least_bytes": INT32, "most_bytes": INT32, "isolation": INT8}
    told = closed(
        partition=INT32,
        error=INT16,
        high_watermark=INT64,
        last_stable=INT64,
        log_start=INT64,
        aborted=listed(closed(producer=INT64, first=INT64)),
        preferred_replica=INT32,
        records=octets,
    )
    return Form(
        closed(
            replica=INT32,
            **wish,
            session=INT32,
            session_epoch=INT32,
            topics=listed(closed(**topic, partitions=listed(asked))),
            forgotten=listed(closed(**topic, partitions=listed(INT32))),
            rack=string,
        ),
        closed(throttle_ms=INT32, error=INT16, session=INT32, topics=listed(closed(**topic, partitions=listed(told)))),
        is_flexible=by_id,
    )


_NAMED_TOPIC = struct({"topic_id": fixed(16), "topic": COMPACT_STRING}, tagged=True)
_MEMBERS = array(struct({"member": STRING, "metadata": BYTES}))
_MEMBER = {"group": STRING, "generation": INT32, "member": STRING}
_SAID = struct({"throttle_ms": INT32, "error": INT16})

FORMS: dict[tuple[Api, int], Form] = {
    (Api.API_VERSIONS, 0): Form(
        struct({}),
        struct({"error": INT16, "apis": array(struct({"api": INT16, "least": INT16, "most": INT16}))}),
    ),
    (Api.SASL_HANDSHAKE, 1): Form(struct({"mechanism": STRING}), struct({"error": INT16, "mechanisms": array(STRING)})),
    (Api.SASL_AUTHENTICATE, 0): Form(
        struct({"token": BYTES}), struct({"error": INT16, "message": STRING, "token": BYTES})
    ),
    (Api.SASL_AUTHENTICATE, 1): Form(
        struct({"token": BYTES}),
        struct({"error": INT16, "message": STRING, "token": BYTES, "session_ms": INT64}),
    ),
    (Api.METADATA, 5): Form(
        struct({"topics": array(STRING), "creates": BOOL}),
        _metadata(compact=False, with_id=False, with_rights=False),
    ),
    (Api.METADATA, 8): Form(
        struct({"topics": array(STRING), "creates": BOOL, "cluster_rights": BOOL, "rights": BOOL}),
        _metadata(compact=False, with_id=False, with_rights=True),
    ),
    (Api.METADATA, 10): Form(
        struct(
            {
                "topics": array(_NAMED_TOPIC, compact=True),
                "creates": BOOL,
                "cluster_rights": BOOL,
                "rights": BOOL,
            },
            tagged=True,
        ),
        _metadata(compact=True, with_id=True, with_rights=True),
        is_flexible=True,
    ),
    (Api.FIND_COORDINATOR, 1): Form(
        struct({"key": STRING, "kind": INT8}),
        struct({"throttle_ms": INT32, "error": INT16, "message": STRING, "node": INT32, "host": STRING, "port": INT32}),
    ),
    (Api.JOIN_GROUP, 5): Form(
        struct(
            {
                "group": STRING,
                "session_ms": INT32,
                "rebalance_ms": INT32,
                "member": STRING,
                "instance": STRING,
                "type": STRING,
                "protocols": array(struct({"name": STRING, "metadata": BYTES})),
            }
        ),
        struct(
            {
                "throttle_ms": INT32,
                "error": INT16,
                "generation": INT32,
                "protocol": STRING,
                "leader": STRING,
                "member": STRING,
                "members": array(struct({"member": STRING, "instance": STRING, "metadata": BYTES})),
            }
        ),
    ),
    (Api.SYNC_GROUP, 3): Form(
        struct({**_MEMBER, "instance": STRING, "assignments": _MEMBERS}),
        struct({"throttle_ms": INT32, "error": INT16, "assignment": BYTES}),
    ),
    (Api.HEARTBEAT, 1): Form(struct(_MEMBER), _SAID),
    (Api.LEAVE_GROUP, 1): Form(struct({"group": STRING, "member": STRING}), _SAID),
    (Api.OFFSET_COMMIT, 6): Form(
        struct(
            {**_MEMBER, "topics": _by_topic(partition=INT32, offset=INT64, leader_epoch=INT32, metadata=STRING)},
        ),
        struct({"throttle_ms": INT32, "topics": _by_topic(partition=INT32, error=INT16)}),
    ),
    (Api.OFFSET_FETCH, 5): Form(
        struct({"group": STRING, "topics": array(struct({"topic": STRING, "partitions": array(INT32)}))}),
        struct(
            {
                "throttle_ms": INT32,
                "topics": _by_topic(partition=INT32, offset=INT64, leader_epoch=INT32, metadata=STRING, error=INT16),
                "error": INT16,
            }
        ),
    ),
    (Api.LIST_OFFSETS, 3): Form(
        struct({"replica": INT32, "isolation": INT8, "topics": _by_topic(partition=INT32, timestamp=INT64)}),
        struct(
            {
                "throttle_ms": INT32,
                "topics": _by_topic(partition=INT32, error=INT16, timestamp=INT64, offset=INT64),
            }
        ),
    ),
    (Api.LEADER_ENDS, 3): Form(
        struct({"replica": INT32, "topics": _by_topic(partition=INT32, current_epoch=INT32, epoch=INT32)}),
        struct({"throttle_ms": INT32, "topics": _by_topic(error=INT16, partition=INT32, epoch=INT32, end=INT64)}),
    ),
    (Api.FETCH, 11): _fetch(by_id=False),
    (Api.FETCH, 13): _fetch(by_id=True),
}

NEWEST = {api: max(version for one, version in FORMS if one is api) for api in {api for api, _ in FORMS}}
"""The highest version of each request."""


class Request(NamedTuple):
    """One request as it came."""

    api: Api
    version: int
    number: int
    """By which its answer is known."""
    client: str | None
    body: dict[str, Any]


def read_request(frame: bytes) -> Request:
    """Return the request. Raises `TruncatedError`, KeyError if that version of it is not declared here."""
    data = Input(frame)
    key, version, number, client = INT16.read(data), INT16.read(data), INT32.read(data), STRING.read(data)
    form = FORMS[Api(key), version]
    if form.is_flexible:
        skip_tags(data)
    return Request(Api(key), version, number, client, form.request.read(data))


def written_answer(request: Request, answer: dict[str, Any]) -> bytes:
    """Return the answer's frame with its length."""
    form = FORMS[request.api, request.version]
    out = bytearray(4)
    INT32.write(out, request.number)
    if form.is_flexible:
        out.append(0)
    form.answer.write(out, answer)
    out[:4] = encode(INT32, len(out) - 4)
    return bytes(out)
