"""`EventLog` over aiokafka: one consumer for everything this replica reads."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

import structlog
from aiokafka import TopicPartition, errors
from aiokafka.client import AIOKafkaClient

from proxy.bridge.event_log import PartitionOwner, Survey
from proxy.errors import LogError
from proxy.kafka_log.client import FIRST_PAUSE, LONGEST_PAUSE, Reach, log_in, options, persist, teach_manners
from proxy.kafka_log.consumer import new_consumer
from proxy.kafka_log.epoch import Epoch, Rebalances
from proxy.kafka_log.group import GroupCoordinator
from proxy.kafka_log.identity import LOOK_SECONDS
from proxy.kafka_log.inquiry import LATEST, Inquiry
from proxy.kafka_log.reader import Reader
from proxy.kafka_log.resting import Rests
from proxy.kafka_log.shares import Placing, Share
from proxy.model import Event, Partition, Position
from proxy.settings import Limits, LogSettings

_say = structlog.get_logger("tidegate.kafka")

_STOP_SECONDS = 4.0
"""Leaving the group; then the connections are closed without it."""
_REQUESTS_PER_DEADLINE = 2
"""A request for offsets gives its connection up early enough to be tried on another within `limits.commit_deadline`."""


class KafkaLog:
    """A consumer group's view of Kafka, 2.3 or newer; see `EventLog` for what each method promises."""

    def __init__(
        self, settings: LogSettings, limits: Limits, *, is_urgent: Callable[[str], bool] = lambda _topic: True
    ) -> None:
        """Make one; topics that are not urgent may be looked at once a second while they are empty."""
        self._is_urgent = is_urgent
        self._settings = settings
        self._limits = limits
        self._reach = Reach(settings.hosts)
        self._topics: frozenset[str] = frozenset()
        self._refused: set[str] = set()
        """Topics still to be dropped."""
        self._dropped: set[str] = set()
        """Topics dropped and not yet told of."""
        self._attention = asyncio.Event()
        self._changes = asyncio.Lock()
        self._failure: Exception | None = None
        self._has_left = False
        """The consumer is no longer in its group, and will not join again by itself."""
        self._stopped = False
        self._client: AIOKafkaClient | None = None
        self._consumer: Any = None
        self._keeper: asyncio.Task[None] | None = None
        self._inquiry: Inquiry
        self._placing: Placing
        self._reader: Reader
        self._epoch: Epoch
        self._rests: Rests

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
        deadline = self._limits.commit_deadline
        coordinator = GroupCoordinator(self._client, self._settings, self._reach, deadline)
        self._inquiry = Inquiry(self._client, self._settings, self._reach)
        self._placing = Placing(self._settings, self._consumer, coordinator, self._inquiry, owner)
        self._epoch = Epoch(
            self._consumer,
            coordinator,
            self._placing,
            owner,
            on_refused=self._on_refused,
            is_urgent=self._is_urgent,
        )
        self._rests = Rests(self._consumer, asyncio.get_running_loop().time)
        self._reader = Reader(
            self._consumer,
            self._reach,
            on_unavailable=self._on_unavailable,
            on_refused=self._on_refused,
            on_left=self._on_left,
        )
        self._keeper = asyncio.create_task(self._keep(), name="kafka-keeper")

    async def survey(self, wanted: Collection[str]) -> Survey:
        """Ask which topics exist and may be read; never creates one. Raises `LogError` if unanswered within 5 s.

        A topic dropped because reading it was refused is told as refused once, even if it has become readable since.
        """
        if self._stopped:
            raise LogError("the log has been left")
        survey = await self._inquiry.survey(wanted)
        dropped, self._dropped = frozenset(self._dropped & survey.readable), set()
        return Survey(survey.readable - dropped, survey.missing, survey.refused | (dropped & set(wanted)))

    async def subscribe(self, topics: frozenset[str]) -> None:
        """Replace the topics read by this replica."""
        async with self._changes:
            if topics == self._topics:
                return
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
        self._rests.turn(self._epoch.shares)
        return await self._reader.read(lambda: self._epoch.shares, wait)

    def pause(self, partitions: Collection[Partition]) -> None:
        """Fetch no more from the partitions; those not owned are passed over."""
        self._set_paused(partitions, self._consumer.pause, paused=True)

    def resume(self, partitions: Collection[Partition]) -> None:
        """Fetch again from the partitions; those not owned are passed over."""
        self._set_paused(partitions, self._consumer.resume, paused=False)

    async def commit(self, positions: Mapping[Partition, Position]) -> Mapping[Partition, int]:
        """Commit what is owned of the positions, in one request, once none is under way; `limits.commit_deadline`."""
        return await self._epoch.commit(positions)

    def place(self, position: Position) -> int:
        """Return the offset that a position is."""
        assert isinstance(position, int)
        return position

    async def affirm(self) -> bool:
        """Ask within `limits.commit_deadline`; True without asking if nothing is owned. See `EventLog.affirm`."""
        return await self._epoch.affirm()

    async def lags(self, done: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Ask for the ends of all partitions at once; nothing is returned if the log does not answer within 5 s."""
        if self._stopped:
            return {}
        heads: dict[TopicPartition, int] = {}
        for partition, position in done.items():
            share = self._epoch.shares.get(partition)
            head = position + 1 if isinstance(position, int) else None
            if share is not None and share.began is not None:
                head = max(head or 0, share.done)  # it also knows of what the log has dropped
            if head is not None:
                heads[TopicPartition(*partition)] = head
        try:
            ends = await self._inquiry.offsets(dict.fromkeys(heads, LATEST))
        except LogError:
            return {}
        return {Partition(*at): max(0, end - heads[at]) for at, end in ends.items()}

    async def progress(self) -> Mapping[Partition, int]:
        """Ask the group's coordinator for the offsets of all partitions in one request."""
        if self._stopped:
            raise LogError("the log has been left")
        return await self._epoch.progress()

    async def stop(self) -> None:
        """Leave the group and close, within 10 s; ends a poll that is under way. Commits nothing."""
        if self._stopped:
            return
        self._stopped = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
            self._reader.interrupt()
            self._epoch.shares = {}
        if self._consumer is not None:
            await self._leave()
        if self._client is not None:
            await self._client.close()

    async def _leave(self) -> None:
        """Stop the consumer; where that fails or hangs, at least close its connections.

        Its stop is a task of its own because it can end in a cancellation of the library's making, out of a fetch that
        waits for the log to return.
        """
        leaving = asyncio.create_task(self._consumer.stop(), name="kafka-leaving")
        try:
            done, _ = await asyncio.wait({leaving}, timeout=_STOP_SECONDS)
            if not done:
                _say.warning("log_left_unsaid", effect="the group notices after one session timeout")
        finally:
            leaving.cancel()
            await asyncio.wait({leaving})
            await self._consumer._client.close()  # noqa: SLF001  # closed by nothing else then
        if not leaving.cancelled() and not isinstance(leaving.exception(), errors.KafkaError | None):
            leaving.result()

    async def _connect(self) -> None:
        settings, limits = self._settings, self._limits
        login = options(settings, request_seconds=limits.connect_deadline)
        await persist(lambda: log_in(settings, login), self._reach)
        self._client = AIOKafkaClient(
            **options(settings, request_seconds=limits.commit_deadline / _REQUESTS_PER_DEADLINE)
        )
        await persist(self._client.bootstrap, self._reach)
        self._consumer = new_consumer(settings, limits)
        await persist(self._consumer.start, self._reach)

    async def _join_with(self, topics: frozenset[str]) -> None:
        await self._epoch.end()
        self._topics = topics
        if topics:
            listener = Rebalances(self._epoch, on_begin=self._attention.set, on_failure=self._on_failure)
            self._consumer.subscribe(topics=tuple(topics), listener=listener)
        else:
            self._consumer.unsubscribe()

    def _set_paused(
        self, partitions: Collection[Partition], act: Callable[[TopicPartition], None], *, paused: bool
    ) -> None:
        shares = self._epoch.shares
        for partition in partitions:
            share = shares.get(partition)
            if share is not None and share.is_paused is not paused:
                share.is_paused = paused
                if share.is_placed and not share.is_resting:
                    act(share.at)

    def _on_failure(self, error: Exception) -> None:
        self._failure = error

    def _on_unavailable(self, share: Share, offset: int) -> None:
        share.unavailable = offset
        self._placing.hold(share)
        self._attention.set()

    def _on_refused(self, topic: str) -> None:
        for share in self._epoch.shares.values():
            if share.at.topic == topic:
                self._placing.hold(share)
        if topic in self._topics and topic not in self._refused:
            self._refused.add(topic)
            _say.error("topic_dropped", topic=topic, why="reading it was refused", remedy="grant this login Read on it")
            self._attention.set()

    def _on_left(self) -> None:
        self._has_left = True
        self._attention.set()

    async def _keep(self) -> None:
        """Join again, drop what is refused, place and pin what is new; tried again for as long as it takes.

        With nothing to do it still looks for topics that were made anew, some of them each time.
        """
        pause = FIRST_PAUSE
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._attention.wait()
                self._attention.clear()
                try:
                    is_done = await self._attend()
                except LogError:
                    is_done = False
                if is_done:
                    pause = FIRST_PAUSE
                else:
                    self._attention.set()
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
        except Exception as error:  # noqa: BLE001  # the pump gets it from `poll`
            self._on_failure(error)

    async def _attend(self) -> bool:
        if refused := frozenset(self._refused):
            await self.subscribe(self._topics - refused)
            self._refused -= refused
            self._dropped |= refused
        if self._has_left:
            self._has_left = False
            async with self._changes:
                await self._join_with(self._topics)
        is_placed = await self._placing.attend(lambda: self._epoch.shares)
        unpinned = [share for share in self._epoch.shares.values() if share.is_placed and not share.is_pinned]
        if unpinned:
            await self._epoch.pin(unpinned)
            for share in unpinned:
                share.is_pinned = True
        return is_placed
