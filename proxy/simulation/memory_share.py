"""One partition of the log in memory as one member reads it in one epoch."""

from collections.abc import Mapping
from dataclasses import dataclass

from proxy.model import Event, Partition
from proxy.settings import LogSettings
from proxy.simulation.memory_cluster import Track, offset_of


@dataclass(slots=True, eq=False)
class Share:
    """Where the member stands."""

    is_paused: bool
    began: int
    done: int
    """The next offset to commit."""
    next: int
    """The next offset to hand out."""

    def read(self, track: Track, count: int, settings: LogSettings) -> list[Event]:
        """Hand out the next `count` events at most, within the bytes of one fetch; none while paused."""
        if self.is_paused:
            return []
        events, self.next = track.since(self.next, count)
        if events and len(events) * events[0].size > settings.fetch_bytes:
            events = events[: max(1, settings.fetch_bytes // events[0].size)]
            self.next = offset_of(events[-1].position) + 1
        return list(events)

    def skip(self, track: Track) -> int:
        """Pass over what the log has dropped; return how many offsets that are."""
        lost = max(0, track.first - self.next)
        self.next += lost
        return lost

    def begin_anew(self, track: Track) -> bool:
        """Go to the first offset if the next one is beyond the end, so of another log; return whether it is."""
        if self.next <= track.end:
            return False
        self.began = self.done = self.next = track.first
        return True

    def rewind(self, track: Track, count: int) -> bool:
        """Stand before the last `count` events handed out; return whether there are any."""
        before = [offset for offset in track.offsets if self.began <= offset < self.next][-count:]
        if before:
            self.next = before[0]
        return bool(before)


def start_of(partition: Partition, track: Track, committed: Mapping[Partition, int], settings: LogSettings) -> int:
    """Return the committed offset, else as the settings say, but the first of a partition newly added."""
    if partition in committed:
        return committed[partition]
    if any(known.topic == partition.topic for known in committed):
        return track.first
    match settings.start:
        case "earliest":
            return track.first
        case "latest":
            return track.end
        case "timestamp":
            assert settings.start_timestamp is not None
            return track.at_time(round(settings.start_timestamp.timestamp() * 1000))
