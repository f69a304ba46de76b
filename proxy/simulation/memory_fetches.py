"""What one member of a group takes off the log in memory, as the client of a log does: `positions.port.Fetches`."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from proxy.model import Event, Partition, Position
from proxy.positions import Positions
from proxy.positions.share import Share
from proxy.simulation.memory_cluster import MemoryCluster, offset_of


@dataclass(slots=True)
class _Place:
    """Where the next fetch of a partition begins; not what was handed out, as it passes over gaps."""

    offset: int = 0
    is_paused: bool = False


class MemoryFetches:
    """Of the member `name`, in answers of `fetch_bytes` at most."""

    def __init__(self, cluster: MemoryCluster, name: str, fetch_bytes: int) -> None:
        self._cluster = cluster
        self._name = name
        self._fetch_bytes = fetch_bytes
        self._places: dict[Partition, _Place] = {}
        self.stirred = asyncio.Event()
        """Set when there may be something to fetch."""
        self.fresh: dict[Partition, None] = {}
        """Partitions that may have something not fetched yet; the cluster adds to it."""

    def begin(self, partitions: Collection[Partition]) -> None:
        """Fetch of these and no others from now on."""
        self._places = {partition: _Place() for partition in partitions}

    def seek(self, partition: Partition, offset: int) -> None:
        """See `Fetches`."""
        self._places[partition].offset = offset
        self._stir([partition])

    def pause(self, partition: Partition) -> None:
        """See `Fetches`."""
        self._places[partition].is_paused = True

    def resume(self, partition: Partition) -> None:
        """See `Fetches`."""
        self._places[partition].is_paused = False
        self._stir([partition])

    def leader_epoch(self, _: Partition) -> None:
        """See `Fetches`; this log has no leaders."""

    def believe(self, _: Partition, __: int | None, ___: int) -> None:
        """See `Fetches`."""

    def trust(self, _: Partition) -> None:
        """See `Fetches`."""

    def offset_of(self, position: Position) -> int | None:
        """See `Fetches`."""
        return offset_of(position)

    def fetch(self, positions: Positions) -> dict[Partition, list[Event]]:
        """Take what there is of what is owned off the log, some of it at a time.

        `positions` are told of a share whose next offset the log does not have, and of gaps.
        """
        taken: dict[Partition, list[Event]] = {}
        if not self._cluster.answers(self._name):
            return taken
        for partition in list(self.fresh):
            share, place = positions.shares.get(partition), self._places.get(partition)
            track = self._cluster.tracks.get(partition)
            if share is None or place is None or place.is_paused:
                del self.fresh[partition]  # to place or to resume it makes it fresh again
                continue
            if track is None or partition.topic in self._cluster.refused:
                continue
            if not track.first <= place.offset <= track.end:
                positions.go_astray(share, place.offset)
                continue
            events, place.offset = track.since(
                place.offset, self._cluster.chance.randint(1, self._cluster.fetch_events)
            )
            if events and len(events) * events[0].size > self._fetch_bytes:
                events = events[: max(1, self._fetch_bytes // events[0].size)]
                place.offset = offset_of(events[-1].position) + 1
            if events:
                taken[partition] = list(events)
                share.next = offset_of(events[-1].position) + 1
            positions.pass_over(share, place.offset)
            if place.offset == track.end:
                del self.fresh[partition]
        return taken

    def rewind(self, share: Share, count: int) -> bool:
        """Hand the last `count` records of the share out once more; return whether there are any."""
        track = self._cluster.tracks.get(share.partition)
        if track is None or not share.is_placed or share.began is None:
            return False
        before = [offset for offset in track.offsets if share.began <= offset < share.next][-count:]
        if before:
            share.next = before[0]
            self.seek(share.partition, before[0])
        return bool(before)

    def _stir(self, partitions: Iterable[Partition]) -> None:
        self.fresh.update(dict.fromkeys(partitions))
        self.stirred.set()
