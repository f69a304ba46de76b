"""What brokers do wrong on purpose: errors that nothing has caused, answers late, lost or in part, records spoiled."""

from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any

from tests.wire.kafka.messages import Api, Error
from tests.wire.kafka.records import GZIP, MAGIC, Batch, body_of, sealed

_NO_COORDINATOR = (Error.COORDINATOR_LOADING, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR)
_NO_MEMBER = (
    Error.UNKNOWN_MEMBER,
    Error.ILLEGAL_GENERATION,
    Error.REBALANCE_IN_PROGRESS,
    Error.FENCED_INSTANCE,
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.UNKNOWN,
)
_NO_LEADER = (
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.NOT_LEADER,
    Error.LEADER_NOT_AVAILABLE,
    Error.REPLICA_NOT_AVAILABLE,
    Error.FENCED_LEADER_EPOCH,
    Error.UNKNOWN_LEADER_EPOCH,
    Error.KAFKA_STORAGE_ERROR,
    Error.OFFSET_NOT_AVAILABLE,
    Error.TOPIC_AUTHORIZATION_FAILED,
    Error.UNKNOWN,
)
ERRORS: dict[Api, tuple[Error, ...]] = {
    Api.FETCH: (*_NO_LEADER, Error.OFFSET_OUT_OF_RANGE, Error.CORRUPT_MESSAGE),
    Api.LIST_OFFSETS: _NO_LEADER,
    Api.LEADER_ENDS: _NO_LEADER,
    Api.METADATA: (Error.LEADER_NOT_AVAILABLE, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.TOPIC_AUTHORIZATION_FAILED),
    Api.FIND_COORDINATOR: (
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.COORDINATOR_LOADING,
        Error.GROUP_AUTHORIZATION_FAILED,
    ),
    Api.JOIN_GROUP: (*_NO_COORDINATOR, *_NO_MEMBER, Error.GROUP_MAX_SIZE_REACHED),
    Api.SYNC_GROUP: (*_NO_COORDINATOR, *_NO_MEMBER),
    Api.HEARTBEAT: (*_NO_COORDINATOR, *_NO_MEMBER),
    Api.LEAVE_GROUP: (*_NO_COORDINATOR, Error.UNKNOWN_MEMBER),
    Api.OFFSET_COMMIT: (
        *_NO_COORDINATOR,
        *_NO_MEMBER,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.OFFSET_METADATA_TOO_LARGE,
        Error.REQUEST_TIMED_OUT,
        Error.TOPIC_AUTHORIZATION_FAILED,
    ),
    Api.OFFSET_FETCH: (
        *_NO_COORDINATOR,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.UNSTABLE_OFFSET_COMMIT,
    ),
}
"""What each answer may say that concerns a topic, a partition, or all."""
_WHOLE = (*_NO_COORDINATOR, Error.GROUP_AUTHORIZATION_FAILED)
"""What an answer about offsets committed says of all of them."""
_CODEC_BITS = 7
_UNKNOWN_CODEC = 5
_CODEC_BYTES = 2


class Trick(StrEnum):
    """What may befall a request, or what stands for a part of its answer."""

    ERROR = "error"
    """An error without a cause: of each topic or partition where an answer has such, else of the answer."""
    REFUSED = "refused"
    """The same, of a request that is not carried out."""
    PART = "part"
    """Less than a whole answer: batches that break off, brokers and topics not told of, fetch sessions forgotten."""
    LATE = "late"
    """An answer `seconds` late; what follows on the connection waits for it."""
    THROTTLE = "throttle"
    """An answer that tells of a quota: nothing more is read from the connection for `seconds`."""
    MUTE = "mute"
    """The request is carried out and not answered, nor is anything that follows on the connection."""
    HANG_UP = "hang up"
    """The connection is closed before the request is carried out."""
    DROP = "drop"
    """The connection is closed when it has been carried out."""
    SPOIL = "spoil"
    """A batch of records can't be read."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One trick that is being played."""

    trick: Trick
    share: float
    """Of what could be struck."""
    apis: frozenset[Api] | None = None
    """None for all requests."""
    nodes: frozenset[int] | None = None
    """None for all brokers."""
    seconds: float = 0.0


class Mischief:
    """The tricks that a cluster's brokers play."""

    def __init__(self, chance: Random) -> None:
        self.struck: set[tuple[Api, str]] = set()
        """What was done to which requests."""
        self._chance = chance
        self._rules: list[Rule] = []

    def begin(self, rule: Rule) -> Rule:
        """Play a trick from now on."""
        self._rules.append(rule)
        return rule

    def end(self, rule: Rule) -> None:
        """Play it no more."""
        self._rules.remove(rule)

    def plays(self, trick: Trick, api: Api, node: int) -> Rule | None:
        """Return the rule by which a trick is played on a request now, if it is."""
        for rule in self._rules:
            if (
                rule.trick is trick
                and (rule.apis is None or api in rule.apis)
                and (rule.nodes is None or node in rule.nodes)
                and self._chance.random() < rule.share
            ):
                self.struck.add((api, trick))
                return rule
        return None

    def error(self, api: Api) -> Error:
        """Return an error that an answer may give."""
        error = self._chance.choice(ERRORS[api])
        self.struck.add((api, error.name))
        return error

    def spoil(self, api: Api, node: int, answer: dict[str, Any]) -> None:
        """Let an answer say errors that nothing has caused; who is no member is never told anything milder."""
        if not self._rules or api not in ERRORS:
            return
        if "topics" not in answer:
            if self.plays(Trick.ERROR, api, node):
                error = self.error(api)
                answer["error"] = answer["error"] if answer["error"] in _NO_MEMBER else error
            return
        for topic in answer["topics"]:
            for place in [topic] if api is Api.METADATA else topic["partitions"]:
                if self.plays(Trick.ERROR, api, node):
                    self._spoil_one(api, answer, place)

    def _spoil_one(self, api: Api, answer: dict[str, Any], place: dict[str, Any]) -> None:
        error = self.error(api)
        if api is Api.OFFSET_FETCH and error in _WHOLE:
            answer["error"], answer["topics"] = error, []
            return
        if place["error"] in _NO_MEMBER:
            return
        place["error"] = error
        match api:
            case Api.METADATA:
                place["partitions"] = []
            case Api.FETCH:
                place |= {"records": b"", "aborted": []}
            case Api.LIST_OFFSETS | Api.OFFSET_FETCH:
                place["offset"] = -1

    def bytes_of(self, batch: Batch, node: int) -> bytes:
        """Return a batch's bytes, perhaps such as can't be read."""
        if not self._rules or not self.plays(Trick.SPOIL, Api.FETCH, node):
            return batch.data
        body = body_of(batch.data)
        codec = int.from_bytes(body[:_CODEC_BYTES]) & ~_CODEC_BITS
        match self._chance.randrange(4):
            case 0:
                return sealed(batch.base, 0, body, spoiled=True)
            case 1:
                return sealed(batch.base, 0, body, magic=MAGIC + 1 + self._chance.randrange(100))
            case 2:
                unknown = codec | self._chance.randint(_UNKNOWN_CODEC, _CODEC_BITS)
                return sealed(batch.base, 0, unknown.to_bytes(_CODEC_BYTES) + body[_CODEC_BYTES:])
            case _:
                return sealed(batch.base, 0, (codec | GZIP).to_bytes(_CODEC_BYTES) + body[_CODEC_BYTES:] + b"no gzip")
