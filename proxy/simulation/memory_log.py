"""`EventLog` in memory: one member of a consumer group of a `MemoryCluster`."""

import asyncio
from collections.abc import Collection, Iterable, Mapping

import structlog

from proxy.bridge.event_log import Beginning, PartitionOwner, Survey
from proxy.errors import AssignmentLostError, LogError
from proxy.model import Event, Partition, Position
from proxy.settings import Limits, LogSettings
from proxy.simulation.memory_cluster import MemoryCluster, offset_of
from proxy.simulation.memory_group import Committed, Member
from proxy.simulation.memory_reading import Reading
from proxy.simulation.memory_share import Share, start_of

_say = structlog.get_logger("tidegate.memory_log")

_HEARTBEATS_PER_SESSION = 6
_ANSWER_SECONDS = 5.0
_PROGRESS_SECONDS = 1.0


class MemoryLog:
    """See `EventLog` for what each method promises; `name` tells the members of a group apart."""

    def __init__(self, cluster: MemoryCluster, settings: LogSettings, limits: Limits, *, name: str) -> None:
        self._cluster = cluster
        self._settings = settings
        self._limits = limits
        self._name = name
        self._group = cluster.group(settings.group)
        self._topics: frozenset[str] = frozenset()
        self._shares: dict[Partition, Share] = {}
        self._ending: dict[Partition, Share] = {}
        self.generation = -1
        """The last one that this member is a part of."""
        self._reading = Reading(cluster, settings, name)
        self._rejoin = asyncio.Event()
        self._commits = asyncio.Lock()
        self._endings = asyncio.Lock()
        self._changes = asyncio.Lock()
        self._begun: set[str] = set()
        """Topics that the group has begun to read, as far as this member knows: also those that are gone by now."""
        self._owner: PartitionOwner
        self._coordination: asyncio.Task[None] | None = None
        self._stopped = False

    async def start(self, owner: PartitionOwner) -> None:
        """Wait until the log answers."""
        self._owner = self._reading.owner = owner
        await self._cluster.round_trip(self._name)
        self._coordination = asyncio.create_task(self._coordinate(), name=f"memory-log-{self._name}")

    async def survey(self, wanted: Collection[str]) -> Survey:
        """Tell of the topics as they are."""
        await self._ask()
        topics = {partition.topic for partition in self._cluster.tracks}
        return Survey(
            readable=frozenset(topics - self._cluster.refused),
            missing=frozenset(set(wanted) - topics),
            refused=frozenset(set(wanted) & topics & self._cluster.refused),
        )

    async def subscribe(self, topics: frozenset[str]) -> None:
        """End the epoch and join again with other topics."""
        async with self._changes:
            if topics == self._topics:
                return
            await self._end_epoch()
            self._topics = topics
            self._rejoin.set()

    async def poll(self, wait: float) -> Mapping[Partition, list[Event]]:
        """Return between one and `MemoryCluster.fetch_events` events of each partition that has some."""
        self._raise_failure()
        try:
            async with asyncio.timeout(wait):
                while not (taken := self._reading.fetch(self._shares)) and not self._stopped:
                    self._reading.stirred.clear()
                    await self._reading.stirred.wait()
        except TimeoutError:
            return {}
        return taken

    def pause(self, partitions: Collection[Partition]) -> None:
        """Fetch no more from the partitions."""
        for share in self._owned(partitions):
            share.is_paused = True

    def resume(self, partitions: Collection[Partition]) -> None:
        """Fetch again from the partitions."""
        for share in self._owned(partitions):
            share.is_paused = False
        self._reading.stir(partitions)

    async def commit(self, positions: Mapping[Partition, Position]) -> Mapping[Partition, int]:
        """Commit what is owned of the positions."""
        shares = self._shares
        self._finish(shares, positions)
        return await self._commit(shares, positions)

    def place(self, position: Position) -> int:
        """Return the offset for which a position stands."""
        return offset_of(position)

    async def affirm(self) -> bool:
        """Ask the group whether it still knows this member; True at once if nothing is owned. See `EventLog.affirm`."""
        if not self._shares:
            return True
        try:
            async with asyncio.timeout(self._limits.commit_deadline):
                await self._cluster.round_trip(self._name)
                self._group.heartbeat(self._name, self.generation)
                await self._cluster.answer(self._name)
        except TimeoutError:
            return False
        return True

    async def lags(self, done: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Count from what is done, or from where the epoch began."""
        try:
            await self._ask()
        except LogError:
            return {}
        lags = {}
        for partition, position in done.items():
            track, share = self._cluster.tracks.get(partition), self._shares.get(partition)
            head = offset_of(position) + 1 if position is not None else share.began if share else None
            if track is not None and head is not None:
                lags[partition] = max(0, track.end - head)
        return lags

    async def progress(self) -> Mapping[Partition, int]:
        """Return what the group has committed, but for what this member owns or has not yet committed last."""
        ours = {*self._shares, *self._ending}
        await self._ask(_PROGRESS_SECONDS)
        ours |= {*self._shares, *self._ending}
        return {partition: told.offset for partition, told in self._group.committed.items() if partition not in ours}

    async def stop(self) -> None:
        """Leave the group if the log answers."""
        if self._stopped:
            return
        await self._end_coordination()
        if self._cluster.answers(self._name):
            self._group.leave(self._name)

    def rewind(self, partition: Partition, count: int) -> bool:
        """Hand the last `count` records of the partition out once more; return whether there are any."""
        share = self._shares.get(partition)
        return share is not None and self._reading.rewind(partition, share, count)

    async def sever(self) -> None:
        """End as a killed process does: the group learns of it when the session expires."""
        self._cluster.cut_off(self._name)
        await self._end_coordination()

    async def _end_coordination(self) -> None:
        self._stopped = True
        self._shares = {}
        self._reading.stirred.set()
        if self._coordination is not None:
            self._coordination.cancel()
            await asyncio.wait({self._coordination})

    def _raise_failure(self) -> None:
        if self._coordination is not None and self._coordination.done() and not self._coordination.cancelled():
            self._coordination.result()

    def _owned(self, partitions: Iterable[Partition]) -> list[Share]:
        return [share for partition in partitions if (share := self._shares.get(partition)) is not None]

    async def _ask(self, seconds: float = _ANSWER_SECONDS) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._cluster.round_trip(self._name)
        except TimeoutError as error:
            raise LogError(f"the log did not answer within {seconds:g} s") from error

    async def _coordinate(self) -> None:
        """Join, send heartbeats, join again when the group or a new subscription asks for it."""
        interval = self._settings.session_timeout / _HEARTBEATS_PER_SESSION
        while True:
            if self._rejoin.is_set():
                self._rejoin.clear()
                await self._end_epoch()
                await self._cluster.round_trip(self._name)
                if self._topics:
                    await self._join()
                else:
                    self._group.leave(self._name)
            await _event_or_timeout(self._rejoin, interval)
            if not self._topics:
                continue
            await self._cluster.round_trip(self._name)
            self._reading.look(self._shares)
            try:
                if self._group.heartbeat(self._name, self.generation):
                    self._rejoin.set()
            except AssignmentLostError:
                self._rejoin.set()

    async def _join(self) -> None:
        limits, session = self._limits, self._settings.session_timeout
        member = Member(self._name, self._topics, session, self._reading.stirred, self._reading.fresh)
        joined = self._group.join(member, session + limits.drain_deadline + 2 * limits.commit_deadline)
        seat = await joined
        if seat is None or self._rejoin.is_set():
            self._rejoin.set()  # left out, or subscribed anew meanwhile
            return
        self.generation = seat.generation
        paused = set(self._owner.on_assigned(seat.partitions))
        tracks = self._cluster.tracks
        committed = self._group.committed
        self._begun |= {at.topic for at in committed}
        starts = {
            at: start_of(at, tracks[at], committed, self._begun, self._settings)
            for at in seat.partitions
            if at in tracks
        }
        self._begun |= {at.topic for at in starts}
        for at, began in starts.items():
            known = committed.get(at)
            of_this = known is not None and known.topic_id == tracks[at].topic_id
            told = Beginning(tracks[at].topic_id, began, known.offset if known and of_this else None, tracks[at].end)
            self._owner.on_begun(at, told)
        self._shares = {
            at: Share(at in paused, began, began, began, tracks[at].topic_id) for at, began in starts.items()
        }
        try:
            self._group.commit(self._name, self.generation, _said(self._shares))
        except AssignmentLostError:
            self._rejoin.set()  # the group went on while this member could not listen
        self._reading.stir(seat.partitions)

    async def _end_epoch(self) -> None:
        shares, self._shares = self._shares, {}
        if shares:
            self._ending = shares
        async with self._endings:
            if not shares:
                return
            taken: Mapping[Partition, int] = {}
            try:
                positions = await self._owner.on_revoked(list(shares))
                self._finish(shares, positions)
                try:
                    taken = await self._commit(shares, positions, is_final=True)
                except LogError as error:
                    _say.warning("final_commit_failed", why=str(error), effect="duplicates")
                self._owner.on_ended(taken)
            finally:
                self._ending = {}

    def _finish(self, shares: Mapping[Partition, Share], positions: Mapping[Partition, Position]) -> None:
        for partition, position in positions.items():
            if (share := shares.get(partition)) is not None:
                share.finish(offset_of(position))

    async def _commit(
        self, shares: Mapping[Partition, Share], partitions: Iterable[Partition], *, is_final: bool = False
    ) -> dict[Partition, int]:
        """Commit what is done of the shares and return what the group took.

        After their epoch has ended only the final commit goes through.
        """
        deadline = self._limits.commit_deadline
        try:
            async with asyncio.timeout(deadline), self._commits:
                offsets = _said({partition: shares[partition] for partition in partitions if partition in shares})
                if not offsets or not (is_final or self._shares is shares):
                    return {}
                taken = await self._cluster.commit(self._group, self._name, self.generation, offsets)
                return {at: offsets[at].offset for at in taken}
        except TimeoutError as error:
            raise LogError(f"the log did not answer a commit within {deadline:g} s") from error


def _said(shares: Mapping[Partition, Share]) -> dict[Partition, Committed]:
    return {partition: share.committed for partition, share in shares.items()}


async def _event_or_timeout(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
