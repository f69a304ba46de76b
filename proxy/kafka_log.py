"""`EventLog` over aiokafka: one consumer for everything this replica reads."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition, errors
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from proxy.bridge.event_log import PartitionOwner, Survey
from proxy.errors import LogError
from proxy.kafka_assignment import Assignment, Rebalances
from proxy.kafka_client import FIRST_PAUSE, LONGEST_PAUSE, Reach, await_login, options, teach_manners
from proxy.kafka_inquiry import LATEST, Inquiry
from proxy.kafka_reader import Reader
from proxy.kafka_shares import Placing, Share
from proxy.model import Event, Partition, Position
from proxy.settings import Limits, LogSettings

log = structlog.get_logger()

_STOP_SECONDS = 10.0
"""Leaving the group and closing; connections still open then are left to the end of the process."""
_HEARTBEATS_PER_SESSION = 6
_SHARES_PER_ANSWER = 16
"""A broker's answer has room for at least so many partitions, so that one busy partition can't fill it ..."""
_LEAST_SHARE = 64 * 1024
_MOST_SHARE = 1024**2
"""... within these bounds in bytes. The memory is bounded by the answer as a whole, `log.fetch_bytes` per broker."""


class KafkaLog:
    """A consumer group's view of Kafka, 2.3 or newer; see `EventLog` for what each method promises."""

    def __init__(self, settings: LogSettings, limits: Limits) -> None:
        self._settings = settings
        self._limits = limits
        self._reach = Reach(settings.hosts)
        self._topics: frozenset[str] = frozenset()
        self._refused: set[str] = set()
        self._attention = asyncio.Event()
        self._changes = asyncio.Lock()
        self._failure: Exception | None = None
        self._stopped = False
        self._consumer: Any = None
        self._inquiry: Inquiry | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._placing: Placing
        self._reader: Reader
        self._assignment: Assignment

    async def start(self, owner: PartitionOwner) -> None:
        """Connect, however long that takes.

        Raises `RefusedLoginError` if the log refuses the login or shows a certificate that isn't trusted,
        `SettingsError` if a file of `log.security` can't be used.
        """
        teach_manners()
        login = options(self._settings, request_seconds=self._limits.connect_deadline)
        await await_login(self._settings, login, self._reach)
        self._inquiry = Inquiry(self._settings, self._reach)
        await self._inquiry.open()
        self._consumer = _new_consumer(self._settings, self._limits)
        await self._start_consumer()
        self._placing = Placing(self._settings, self._consumer, self._inquiry, owner)
        self._assignment = Assignment(
            self._consumer,
            owner,
            self._placing,
            self._reach,
            commit_deadline=self._limits.commit_deadline,
            on_refused=self._on_refused,
        )
        self._reader = Reader(
            self._consumer, self._reach, on_unavailable=self._on_unavailable, on_refused=self._on_refused
        )
        self._keeper = asyncio.create_task(self._keep(), name="kafka-keeper")

    async def survey(self, wanted: Collection[str]) -> Survey:
        """Ask which topics exist and may be read; never creates one. Raises `LogError` if unanswered within 5 s."""
        return await self._asked.survey(wanted)

    async def subscribe(self, topics: frozenset[str]) -> None:
        """Replace the topics read by this replica."""
        async with self._changes:
            if topics == self._topics:
                return
            await self._assignment.end()
            self._topics = topics
            if topics:
                listener = Rebalances(self._assignment, on_begin=self._attention.set, on_failure=self._on_failure)
                self._consumer.subscribe(topics=tuple(topics), listener=listener)
            else:
                self._consumer.unsubscribe()

    async def poll(self, wait: float) -> Mapping[Partition, list[Event]]:
        """Return all records fetched so far; at most 0.1 s later than `wait`, rebalance or not.

        Raises `LogError` if the log refuses the group for a reason that lies in the settings.
        """
        if self._failure is not None:
            raise self._failure
        if self._stopped:
            await asyncio.sleep(wait)
            return {}
        return await self._reader.read(lambda: self._assignment.shares, wait)

    def pause(self, partitions: Collection[Partition]) -> None:
        """Fetch no more from the partitions; those not owned are passed over."""
        self._set_paused(partitions, self._consumer.pause, paused=True)

    def resume(self, partitions: Collection[Partition]) -> None:
        """Fetch again from the partitions; those not owned are passed over."""
        self._set_paused(partitions, self._consumer.resume, paused=False)

    async def commit(self, positions: Mapping[Partition, Position]) -> None:
        """Commit what is owned of the positions, in one request, within `limits.commit_deadline`."""
        await self._assignment.commit(positions)

    async def affirm(self) -> bool:
        """Ask within `limits.commit_deadline`; True without asking if nothing is owned."""
        return await self._assignment.affirm()

    async def lags(self, done: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Ask for the ends of all partitions at once; nothing is returned if the log does not answer within 5 s."""
        heads: dict[TopicPartition, int] = {}
        for partition, position in done.items():
            share = self._assignment.shares.get(partition)
            head = position + 1 if isinstance(position, int) else share.began if share else None
            if head is not None:
                heads[TopicPartition(*partition)] = head
        try:
            ends = await self._asked.offsets(dict.fromkeys(heads, LATEST))
        except LogError:
            return {}
        return {Partition(*at): max(0, end - heads[at]) for at, end in ends.items()}

    async def stop(self) -> None:
        """Leave the group and close, within 10 s; ends a poll that is under way. Commits nothing."""
        if self._stopped:
            return
        self._stopped = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
            self._reader.interrupt()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                if self._consumer is not None:
                    await self._consumer.stop()
                if self._inquiry is not None:
                    await self._inquiry.close()
        except TimeoutError:
            log.warning("log_left_without_answer", hosts=self._settings.hosts)

    @property
    def _asked(self) -> Inquiry:
        assert self._inquiry is not None, "start() comes first"
        return self._inquiry

    async def _start_consumer(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                await self._consumer.start()
            except errors.KafkaError as error:
                self._reach.lost("start", str(error))
            else:
                self._reach.found("start")
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _set_paused(
        self, partitions: Collection[Partition], act: Callable[[TopicPartition], None], *, paused: bool
    ) -> None:
        shares = self._assignment.shares
        for partition in partitions:
            share = shares.get(partition)
            if share is not None and share.is_paused is not paused:
                share.is_paused = paused
                if share.is_placed:
                    act(share.at)

    def _on_failure(self, error: Exception) -> None:
        self._failure = error

    def _on_unavailable(self, share: Share, offset: int) -> None:
        share.unavailable = offset
        self._placing.hold(share)
        self._attention.set()

    def _on_refused(self, topic: str) -> None:
        for share in self._assignment.shares.values():
            if share.at.topic == topic:
                self._placing.hold(share)
        if topic in self._topics and topic not in self._refused:
            self._refused.add(topic)
            log.error("topic_refused", topic=topic)
            self._attention.set()

    async def _keep(self) -> None:
        """Place what is unplaced and drop what is refused, trying again for as long as it takes."""
        pause = FIRST_PAUSE
        try:
            while True:
                await self._attention.wait()
                self._attention.clear()
                if self._refused:
                    refused = frozenset(self._refused)
                    await self.subscribe(self._topics - refused)
                    self._refused -= refused
                if await self._is_all_placed():
                    pause = FIRST_PAUSE
                else:
                    self._attention.set()
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
        except Exception as error:  # noqa: BLE001  # the pump gets it from `poll`
            self._on_failure(error)

    async def _is_all_placed(self) -> bool:
        """Place what can be placed now."""
        shares = self._assignment.shares
        fresh = [share for share in shares.values() if share.began is None]
        astray = [share for share in shares.values() if share.unavailable is not None]
        try:
            starts = await self._placing.starts(fresh) if fresh else {}
            bounds = await self._placing.bounds(astray) if astray else {}
        except LogError:
            return False
        if self._assignment.shares is not shares:
            return True  # that epoch has ended; the next one asks for attention itself
        for share in fresh:
            if share.at in starts:
                self._placing.place(share, starts[share.at])
        for share in astray:
            if share.at in bounds:
                self._placing.replace(share, *bounds[share.at])
        return len(starts) == len(fresh) and len(bounds) == len(astray)


def _new_consumer(settings: LogSettings, limits: Limits) -> Any:
    rebalance_seconds = settings.session_timeout + limits.drain_deadline + 2 * limits.commit_deadline
    share = min(max(settings.fetch_bytes // _SHARES_PER_ANSWER, _LEAST_SHARE), _MOST_SHARE)
    return AIOKafkaConsumer(
        **options(settings, request_seconds=rebalance_seconds + limits.connect_deadline),
        group_id=settings.group,
        group_instance_id=settings.group_instance_id,
        partition_assignment_strategy=(RoundRobinPartitionAssignor,),
        session_timeout_ms=round(settings.session_timeout * 1000),
        heartbeat_interval_ms=round(settings.session_timeout * 1000 / _HEARTBEATS_PER_SESSION),
        rebalance_timeout_ms=round(rebalance_seconds * 1000),
        isolation_level=settings.isolation_level,
        enable_auto_commit=False,
        auto_offset_reset="none",
        fetch_max_wait_ms=round(settings.fetch_wait * 1000),
        fetch_max_bytes=settings.fetch_bytes,
        max_partition_fetch_bytes=share,
    )
