"""What one member of a group takes off the log in memory, and whether that still is the log it was."""

import asyncio
from collections.abc import Iterable, Mapping

import structlog

from proxy.bridge.event_log import Beginning, PartitionOwner
from proxy.model import Event, Partition
from proxy.settings import LogSettings
from proxy.simulation.memory_cluster import MemoryCluster, Track
from proxy.simulation.memory_share import Share

_say = structlog.get_logger("tidegate.memory_log")

_LOOK_SECONDS = 1.0
"""Between two looks at the ids of the topics that are read."""


class Reading:
    """Of the member `name`."""

    owner: PartitionOwner

    def __init__(self, cluster: MemoryCluster, settings: LogSettings, name: str) -> None:
        self._cluster = cluster
        self._settings = settings
        self._name = name
        self._looked_at = 0.0
        self.stirred = asyncio.Event()
        """Set when there may be something to fetch."""
        self.fresh: dict[Partition, None] = {}
        """Partitions that may have something not fetched yet; the cluster adds to it."""

    def stir(self, partitions: Iterable[Partition]) -> None:
        """Have the partitions looked at: they may have something."""
        self.fresh.update(dict.fromkeys(partitions))
        self.stirred.set()

    def rewind(self, partition: Partition, share: Share, count: int) -> bool:
        """Hand the last `count` records of the partition out once more; return whether there are any."""
        track = self._cluster.tracks.get(partition)
        if track is None or not share.rewind(track, count):
            return False
        self.stir([partition])
        return True

    def fetch(self, shares: Mapping[Partition, Share]) -> dict[Partition, list[Event]]:
        """Take what there is off the log, some of it at a time."""
        taken: dict[Partition, list[Event]] = {}
        if not self._cluster.answers(self._name):
            return taken
        for partition in list(self.fresh):
            share, track = shares.get(partition), self._cluster.tracks.get(partition)
            if share is None or share.is_paused:
                del self.fresh[partition]  # to own or to resume it makes it fresh again
                continue
            if track is None or partition.topic in self._cluster.refused:
                continue
            self._find_back(partition, share, track)
            events = share.read(track, self._cluster.chance.randint(1, self._cluster.fetch_events), self._settings)
            if events:
                taken[partition] = events
            if share.next == track.end:
                del self.fresh[partition]
        return taken

    def _find_back(self, partition: Partition, share: Share, track: Track) -> None:
        """Go on at the first offset there is if the next one is not."""
        if share.is_astray(track) and not self._begin_anew(partition, share, track):
            lost = share.skip(track)
            _say.error("log_truncated", partition=str(partition), lost=lost)
            self.owner.on_truncated(partition, lost, track.first)

    def _begin_anew(self, partition: Partition, share: Share, track: Track) -> bool:
        """Begin a topic that has taken the name of the one that was read; return whether it has."""
        if not share.begin_anew(track):
            return False
        _say.error("log_restarted", partition=str(partition))
        share.is_paused = partition in self.owner.on_assigned([partition])
        self.owner.on_begun(partition, Beginning(track.topic_id, track.first, None, track.end))
        self.stir([partition])
        return True

    def look(self, shares: Mapping[Partition, Share]) -> None:
        """See whether topics that are read were made anew; without that, an offset within the bounds tells nothing."""
        now = asyncio.get_running_loop().time()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            for partition, share in shares.items():
                if (track := self._cluster.tracks.get(partition)) is not None:
                    self._begin_anew(partition, share, track)
