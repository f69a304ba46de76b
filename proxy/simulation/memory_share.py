"""One partition of the log in memory as one member reads it in one epoch."""

from collections.abc import Container, Mapping
from dataclasses import dataclass

from proxy.model import Event, Partition
from proxy.settings import LogSettings
from proxy.simulation.memory_cluster import Track, offset_of
from proxy.simulation.memory_group import Committed


@dataclass(slots=True, eq=False)
class Share:
    """Where the member stands."""

    is_paused: bool
    began: int
    done: int
    """The next offset to commit."""
    next: int
    """The next offset to hand out."""
    topic_id: str
    """Of the topic that all these offsets belong to."""
    gap: range = range(0)
    """Offsets dropped unread and told of: done with as soon as everything before them is."""

    @property
    def committed(self) -> Committed:
        """What to commit."""
        return Committed(self.done, self.topic_id)

    def read(self, track: Track, count: int, settings: LogSettings) -> list[Event]:
        """Hand out the next `count` events at most, within the bytes of one fetch; none while paused."""
        if self.is_paused:
            return []
        events, self.next = track.since(self.next, count)
        if events and len(events) * events[0].size > settings.fetch_bytes:
            events = events[: max(1, settings.fetch_bytes // events[0].size)]
            self.next = offset_of(events[-1].position) + 1
        return list(events)

    def is_astray(self, track: Track) -> bool:
        """Tell whether the log does not have the next offset."""
        return not track.first <= self.next <= track.end

    def finish(self, offset: int) -> None:
        """Note that everything up to the offset is done with; one from before this epoch is passed over."""
        if offset >= self.began:
            self.done = max(self.done, offset + 1)  # what is handed out again was done with before
            self._pass_gap()

    def skip(self, track: Track) -> int:
        """Pass over what the log has dropped; return how many offsets that are."""
        lost = max(0, track.first - self.next)
        if lost:
            begin = self.gap.start if self.gap and self.gap.stop == self.next else self.next
            self.gap = range(begin, track.first)
            self._pass_gap()
        self.next += lost
        return lost

    def _pass_gap(self) -> None:
        if self.gap and self.done == self.gap.start:
            self.done = self.gap.stop

    def begin_anew(self, track: Track) -> bool:
        """Go to the first offset if the topic was made anew; return whether it was."""
        if self.topic_id == track.topic_id:
            return False
        self.topic_id = track.topic_id
        self.began = self.done = self.next = track.first
        self.gap = range(0)
        return True

    def rewind(self, track: Track, count: int) -> bool:
        """Stand before the last `count` events handed out; return whether there are any."""
        before = [offset for offset in track.offsets if self.began <= offset < self.next][-count:]
        if before:
            self.next = before[0]
        return bool(before)


def start_of(
    partition: Partition,
    track: Track,
    committed: Mapping[Partition, Committed],
    begun: Container[str],
    settings: LogSettings,
) -> int:
    """Return the offset committed for this topic, else as the settings say.

    It is the first of a topic made anew, and of a partition added to one of which the group has `begun` to read.
    """
    if partition in committed:
        offset, topic_id = committed[partition]
        return offset if topic_id == track.topic_id else track.first
    if partition.topic in begun:
        return track.first
    match settings.start:
        case "earliest":
            return track.first
        case "latest":
            return track.end
        case "timestamp":
            assert settings.start_timestamp is not None
            return track.at_time(round(settings.start_timestamp.timestamp() * 1000))
