"""`EventLog` in memory: one member of a consumer group of a `MemoryCluster`.

It joins, sends heartbeats and fetches. All that concerns offsets is `positions`, the same that reads Kafka.
"""

import asyncio
from collections.abc import Collection, Mapping

from proxy.bridge.event_log import Extent, PartitionOwner, Standing, Survey
from proxy.bridge.move import Move
from proxy.errors import AssignmentLostError
from proxy.model import Event, Partition, Position, Retention
from proxy.positions import Positions
from proxy.positions.port import EARLIEST, Membership
from proxy.settings import Limits, LogSettings
from proxy.simulation.memory_cluster import MemoryCluster, offset_of
from proxy.simulation.memory_fetches import MemoryFetches
from proxy.simulation.memory_group import Member
from proxy.simulation.memory_port import MemoryMember, MemoryOffsets

_HEARTBEATS_PER_SESSION = 6


class MemoryLog:
    """See `EventLog` for what each method promises; `name` tells the members of a group apart."""

    def __init__(self, cluster: MemoryCluster, settings: LogSettings, limits: Limits, *, name: str) -> None:
        self._cluster = cluster
        self._settings = settings
        self._limits = limits
        self._name = name
        self._group = cluster.group(settings.group)
        self._topics: frozenset[str] = frozenset()
        self.generation = -1
        """The last one that this member is a part of."""
        self._fetches = MemoryFetches(cluster, name, settings.fetch_bytes)
        self._offsets = MemoryOffsets(cluster, name)
        self._rejoin = asyncio.Event()
        self._changes = asyncio.Lock()
        self.positions: Positions
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = False

    async def start(self, owner: PartitionOwner) -> None:
        """Wait until the log answers."""
        member = MemoryMember(self._cluster, self._settings.group, self._name, self._limits.commit_deadline)
        self.positions = Positions(self._settings, self._fetches, self._offsets, member, owner)
        await self._cluster.round_trip(self._name)
        self._tasks = [
            asyncio.create_task(self._coordinate(), name=f"memory-log-{self._name}"),
            asyncio.create_task(self.positions.keep(), name=f"memory-keeper-{self._name}"),
        ]

    async def survey(self, wanted: Collection[str]) -> Survey:
        """Tell of the topics as they are."""
        await self._offsets.ask()
        topics = {partition.topic for partition in self._cluster.tracks}
        missing = frozenset(set(wanted) - topics)
        self.positions.note_missing(missing)
        return Survey(
            readable=frozenset(topics - self._cluster.refused),
            missing=missing,
            refused=frozenset(set(wanted) & topics & self._cluster.refused),
        )

    async def subscribe(self, topics: frozenset[str]) -> None:
        """End the epoch and join again with other topics."""
        async with self._changes:
            if topics == self._topics:
                return
            await self.positions.end()
            self._topics = topics
            self._rejoin.set()

    async def poll(self, wait: float) -> Mapping[Partition, list[Event]]:
        """Return between one and `MemoryCluster.fetch_events` events of each partition that has some."""
        self._raise_failure()
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(wait):
                while not self._stopped:
                    if taken := self._fetches.fetch(self.positions):
                        return taken
                    self._fetches.stirred.clear()
                    await self._fetches.stirred.wait()
        except TimeoutError:
            pass
        return {}

    def pause(self, partitions: Collection[Partition]) -> None:
        """Fetch no more from the partitions."""
        self.positions.pause(partitions)

    def resume(self, partitions: Collection[Partition]) -> None:
        """Fetch again from the partitions."""
        self.positions.resume(partitions)

    async def commit(self, positions: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Commit what is owned of the positions."""
        return await self.positions.commit(positions)

    def move(self, wanted: Mapping[Partition, Move]) -> Collection[Partition]:
        """Replace which cursors are to be moved."""
        return self.positions.move(wanted)

    def renew(self, topics: Collection[str]) -> None:
        """Begin what is owned of the topics anew."""
        self.positions.renew(topics)

    def place(self, position: Position) -> int:
        """Return the offset for which a position stands."""
        return offset_of(position)

    def member(self) -> str:
        """Return the name it joined under."""
        return self.positions.member

    async def affirm(self) -> bool:
        """Ask the group whether it still knows this member. See `EventLog.affirm`."""
        return await self.positions.affirm()

    async def lags(self, done: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Count from what is done, or from where the epoch began."""
        return await self.positions.lags(done)

    def doubts_topics(self) -> bool:
        """Return whether the group left some of the last commit out."""
        return self.positions.is_left_out

    def outside(self) -> str | None:
        """Return None: it is one replica's."""
        return None

    def standing(self) -> Mapping[Partition, Standing]:
        """Return none: what keeps a partition from being read here keeps all, and polls say it."""
        return {}

    async def progress(self) -> Mapping[Partition, int]:
        """Return what the group has committed, but for what this member owns or has not yet committed last."""
        return await self.positions.progress()

    async def extents(self, topics: Collection[str]) -> Mapping[Partition, Extent]:
        """Return what the group has committed and where the partitions end."""
        return await self.positions.extents(topics)

    async def retention(self, topics: Collection[str]) -> Mapping[str, Retention | None]:
        """Return what the cluster is told of them; topics it is told nothing of are kept without end."""
        if self._cluster.retentions:  # else no chance is drawn: a run is as it was before anybody asked
            await self._offsets.ask()
        return {topic: self._cluster.retentions.get(topic, Retention(None, None, None)) for topic in topics}

    async def firsts(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """Return where the partitions begin."""
        return await self._offsets.offsets(dict.fromkeys(partitions, EARLIEST))

    async def stop(self) -> None:
        """Leave the group if the log answers."""
        if self._stopped:
            return
        await self._end()
        if self._cluster.answers(self._name):
            self._group.leave(self._name)

    def rewind(self, partition: Partition, count: int) -> bool:
        """Hand the last `count` records of the partition out once more; return whether there are any."""
        share = self.positions.shares.get(partition)
        return share is not None and self._fetches.rewind(share, count)

    async def sever(self) -> None:
        """End as a killed process does: the group learns of it when the session expires."""
        self._cluster.cut_off(self._name)
        await self._end()

    async def _end(self) -> None:
        self._stopped = True
        self._fetches.stirred.set()
        if self._tasks:
            self.positions.drop()
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    def _raise_failure(self) -> None:
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()

    async def _coordinate(self) -> None:
        """Join, send heartbeats, join again when the group or a new subscription asks for it."""
        interval = self._settings.session_timeout / _HEARTBEATS_PER_SESSION
        while True:
            if self._rejoin.is_set():
                self._rejoin.clear()
                await self.positions.end()
                await self._cluster.round_trip(self._name)
                if self._topics:
                    await self._join()
                else:
                    self._group.leave(self._name)
            await _event_or_timeout(self._rejoin, interval)
            if not self._topics:
                continue
            await self._cluster.round_trip(self._name)
            try:
                if self._group.heartbeat(self._name, self.generation):
                    self._rejoin.set()
            except AssignmentLostError:
                self._rejoin.set()

    async def _join(self) -> None:
        limits, session = self._limits, self._settings.session_timeout
        member = Member(self._name, self._topics, session, self._fetches.stirred, self._fetches.fresh)
        joined = self._group.join(member, session + limits.drain_deadline + 2 * limits.commit_deadline)
        seat = await joined
        if seat is None or self._rejoin.is_set():
            self._rejoin.set()  # left out, or subscribed anew meanwhile
            return
        self.generation = seat.generation
        self._fetches.begin(seat.partitions)
        self.positions.begin(seat.partitions, Membership(seat.generation, self._name))


async def _event_or_timeout(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
