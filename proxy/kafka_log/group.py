"""The consumer group's coordinator: what is committed, what is to be, and whether this replica is still a member.

The library's consumer joins and leaves the group. What concerns offsets is asked here, because the consumer's commit
carries the generation it has when it is sent (-1 once it was fenced, which an empty group accepts), waits behind a
JoinGroup on the same connection, and repeats itself for as long as one partition's topic is missing.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from aiokafka import errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.protocol.group import HeartbeatRequest

from proxy.errors import AssignmentLostError, LogError
from proxy.kafka_log.client import Reach
from proxy.kafka_log.group_offsets import OffsetCommitRequest, OffsetFetchRequest
from proxy.kafka_log.words import failure
from proxy.model import Partition
from proxy.positions.identity import Committed
from proxy.positions.port import Membership, Taken
from proxy.settings import LogSettings

_RETRY_PAUSE = 0.1
_PROGRESS_SECONDS = 1.0
_NOWHERE = _UNKNOWN = -1
_UNKNOWN_TOPIC = errors.UnknownTopicOrPartitionError.errno
_LEFT_OUT = {errors.UnknownTopicOrPartitionError, errors.TopicAuthorizationFailedError}
"""What concerns one topic and not the group."""
_UNANSWERED = (errors.RequestTimedOutError, errors.KafkaConnectionError)
_FENCED = {errors.UnknownMemberIdError, errors.IllegalGenerationError, errors.RebalanceInProgressError}


class GroupCoordinator:
    """Asks the coordinator, each time within `deadline` seconds; a failure for want of it is tried again until then.

    Every method raises `LogError` if there is no answer in time or it is a refusal.
    """

    def __init__(self, client: AIOKafkaClient, settings: LogSettings, reach: Reach, deadline: float) -> None:
        self._client = client
        self._group = settings.group
        self._is_static = settings.group_instance_id is not None
        self._reach = reach
        self._deadline = deadline
        self._node: int | None = None
        self._unanswered = 0
        """Requests of which nobody knows what became."""

    async def committed(self) -> dict[Partition, Committed | None]:
        """Return everything that the group has committed; None is what it can't tell of now."""
        response = await self._ask(OffsetFetchRequest(self._group), _fetch_errors)
        untold = {
            Partition(topic, number): None
            for topic, answers in response.topics
            for number, *_, error in answers
            if error
        }
        return {**_offsets(response), **untold}

    async def progress(self) -> dict[Partition, Committed]:
        """Return the same within a second, over a connection on which no commit waits; the caller says its failures."""
        request = OffsetFetchRequest(self._group)
        try:
            async with asyncio.timeout(_PROGRESS_SECONDS):
                response = await self._answer(request, _fetch_errors, ConnectionGroup.DEFAULT)
        except TimeoutError as error:
            raise LogError(f"the group's progress is not told within {_PROGRESS_SECONDS:g} s") from error
        except errors.KafkaError as error:
            raise LogError(f"the group's coordinator does not tell its progress: {failure(error)}") from error
        return _offsets(response)

    async def commit(self, membership: Membership, offsets: Mapping[Partition, Committed]) -> Taken:
        """Commit the offsets in one request, and believe only what the answer says.

        A coordinator that knows none of the partitions answers without looking at who asks: that tells nothing of our
        membership. Raises `AssignmentLostError` if the group has fenced us.
        """
        by_topic: dict[str, list[tuple[int, int, int, str]]] = defaultdict(list)
        for at, committed in offsets.items():
            epoch = _UNKNOWN if committed.leader_epoch is None else committed.leader_epoch
            by_topic[at.topic].append((at.number, committed.offset, epoch, committed.metadata))
        request = OffsetCommitRequest(self._group, membership, by_topic.items())
        unanswered = self._unanswered
        response = await self._ask(request, _commit_errors)
        answers = [(Partition(topic, number), error) for topic, given in response.topics for number, error in given]
        refused = errors.TopicAuthorizationFailedError.errno
        return Taken(
            frozenset(at for at, error in answers if error == 0),
            frozenset(at.topic for at, error in answers if error == refused),
            is_doubtful=self._unanswered > unanswered,
        )

    async def affirm(self, membership: Membership) -> None:
        """Ask whether we are a member of the current generation. Raises `AssignmentLostError` if not."""
        await self._ask(HeartbeatRequest(self._group, *membership), _heartbeat_errors)

    async def _ask(self, request: Any, errors_of: Callable[[Any], list[int]]) -> Any:
        try:
            async with asyncio.timeout(self._deadline):
                response = await self._answer(request, errors_of, ConnectionGroup.COORDINATION)
        except TimeoutError as error:
            reason = f"no answer from the group's coordinator within {self._deadline:g} s"
            self._reach.lost("group", reason)
            raise LogError(reason) from error
        except errors.KafkaError as error:
            if type(error) in _FENCED:
                hint = "; does another one use its log.group_instance_id?" if self._is_static else ""
                raise AssignmentLostError(f"the group has fenced this replica: {error}{hint}") from error
            why = failure(error)
            self._reach.lost("group", why)
            raise LogError(f"the group's coordinator refuses: {why}") from error
        self._reach.found("group")
        return response

    async def _answer(self, request: Any, errors_of: Callable[[Any], list[int]], connection: ConnectionGroup) -> Any:
        """Ask until there is an answer; raise `KafkaError` where trying again is in vain."""
        while True:
            try:
                if self._node is None:
                    self._node = await self._client.coordinator_lookup(CoordinationType.GROUP, self._group)
                response = await self._client.send(self._node, request, group=connection)
                for error in errors_of(response):
                    raise errors.for_code(error)
            except errors.KafkaError as error:
                self._node = None
                self._unanswered += isinstance(error, _UNANSWERED)
                if not error.retriable or type(error) in _FENCED:
                    raise
                await asyncio.sleep(_RETRY_PAUSE)
            else:
                return response


def _offsets(response: Any) -> dict[Partition, Committed]:
    return {
        Partition(topic, number): Committed.read(offset, metadata, None if epoch == _UNKNOWN else epoch)
        for topic, answers in response.topics
        for number, offset, epoch, metadata, error in answers
        if offset != _NOWHERE and error == 0
    }


def _fetch_errors(response: Any) -> list[int]:
    """Return also those of single partitions: one that can't be told of would be begun anew.

    Raises `KafkaConnectionError` if an offset is none.
    """
    if any(offset < _NOWHERE for _, answers in response.topics for _, offset, *_ in answers):
        raise errors.KafkaConnectionError("the coordinator tells offsets that are none")
    each = {error for _, answers in response.topics for *_, error in answers}
    return [error for error in (response.error_code, *sorted(each)) if error not in {0, _UNKNOWN_TOPIC}]


def _commit_errors(response: Any) -> list[int]:
    given = [error for _, answers in response.topics for _, error in answers if error]
    return [error for error in given if errors.for_code(error) not in _LEFT_OUT]


def _heartbeat_errors(response: Any) -> list[int]:
    """While a rebalance begins we are a member still."""
    error = response.error_code
    return [error] if error not in {0, errors.RebalanceInProgressError.errno} else []
