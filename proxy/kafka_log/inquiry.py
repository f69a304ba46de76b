"""Questions to Kafka that must not wait behind a fetch: which topics there are, where partitions begin and end."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any

from aiokafka import TopicPartition, errors
from aiokafka.protocol.offset import OffsetRequest

from proxy.bridge.event_log import Survey
from proxy.errors import LogError
from proxy.kafka_log.client import Reach
from proxy.kafka_log.network import Network
from proxy.kafka_log.protocol import TopicsRequest, topics
from proxy.model import Partition
from proxy.positions.port import LATEST
from proxy.settings import LogSettings

_ANSWER_SECONDS = 5.0
"""One question with all its requests."""
_CLIENT = -1
_NOWHERE = -1
_UNCOMMITTED, _COMMITTED = 0, 1
"""Up to where an end is asked for: the high watermark, or the last offset before an open transaction."""


class Inquiry:
    """Asks; every question raises `LogError` if the log does not answer within 5 s.

    `reach` is told of every answer and every failure, which makes it the detector of outages.
    """

    def __init__(self, client: Network, settings: LogSettings, reach: Reach) -> None:
        self._client = client
        self._isolation = _COMMITTED if settings.isolation_level == "read_committed" else _UNCOMMITTED
        self._reach = reach
        self._topics: set[str] = set()
        """Of which the client has been told to know the leaders."""
        self._learning = asyncio.Lock()

    async def survey(self, wanted: Collection[str]) -> Survey:
        """Ask for all topics, then by name for those wanted that are not among them."""
        async with self._answer("topics"):
            known = topics(await self._client.ask_any(TopicsRequest(None, with_rights=True), "topics"))
            if hidden := set(wanted) - known.keys():
                known |= topics(await self._client.ask_any(TopicsRequest(hidden, with_rights=True), "topics"))
        refused = errors.TopicAuthorizationFailedError.errno
        readable = frozenset(name for name, topic in known.items() if topic.may_read and not topic.error)
        denied = {
            name for name, topic in known.items() if topic.error == refused or not (topic.error or topic.may_read)
        }
        return Survey(
            readable=readable,
            missing=frozenset(set(wanted) - readable - denied),
            refused=frozenset(denied & set(wanted)),
        )

    async def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        """Return the topics' ids, empty where the broker tells none; topics that it can't tell of now are left out."""
        async with self._answer("topics"):
            known = topics(await self._client.ask_any(TopicsRequest(names, with_rights=False), "ids"))
        return {name: topic.id for name, topic in known.items() if not topic.error}

    async def offsets(self, times: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return the first offset at or after a time (milliseconds since 1970, `EARLIEST` or `LATEST`), one each.

        A partition with nothing at or after its time gets its end. Those that the log can't tell of now are left out.
        """
        async with self._answer("offsets"):
            found = await self._offsets(times, self._isolation)
            if beyond := [partition for partition, offset in found.items() if offset == _NOWHERE]:
                ends = await self._offsets(dict.fromkeys(beyond, LATEST), self._isolation)
                found = {at: offset for at, offset in found.items() if offset != _NOWHERE} | ends
        return found

    async def ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Return the high watermarks. Those that the log can't tell of now are left out."""
        async with self._answer("offsets"):
            return await self._offsets(dict.fromkeys(partitions, LATEST), _UNCOMMITTED)

    @contextlib.asynccontextmanager
    async def _answer(self, subject: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                yield
        except (TimeoutError, errors.KafkaError) as error:
            why = str(error) or f"no answer within {_ANSWER_SECONDS:g} s"
            self._reach.lost("inquiry", why)
            raise LogError(f"the log does not tell its {subject}: {why}") from error
        self._reach.found("inquiry")

    async def _offsets(self, times: Mapping[Partition, int], isolation: int) -> dict[Partition, int]:
        """Send one request to each leader; raise only if none of them answers."""
        await self._know({partition.topic for partition in times})
        by_leader: dict[Any, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        for partition, time in times.items():
            leader = self._client.cluster.leader_for_partition(TopicPartition(*partition))
            if leader in {None, -1}:
                self._client.force_metadata_update()
            else:
                by_leader[leader][partition.topic].append((partition.number, time))
        requests = [
            self._client.send(leader, OffsetRequest(_CLIENT, isolation, list(topics.items())))
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
                        found[Partition(topic, number)] = offset
                    elif getattr(errors.for_code(error), "invalid_metadata", False):
                        self._client.force_metadata_update()
        return found

    async def _know(self, topics: set[str]) -> None:
        """Have the client know the topics' leaders; who asks second waits as well."""
        if topics <= self._topics:
            return
        async with self._learning:
            if not topics <= self._topics:
                await self._client.set_topics(self._topics | topics)
                self._topics |= topics
