"""How the log in memory answers `positions`: with the delays and the faults of its cluster."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

from proxy.errors import LogError
from proxy.model import Partition
from proxy.positions.identity import Committed
from proxy.positions.port import EARLIEST, LATEST, Membership, Taken
from proxy.simulation.memory_cluster import MemoryCluster, Track

_ANSWER_SECONDS = 5.0
_PROGRESS_SECONDS = 1.0


class MemoryOffsets:
    """`positions.port.Offsets`, asked by the member `name`."""

    def __init__(self, cluster: MemoryCluster, name: str) -> None:
        self._cluster = cluster
        self._name = name

    async def ask(self) -> None:
        """Wait until the log answers. Raises `LogError` after 5 s."""
        async with _within(_ANSWER_SECONDS):
            await self._cluster.round_trip(self._name)

    async def topic_ids(self, names: Collection[str]) -> dict[str, str]:
        """See `Offsets`."""
        await self.ask()
        return {at.topic: track.topic_id for at, track in self._cluster.tracks.items() if at.topic in names}

    async def offsets(self, times: Mapping[Partition, int]) -> dict[Partition, int]:
        """See `Offsets`."""
        await self.ask()
        tracks = self._cluster.tracks
        return {at: _offset(tracks[at], time) for at, time in times.items() if at in tracks}

    async def ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """See `Offsets`."""
        return await self.offsets(dict.fromkeys(partitions, LATEST))

    async def leader_ends(self, _: Mapping[Partition, int]) -> dict[Partition, int | None]:
        """See `Offsets`; nobody asks."""
        return {}


class MemoryMember:
    """`positions.port.Group`, asked by the member `name` within `deadline` seconds each time."""

    def __init__(self, cluster: MemoryCluster, group: str, name: str, deadline: float) -> None:
        self._cluster = cluster
        self._group = cluster.group(group)
        self._name = name
        self._deadline = deadline

    async def committed(self) -> dict[Partition, Committed]:
        """See `Group`."""
        return await self._committed(self._deadline)

    async def progress(self) -> dict[Partition, Committed]:
        """See `Group`."""
        told = await self._committed(_PROGRESS_SECONDS)
        self._cluster.on_asked(told)
        return told

    async def commit(self, membership: Membership, offsets: Mapping[Partition, Committed]) -> Taken:
        """See `Group`."""
        async with _within(self._deadline):
            return Taken(await self._cluster.commit(self._group, membership, offsets))

    async def affirm(self, membership: Membership) -> None:
        """See `Group`."""
        async with _within(self._deadline):
            await self._cluster.round_trip(self._name)
            self._group.heartbeat(membership.member_id, membership.generation)
            await self._cluster.answer(self._name)

    async def _committed(self, seconds: float) -> dict[Partition, Committed]:
        async with _within(seconds):
            await self._cluster.round_trip(self._name)
        return dict(self._group.committed)


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise LogError(f"the log did not answer within {seconds:g} s") from error


def _offset(track: Track, time: int) -> int:
    match time:
        case _ if time == EARLIEST:
            return track.first
        case _ if time == LATEST:
            return track.end
        case _:
            return track.at_time(time)
