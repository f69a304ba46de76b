"""`EventLog` over aiokafka: one consumer for everything this replica reads."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import structlog
from aiokafka import TopicPartition

from proxy.access import Access, log_access
from proxy.bridge.event_log import Extent, PartitionOwner, Standing, Survey
from proxy.bridge.move import Move
from proxy.errors import LogError
from proxy.kafka_log.assignor import Assignor
from proxy.kafka_log.client import Reach, log_in, options, persist, teach_manners
from proxy.kafka_log.consumer import leave, new_consumer
from proxy.kafka_log.fetches import ConsumerFetches
from proxy.kafka_log.group import GroupCoordinator
from proxy.kafka_log.inquiry import Inquiry
from proxy.kafka_log.login import Credentials
from proxy.kafka_log.network import Network
from proxy.kafka_log.nodes import Nodes
from proxy.kafka_log.reader import Reader
from proxy.kafka_log.rebalances import Rebalances
from proxy.kafka_log.stalls import Stalls
from proxy.kafka_log.unshared import AGES, Counts, Unshared
from proxy.model import Event, Partition, Position, Retention
from proxy.positions import Positions
from proxy.positions.port import EARLIEST
from proxy.settings import Limits, LogSettings

_say = structlog.get_logger("tidegate.kafka")

_REPEAT_SECONDS = 0.5
"""Seconds that a stop spends on committing once more what may have been overtaken by an older commit."""
_REQUESTS_PER_DEADLINE = 2
"""A request for offsets gives its connection up early enough to be tried on another within `limits.commit_deadline`."""


class KafkaLog:
    """A consumer group's view of Kafka, 2.3 or newer; see `EventLog` for what each method promises."""

    def __init__(self, settings: LogSettings, limits: Limits, *, access: Access | None = None) -> None:
        """Make one; without `access` it logs in with what `settings.security` names."""
        self._access = access
        self._settings = settings
        self._limits = limits
        self._reach = Reach(settings.hosts)
        self._topics: frozenset[str] = frozenset()
        self._refused: set[str] = set()
        """Topics still to be dropped."""
        self._dropped: set[str] = set()
        """Topics dropped and not yet told of."""
        self._changes = asyncio.Lock()
        self._failure: Exception | None = None
        self._has_left = False
        """The consumer is no longer in its group, and will not join again by itself."""
        self._stopped = False
        self._client: Network | None = None
        self._assignor = Assignor()
        self._consumer: Any = None
        self._keeper: asyncio.Task[None] | None = None
        self._inquiry: Inquiry
        self._positions: Positions
        self._reader: Reader
        self._unshared: Unshared
        self._stalls: Stalls | None = None
        """None until the log is reached."""

    async def start(self, owner: PartitionOwner) -> None:
        """Connect, however long that takes; cancelled or failed, it leaves nothing open.

        Raises `RefusedLoginError` if the log refuses the login or shows a certificate that isn't trusted,
        `SettingsError` if a file of `log.security` can't be used.
        """
        teach_manners()
        try:
            await self._connect()
        except BaseException:
            await self.stop()
            raise
        assert self._client is not None
        coordinator = GroupCoordinator(self._client, self._settings, self._reach, self._limits.commit_deadline)
        self._inquiry = Inquiry(self._client, self._settings, self._reach)
        slices = self._consumer._fetcher  # noqa: SLF001  # ours, by `teach_manners`
        slices.batch_bytes = self._settings.batch_bytes
        fetches = ConsumerFetches(self._consumer)
        self._positions = Positions(
            self._settings, fetches, self._inquiry, coordinator, owner, on_refused=self._on_refused
        )
        clock = asyncio.get_running_loop().time
        self._unshared = Unshared(
            Counts(self._consumer._client).of,  # noqa: SLF001  # as above
            coordinator.committed,
            clock,
            patience=AGES * self._settings.metadata_age,
            is_static=self._settings.group_instance_id is not None,
        )
        self._stalls = Stalls(
            lambda partition: slices.hindrance(TopicPartition(*partition)), clock, lambda: slices.suspects
        )
        self._reader = Reader(
            slices,
            self._consumer,
            self._reach,
            on_passed=self._positions.pass_over,
            on_unavailable=self._positions.go_astray,
            on_refused=self._on_refused,
            on_left=self._on_left,
        )
        self._keeper = asyncio.create_task(self._keep(), name="kafka-keeper")

    async def survey(self, wanted: Collection[str]) -> Survey:
        """Ask which topics exist and may be read; never creates one. Raises `LogError` if unanswered within 5 s.

        A topic dropped because reading it was refused is told as refused once, even if it has become readable since.
        """
        self._raise_stopped()
        survey = await self._inquiry.survey(wanted)
        self._positions.note_missing(survey.missing)
        dropped, self._dropped = frozenset(self._dropped & survey.readable), set()
        return Survey(survey.readable - dropped, survey.missing, survey.refused | (dropped & set(wanted)))

    async def subscribe(self, topics: frozenset[str]) -> None:
        """Replace the topics read by this replica."""
        async with self._changes:
            if topics != self._topics:
                await self._join_with(topics)

    async def poll(self, wait: float) -> Mapping[Partition, list[Event]]:
        """Return all records fetched so far; at most 0.1 s later than `wait`, rebalance or not.

        Raises `LogError` if the log refuses the group for a reason that lies in the settings, or if the library's
        consumer has come to an end.
        """
        if self._failure is not None:
            raise self._failure
        if self._stopped:
            await asyncio.sleep(wait)
            return {}
        if self._stalls is not None:
            self._stalls.turn(self._positions.shares)
        return await self._reader.read(lambda: self._positions.shares, wait)

    def pause(self, partitions: Collection[Partition]) -> None:
        """Fetch no more from the partitions; those not owned are passed over."""
        self._positions.pause(partitions)

    def resume(self, partitions: Collection[Partition]) -> None:
        """Fetch again from the partitions; those not owned are passed over."""
        self._positions.resume(partitions)

    async def commit(self, positions: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Commit what is owned of the positions, in one request, once none is under way; `limits.commit_deadline`."""
        return await self._positions.commit(positions)

    def move(self, wanted: Mapping[Partition, Move]) -> Collection[Partition]:
        """Replace which cursors are to be moved; see `EventLog.move`."""
        return () if self._stopped else self._positions.move(wanted)

    def renew(self, topics: Collection[str]) -> None:
        """Begin what is owned of the topics anew; see `EventLog.renew`."""
        if not self._stopped:
            self._positions.renew(topics)

    def place(self, position: Position) -> int:
        """Return the offset that a position is."""
        assert isinstance(position, int)
        return position

    def member(self) -> str:
        """Return the member id of the last epoch."""
        return self._positions.member

    async def affirm(self) -> bool:
        """Ask within `limits.commit_deadline`. See `EventLog.affirm`."""
        return await self._positions.affirm()

    async def lags(self, done: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Ask for the ends of all partitions at once; nothing is returned if the log does not answer within 5 s."""
        return {} if self._stopped else await self._positions.lags(done)

    def doubts_topics(self) -> bool:
        """Return whether a topic was dropped, or is shown no more, or the group left some of the last commit out."""
        hidden = self._consumer._client.cluster.unauthorized_topics  # noqa: SLF001  # no fetch may ever meet it
        return bool(self._dropped or self._refused or self._topics & hidden) or self._positions.is_left_out

    def standing(self) -> Mapping[Partition, Standing]:
        """Return the partitions that have stood still for seconds, as of the last poll."""
        return {} if self._stopped or self._stalls is None else self._stalls.standing

    def outside(self) -> str | None:
        """Return why the group's coordinator refuses this replica or does not answer it; None: it answers."""
        return None if self._stopped else self._reach.why("group")

    async def progress(self) -> Mapping[Partition, int]:
        """Ask the group's coordinator for the offsets of all partitions in one request."""
        self._raise_stopped()
        return await self._positions.progress()

    async def extents(self, topics: Collection[str]) -> Mapping[Partition, Extent]:
        """Ask the group's coordinator for all offsets, then the leaders for the ends: one request each."""
        self._raise_stopped()
        return await self._positions.extents(topics)

    async def retention(self, topics: Collection[str]) -> Mapping[str, Retention | None]:
        """Ask one node for the settings of all topics at once."""
        self._raise_stopped()
        return await self._inquiry.retention(topics)

    async def firsts(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Ask the leaders, one request each."""
        self._raise_stopped()
        return await self._inquiry.offsets(dict.fromkeys(partitions, EARLIEST))

    async def stop(self) -> None:
        """Leave the group and close, within 10 s; ends a poll that is under way. Commits nothing new."""
        if self._stopped:
            return
        self._stopped = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
            self._consumer._fetcher.interrupt()  # noqa: SLF001  # as above
            with suppress(LogError, TimeoutError):
                async with asyncio.timeout(_REPEAT_SECONDS):
                    await self._positions.repeat()
            self._positions.drop()
        if self._consumer is not None:
            await leave(self._consumer)
        if self._client is not None:
            await self._client.close()

    async def _connect(self) -> None:
        settings, limits = self._settings, self._limits
        credentials, protocol = Credentials(self._access or log_access(settings.security)), settings.security.protocol
        login = options(settings, credentials, request_seconds=limits.connect_deadline)
        host = await persist(lambda: log_in(settings, login), self._reach, protocol)
        nodes = Nodes(asyncio.get_running_loop().time)
        seconds = min(settings.answer_deadline, limits.commit_deadline / _REQUESTS_PER_DEADLINE)
        self._client = Network(**options(settings, credentials, request_seconds=seconds, first=host))
        self._client.nodes = nodes
        await persist(self._client.bootstrap, self._reach, protocol)
        self._consumer = new_consumer(settings, limits, nodes, credentials, self._assignor, first=host)
        await persist(self._consumer.start, self._reach, protocol)

    async def _join_with(self, topics: frozenset[str]) -> None:
        await self._positions.end()
        self._topics = topics
        if topics:
            listener = Rebalances(
                self._consumer, self._assignor, self._positions, self._unshared, self._reach, self._on_failure
            )
            self._consumer.subscribe(topics=tuple(topics), listener=listener)
        else:
            self._consumer.unsubscribe()

    def _raise_stopped(self) -> None:
        if self._stopped:
            raise LogError("the log has been left")

    def _on_failure(self, error: Exception) -> None:
        self._failure = error

    def _on_refused(self, topic: str) -> None:
        for share in self._positions.shares.values():
            if share.partition.topic == topic:
                self._positions.hold(share)
        if topic in self._topics and topic not in self._refused:
            self._refused.add(topic)
            _say.error("topic_dropped", topic=topic, why="reading it was refused", remedy="grant this login Read on it")
            self._positions.attend_soon()

    def _on_left(self) -> None:
        self._has_left = True
        self._positions.attend_soon()

    async def _keep(self) -> None:
        """Join again, drop what is refused, place and pin what is new; tried again for as long as it takes."""
        try:
            await self._positions.keep(self._join_anew)
        except Exception as error:  # noqa: BLE001  # the pump gets it from `poll`
            self._on_failure(error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._on_failure(LogError("kafka-keeper: what it waited for was cancelled, by nobody who ends it"))

    async def _join_anew(self) -> None:
        """Join the group without the topics that are refused, or again if this consumer has left it, or should."""
        if refused := frozenset(self._refused):
            await self.subscribe(self._topics - refused)
            self._refused -= refused
            self._dropped |= refused
        if self._has_left or await self._unshared.are_there(self._topics):
            self._has_left = False
            async with self._changes:
                await self._join_with(self._topics)
