"""Questions to Kafka that must not wait behind a fetch: which topics there are, where partitions begin and end."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping
from typing import Any, NamedTuple, TypeVar

from aiokafka import TopicPartition, errors
from aiokafka.protocol.offset import OffsetRequest

from proxy.bridge.event_log import Survey
from proxy.errors import LogError
from proxy.kafka_log.client import Reach
from proxy.kafka_log.epoch_ends import EpochEndsRequest, ends
from proxy.kafka_log.network import Network
from proxy.kafka_log.protocol import TopicsRequest, topics
from proxy.kafka_log.questions import Came, Question
from proxy.kafka_log.retention import retentions, settings_question
from proxy.model import Partition, Retention
from proxy.positions.port import LATEST
from proxy.settings import LogSettings

_T = TypeVar("_T")

_ANSWER_SECONDS = 5.0
"""One question with all its requests."""
_CLIENT = -1
_NOWHERE = -1
_UNCOMMITTED, _COMMITTED = 0, 1
"""Up to where an end is asked for: the high watermark, or the last offset before an open transaction."""


_KEPT = 64
"""Questions for topics' ids that are kept at most, with their answers: some 60 KB each."""


class _Asked(NamedTuple):
    """What is asked for the offsets of partitions."""

    partitions: frozenset[Partition]
    questions: Mapping[Any, Question]
    """By leader."""
    are_all_led: bool


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
        self._ids: dict[frozenset[str], Question] = {}
        """For the ids of topics that were asked for together, in the order in which they were."""
        self._asked: _Asked | None = None
        """For the ends; None: leaders may be others than when they were asked for last."""
        client.on_metadata.append(self._forget)

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
        wanted = frozenset(names)
        question = self._ids.pop(wanted, None) or Question(TopicsRequest(wanted, with_rights=False))
        self._ids[wanted] = question  # as the last: of those that come round again none is forgotten
        if len(self._ids) > _KEPT:
            del self._ids[next(iter(self._ids))]
        async with self._answer("topics"):
            came = await self._client.ask_any(question, "ids")
        if came.response is None:
            return dict(came.value)
        told = {name: topic.id for name, topic in topics(came.response).items() if not topic.error}
        came.keep(told)
        return dict(told)

    async def offsets(self, times: Mapping[Partition, int]) -> dict[Partition, int]:
        """Return the first offset at or after a time (milliseconds since 1970, `EARLIEST` or `LATEST`), one each.

        A partition with nothing at or after its time gets its end. Those that the log can't tell of now are left out.
        """
        async with self._answer("offsets"):
            found = await self._offsets(times, self._isolation)
            if beyond := [partition for partition, offset in found.items() if offset == _NOWHERE]:
                ends = await self._offsets(dict.fromkeys(beyond, LATEST), self._isolation)
                found = {at: offset for at, offset in {**found, **ends}.items() if offset != _NOWHERE}
        return found

    async def ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Return the high watermarks. Those that the log can't tell of now are left out."""
        async with self._answer("offsets"):
            if self._asked is None or self._asked.partitions != set(partitions):
                self._asked = await self._questions(dict.fromkeys(partitions, LATEST), _UNCOMMITTED)
            return await self._ask(self._asked)

    async def leader_ends(self, epochs: Mapping[Partition, int]) -> dict[Partition, int | None]:
        """Return where the log ended that was written up to these leaders' epochs; None: it can't be known.

        Those that the log can't tell of now are left out.
        """
        async with self._answer("leaders"):
            await self._know({partition.topic for partition in epochs})
            by_leader: dict[Any, dict[Partition, int]] = defaultdict(dict)
            for partition, epoch in epochs.items():
                by_leader[self._client.cluster.leader_for_partition(TopicPartition(*partition))][partition] = epoch
            found: dict[Partition, int | None] = {}
            led = [self._leader_ends(leader, some) for leader, some in by_leader.items() if leader not in {None, -1}]
            for told in await _answered(*led):
                found |= told
        if len(found) < len(epochs):
            self._client.force_metadata_update()
        return found

    async def _leader_ends(self, leader: Any, epochs: Mapping[Partition, int]) -> dict[Partition, int | None]:
        try:
            told = dict(ends(await self._client.send(leader, EpochEndsRequest(epochs))))
        except errors.IncompatibleBrokerVersion:
            return dict.fromkeys(epochs)
        return {partition: end for partition, end in told.items() if partition in epochs}

    async def retention(self, topics: Collection[str]) -> dict[str, Retention | None]:
        """Return how long each topic is kept; None where this login may not know. Those that are gone are left out."""
        try:  # not by `_answer`: whoever keeps this question from Kafka is no outage
            async with asyncio.timeout(_ANSWER_SECONDS):
                return retentions(await self._client.ask_any(settings_question(topics), "retention"))
        except (TimeoutError, errors.KafkaError) as error:
            raise LogError(f"the log does not tell how long it keeps topics: {error!r}") from error

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
        return await self._ask(await self._questions(times, isolation))

    async def _questions(self, times: Mapping[Partition, int], isolation: int) -> _Asked:
        """Return one for each leader."""
        await self._know({partition.topic for partition in times})
        by_leader: dict[Any, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        for partition, time in times.items():
            leader = self._client.cluster.leader_for_partition(TopicPartition(*partition))
            if leader not in {None, -1}:
                by_leader[leader][partition.topic].append((partition.number, time))
        led = sum(len(numbers) for topics in by_leader.values() for numbers in topics.values())
        questions = {
            leader: Question(OffsetRequest(_CLIENT, isolation, list(topics.items())))
            for leader, topics in by_leader.items()
        }
        return _Asked(frozenset(times), questions, are_all_led=led == len(times))

    async def _ask(self, asked: _Asked) -> dict[Partition, int]:
        """Ask every leader; raise only if none of them answers."""
        if not asked.are_all_led:
            self._client.force_metadata_update()
        found: dict[Partition, int] = {}
        for came in await _answered(*[self._client.send(*question) for question in asked.questions.items()]):
            found |= self._told(came, asked.partitions)
        return found

    def _told(self, came: Came, asked: frozenset[Partition]) -> Mapping[Partition, int]:
        """Return the offsets that one leader has told. Raises `KafkaConnectionError` if they are none."""
        if came.response is None:
            known: Mapping[Partition, int] = came.value
            return known
        found: dict[Partition, int] = {}
        is_moved = False
        for topic, answers in came.response.topics:
            for number, error, _, offset in answers:
                if error == 0:
                    found[Partition(topic, number)] = offset
                elif getattr(errors.for_code(error), "invalid_metadata", False):
                    is_moved = True
        if not found.keys() <= asked or min(found.values(), default=0) < _NOWHERE:
            raise errors.KafkaConnectionError("a node tells offsets that are none, or that it was not asked for")
        if is_moved:
            self._client.force_metadata_update()
        else:
            came.keep(found)
        return found

    def _forget(self) -> None:
        self._asked = None

    async def _know(self, topics: set[str]) -> None:
        """Have the client know the topics' leaders; who asks second waits as well."""
        if topics <= self._topics:
            return
        async with self._learning:
            if not topics <= self._topics:
                await self._client.set_topics(self._topics | topics)
                self._topics |= topics


async def _answered(*questions: Awaitable[_T]) -> list[_T]:
    """Return what those nodes answer that do: a silent one holds up no other. Raises what went wrong if none does."""
    answers = await asyncio.gather(*questions, return_exceptions=True)
    failures = [answer for answer in answers if isinstance(answer, BaseException)]
    for failure in failures:
        if len(failures) == len(answers) or not isinstance(failure, errors.KafkaError):
            raise failure
    return [answer for answer in answers if not isinstance(answer, BaseException)]
