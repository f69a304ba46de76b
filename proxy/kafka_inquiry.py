"""Questions to Kafka that must not wait behind a fetch or a commit: they go over a client of their own."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any

from aiokafka import TopicPartition, errors
from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.offset import OffsetRequest

from proxy.bridge.event_log import Survey
from proxy.errors import LogError
from proxy.kafka_client import FIRST_PAUSE, LONGEST_PAUSE, Reach, options
from proxy.kafka_protocol import TopicsRequest, states
from proxy.settings import LogSettings

EARLIEST = -2
LATEST = -1
"""Times that stand for the beginning and the end of a partition."""

_REQUEST_SECONDS = 3.0
"""One request or one attempt to connect; the connection is given up then."""
_ANSWER_SECONDS = 5.0
"""One question with all its requests."""
_CLIENT = -1
_NOWHERE = -1


class Inquiry:
    """Asks; every question raises `LogError` if the log does not answer within 5 s.

    `reach` is told of every answer and every failure, which makes it the detector of outages.
    """

    def __init__(self, settings: LogSettings, reach: Reach) -> None:
        self._group = settings.group
        self._isolation = int(settings.isolation_level == "read_committed")
        self._reach = reach
        self._client = AIOKafkaClient(**options(settings, request_seconds=_REQUEST_SECONDS))
        self._topics: set[str] = set()
        self._coordinator: Any = None

    async def open(self) -> None:
        """Connect, however long that takes."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self._client.bootstrap()
            except errors.KafkaError as error:
                self._reach.lost("inquiry", str(error))
            else:
                self._reach.found("inquiry")
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def survey(self, wanted: Collection[str]) -> Survey:
        """Ask for all topics, then by name for those wanted that are not among them."""
        async with self._answer("topics"):
            known = states(await self._ask_any(TopicsRequest(None)))
            if hidden := set(wanted) - known.keys():
                known |= states(await self._ask_any(TopicsRequest(hidden)))
        refused = errors.TopicAuthorizationFailedError.errno
        readable = frozenset(topic for topic, (error, may_read) in known.items() if may_read and not error)
        denied = {topic for topic, (error, may_read) in known.items() if error == refused or not (error or may_read)}
        return Survey(
            readable=readable,
            missing=frozenset(set(wanted) - readable - denied),
            refused=frozenset(denied & set(wanted)),
        )

    async def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the group's committed offsets; partitions without one are left out."""
        async with self._answer("committed offsets"):
            try:
                return await self._committed(partitions)
            except errors.KafkaError:
                self._coordinator = None
                raise

    async def offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the first offset at or after a time (milliseconds since 1970, `EARLIEST` or `LATEST`), one each.

        A partition with nothing at or after its time gets its end. Those that the log can't tell of now are left out.
        """
        async with self._answer("offsets"):
            found = await self._offsets(times)
            if beyond := [partition for partition, offset in found.items() if offset == _NOWHERE]:
                ends = await self._offsets(dict.fromkeys(beyond, LATEST))
                found = {at: offset for at, offset in found.items() if offset != _NOWHERE} | ends
        return found

    @contextlib.asynccontextmanager
    async def _answer(self, subject: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                yield
        except (TimeoutError, errors.KafkaError) as error:
            reason = str(error) or type(error).__name__
            self._reach.lost("inquiry", reason)
            raise LogError(f"the log does not tell its {subject}: {reason}") from error
        self._reach.found("inquiry")

    async def _ask_any(self, request: Any) -> Any:
        """Ask the brokers in turn until one answers."""
        failure: errors.KafkaError = errors.NodeNotReadyError("no broker is known")
        for broker in self._client.cluster.brokers():
            try:
                return await self._client.send(broker.nodeId, request)
            except errors.KafkaError as error:
                failure = error
        raise failure

    async def _committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        if self._coordinator is None:
            self._coordinator = await self._client.coordinator_lookup(CoordinationType.GROUP, self._group)
        numbers: dict[str, list[int]] = defaultdict(list)
        for partition in partitions:
            numbers[partition.topic].append(partition.partition)
        response = await self._client.send(self._coordinator, OffsetFetchRequest(self._group, list(numbers.items())))
        _check(getattr(response, "error_code", 0))
        found = {}
        for topic, answers in response.topics:
            for number, offset, _, error in answers:
                if error != errors.UnknownTopicOrPartitionError.errno:
                    _check(error)
                if offset != _NOWHERE:
                    found[TopicPartition(topic, number)] = offset
        return found

    async def _offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Send one request to each leader; raise only if none of them answers."""
        await self._know({partition.topic for partition in times})
        by_leader: dict[Any, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        for partition, time in times.items():
            leader = self._client.cluster.leader_for_partition(partition)
            if leader in {None, -1}:
                self._client.force_metadata_update()
            else:
                by_leader[leader][partition.topic].append((partition.partition, time))
        requests = [
            self._client.send(leader, OffsetRequest(_CLIENT, self._isolation, list(topics.items())))
            for leader, topics in by_leader.items()
        ]
        responses = await asyncio.gather(*requests, return_exceptions=True)
        failures = [response for response in responses if isinstance(response, BaseException)]
        for failure in failures:
            if len(failures) == len(responses) or not isinstance(failure, errors.KafkaError):
                raise failure
        found = {}
        for response in responses:
            for topic, answers in () if isinstance(response, BaseException) else response.topics:
                for number, error, _, offset in answers:
                    if error == 0:
                        found[TopicPartition(topic, number)] = offset
                    elif getattr(errors.for_code(error), "invalid_metadata", False):
                        self._client.force_metadata_update()
        return found

    async def _know(self, topics: set[str]) -> None:
        if not topics <= self._topics:
            self._topics |= topics
            await self._client.set_topics(self._topics)


def _check(code: int) -> None:
    error = errors.for_code(code)
    if error is not errors.NoError:
        raise error
