"""A topic of Tidegate's own, of one partition, over a client that is nobody else's: nothing of the data waits for it.

It says nothing in the log: whoever calls is told by the error. Each call is tried again for 5 s where that may mend it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from aiokafka import TopicPartition, errors
from aiokafka.client import CoordinationType
from aiokafka.protocol.admin import CreateTopicsRequest, DescribeGroupsRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.protocol.produce import ProduceRequest

from proxy.access import Access, log_access
from proxy.errors import LogError
from proxy.kafka_log.client import log_in, options, teach_manners
from proxy.kafka_log.fetch_sessions import Fetch, Wish
from proxy.kafka_log.login import Credentials
from proxy.kafka_log.network import Network
from proxy.kafka_log.nodes import QUIET, Nodes
from proxy.kafka_log.protocol import TopicsRequest, topics
from proxy.kafka_log.words import NoHostError, unanswered
from proxy.settings import LogSettings

ANSWER_SECONDS = 5.0
"""One call, connecting and trying again included."""

_PAUSE = 0.1
_CLIENT = -1
_UNCOMMITTED = 0
_NO_SESSION = (0, -1)
_IN_SYNC = -1
_BROKERS_DEFAULT = -1
_BYTES = 4 * 1024**2
_WISH = Wish(wait_ms=100, least_bytes=1, most_bytes=_BYTES, isolation=_UNCOMMITTED, partition_bytes=_BYTES)
_UNAUTHORIZED = {errors.TopicAuthorizationFailedError.errno, errors.ClusterAuthorizationFailedError.errno}
_ABSENT = {errors.UnknownTopicOrPartitionError.errno, errors.InvalidTopicError.errno}
_T = TypeVar("_T")


class UnansweredError(LogError):
    """Nobody has answered, so nothing is known of rights or of what there is."""


class Member(NamedTuple):
    """One of a group, as Kafka knows it."""

    id: str
    host: str
    """From where it speaks to Kafka."""


class OwnTopic:
    """What can be asked about the topic `name`; used in one event loop, and only within `answered`."""

    def __init__(self, name: str, settings: LogSettings, access: Access | None) -> None:
        """Make one; without `access` it logs in with what `settings.security` names."""
        self.name = name
        self._settings = settings
        self._access = access
        self._made: Network | None = None
        self._connecting = asyncio.Lock()

    async def answered(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Connect, log in and ask, again where that may mend it. Raises `LogError`, `RefusedLoginError`."""
        failure: Exception = TimeoutError()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while True:
                    try:
                        await self._connect()
                        return await ask()
                    except errors.KafkaError as error:
                        failure = error
                        if isinstance(error, NoHostError) or not error.retriable:
                            raise
                        if error.invalid_metadata and self._made is not None:
                            self._client.force_metadata_update()
                    await asyncio.sleep(_PAUSE)
        except TimeoutError as error:
            raise self._failed(failure) from error
        except (OSError, errors.KafkaError) as error:
            raise self._failed(error) from error

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        made, self._made = self._made, None
        if made is not None:
            await made.close()

    async def id(self) -> str | None:
        """Return the topic's id, empty if the broker tells none; None if there is no such topic."""
        told = topics(await self._client.ask_any(TopicsRequest({self.name}, with_rights=False), "own topic"))
        topic = told.get(self.name)
        if topic is None or topic.error in _ABSENT:
            return None
        if topic.error != errors.LeaderNotAvailableError.errno:
            self._check(topic.error, "Read")
        return topic.id

    async def offset(self, time: int) -> int:
        """Return the offset that is `EARLIEST` or `LATEST`."""
        request = OffsetRequest(_CLIENT, _UNCOMMITTED, [(self.name, [(0, time)])])
        ((_, ((_, error, _, offset),)),) = (await self._client.send(await self._leader(), request)).topics
        self._check(error, "Read")
        return int(offset)

    async def fetch(self, first: int) -> bytes:
        """Return batches of records from an offset on, perhaps with some before it; wait for some for 0.1 s."""
        places = {TopicPartition(self.name, 0): first}
        answer = await self._client.fetch(await self._leader(), Fetch(_WISH, _NO_SESSION, places, (), places))
        self._check(answer.error_code, "Read")
        (told,) = answer.told
        self._check(told.error, "Read")
        return bytes(told.records)

    async def append(self, batch: bytes) -> None:
        """Write a batch; back when all replicas that are in sync have it."""
        request = ProduceRequest(None, _IN_SYNC, self._request_ms, [(self.name, [(0, batch)])])
        ((_, ((_, error, *_),)),) = (await self._client.send(await self._leader(), request)).topics
        self._check(error, "Write")

    async def create(self, configs: Mapping[str, str]) -> None:
        """Create the topic, with as many replicas as the brokers give one by default; no change if there is one."""
        if (controller := self._client.cluster.controller) is None:
            raise errors.StaleMetadata("no controller is known")
        wanted: tuple[Any, ...] = (self.name, 1, _BROKERS_DEFAULT, [], list(configs.items()))
        request = CreateTopicsRequest([wanted], self._request_ms, validate_only=False)
        ((_, error, *words),) = (await self._client.send(controller.nodeId, request)).topic_errors
        if error == errors.NotControllerError.errno:
            raise errors.StaleMetadata("another node is the controller")
        if error != errors.TopicAlreadyExistsError.errno:
            self._check(error, "Create", next((one for one in words if one), ""))

    async def members(self) -> list[Member]:
        """Return the members of the group; none if there is no such group."""
        group = self._settings.group
        coordinator = await self._client.coordinator_lookup(CoordinationType.GROUP, group)
        ((error, *_, members),) = (await self._client.send(coordinator, DescribeGroupsRequest([group]))).groups
        if error:
            raise errors.for_code(error)(f"group {group}")
        return [Member(member, host.removeprefix("/")) for member, _, host, *_ in members]

    @property
    def _client(self) -> Network:
        if self._made is None:
            raise errors.KafkaConnectionError("closed")
        return self._made

    @property
    def _request_ms(self) -> int:
        return round(self._settings.answer_deadline * 1000)

    async def _leader(self) -> Any:
        cluster = self._client.cluster
        if not cluster.partitions_for_topic(self.name):
            raise errors.UnknownTopicOrPartitionError(f"topic {self.name} does not exist")
        leader = cluster.leader_for_partition(TopicPartition(self.name, 0))
        if leader in {None, -1}:
            raise errors.LeaderNotAvailableError(f"no node leads topic {self.name}")
        return leader

    def _check(self, error: int, right: str, words: str = "") -> None:
        if error in _UNAUTHORIZED:
            raise LogError(f"this login has no right to topic {self.name}; grant it {right} on the topic")
        if error:
            raise errors.for_code(error)(words or f"topic {self.name}")

    def _failed(self, error: Exception) -> LogError:
        if isinstance(error, errors.GroupAuthorizationFailedError):
            group = self._settings.group
            return LogError(f"this login may not see who is in group {group}; grant it Describe on the group")
        if isinstance(error, errors.BrokerResponseError):
            return LogError(f"Kafka refuses: {error}")
        return UnansweredError(unanswered(error, self._settings))

    async def _connect(self) -> None:
        async with self._connecting:
            if self._made is not None:
                return
            settings = self._settings
            teach_manners()
            credentials = Credentials(self._access or log_access(settings.security))
            host = await log_in(settings, options(settings, credentials, request_seconds=ANSWER_SECONDS))
            client = Network(**options(settings, credentials, request_seconds=settings.answer_deadline, first=host))
            client.nodes = Nodes(asyncio.get_running_loop().time, QUIET)
            try:
                await client.bootstrap()
                await client.set_topics({self.name})
            except BaseException:
                await client.close()
                raise
            self._made = client
