"""A durable log in memory, shared by the members of its consumer groups: topics, committed offsets, generations.

It behaves as Kafka does where the bridge could tell the difference: eager rebalances, fencing by generation, sessions
that expire, gaps, truncation, outages. Every request of every member passes `MemoryCluster.round_trip`, the seam for
delays and faults. All time is the running loop's, all chance comes from the `random.Random` it is given.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

from proxy.errors import LogError
from proxy.model import Event, Partition, Retention
from proxy.positions.identity import Committed
from proxy.positions.port import Membership
from proxy.simulation.memory_group import Group


@dataclass(slots=True)
class Track:
    """One partition: its events, and where it begins and ends. Offsets may have gaps."""

    topic_id: str
    """No other topic ever has it, not even one of the same name."""
    first: int = 0
    end: int = 0
    events: list[Event] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)

    def since(self, offset: int, count: int) -> tuple[Sequence[Event], int]:
        """Return at most `count` events from the offset on, and the offset that follows them."""
        at = bisect_left(self.offsets, offset)
        taken = self.events[at : at + count]
        return taken, self.offsets[at + len(taken) - 1] + 1 if taken else max(offset, self.end)

    def at_time(self, timestamp_ms: int) -> int:
        """Return the offset of the first event at or after the time, else the end."""
        later = (
            offset
            for offset, event in zip(self.offsets, self.events, strict=True)
            if event.timestamp_ms is not None and event.timestamp_ms >= timestamp_ms
        )
        return next(later, self.end)


def position(offset: int) -> str:
    """Return the position that stands for an offset: no number, so that nobody reckons with it."""
    return f"#{offset}"


def offset_of(position: object) -> int:
    """Return the offset for which a position of this log stands."""
    assert isinstance(position, str)
    return int(position.removeprefix("#"))


class MemoryCluster:
    """The log. Methods without `async` are the hands of the test or the scenario."""

    def __init__(self, chance: Random, *, latency: tuple[float, float] = (0.0, 0.002), fetch_events: int = 500) -> None:
        self.chance = chance
        self.fetch_events = fetch_events
        """A fetch brings between one and so many events of a partition."""
        self.tracks: dict[Partition, Track] = {}
        self.retentions: dict[str, Retention | None] = {}
        """What is told of topics; None: it is refused. `retain` makes it true."""
        self.refused: set[str] = set()
        """Topics that may not be read."""
        self._latency = latency
        self.on_commit: Callable[[str, Mapping[Partition, Committed]], None] = lambda *_: None
        """Called with every commit that is taken, before it counts."""
        self.on_asked: Callable[[Mapping[Partition, Committed]], None] = lambda _: None
        """Called with every answer to a member that asks how far the group has come."""
        self.refuses_commits = 0.0
        """Share of commits that are refused."""
        self.leaves_out = 0.0
        """Share of the partitions of a commit that the coordinator says it doesn't know, for want of fresh metadata."""
        self.loses_answers = 0.0
        """Share of commits that are taken without an answer."""
        self.slowness = 0.0
        """Seconds that every way to the log and back takes longer."""
        self._topic_ids = (f"id-{number}" for number in count())
        self._groups: dict[str, Group] = {}
        self._cut_off: set[str] = set()
        self.is_down = False
        """Set by `go_down`, cleared by `come_up`."""
        self._changed = asyncio.Event()

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        """Create a topic, or add partitions to it until it has so many."""
        self._lay(topic, partitions)
        self._rebalance(topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic and what was committed for it."""
        self._clear(topic)
        self._rebalance(topic)

    def recreate_topic(self, topic: str, partitions: int) -> None:
        """Delete a topic and make it anew before any member looks: a group rebalances only if their number differs."""
        before = len(self.partitions({topic}))
        self._clear(topic)
        self._lay(topic, partitions)
        if before != partitions:
            self._rebalance(topic)

    def produce(
        self,
        topic: str,
        number: int = 0,
        *,
        value: bytes | None,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> str:
        """Append one event and return its position."""
        track = self.tracks[Partition(topic, number)]
        size = (
            len(key or b"") + len(value or b"") + sum(len(name.encode()) + len(text or b"") for name, text in headers)
        )
        event = Event(position(track.end), timestamp_ms, key, value, tuple(headers), size)
        track.events.append(event)
        track.offsets.append(track.end)
        track.end += 1
        self._stir(Partition(topic, number))
        return position(track.end - 1)

    def produce_alike(self, partition: Partition, count: int, *, value: bytes, timestamp_ms: int) -> None:
        """Append `count` events that differ in nothing but their place."""
        track = self.tracks[partition]
        offsets = range(track.end, track.end + count)
        size = len(value)
        track.events.extend([Event(position(at), timestamp_ms, None, value, (), size) for at in offsets])
        track.offsets.extend(offsets)
        track.end += count
        self._stir(partition)

    def leave_gap(self, topic: str, number: int, offsets: int) -> None:
        """Skip so many offsets, as compaction and transactions do."""
        self.tracks[Partition(topic, number)].end += offsets
        self._stir(Partition(topic, number))

    def truncate(self, topic: str, number: int, before: int) -> None:
        """Drop what stands before an offset, as retention does."""
        track = self.tracks[Partition(topic, number)]
        at = bisect_left(track.offsets, before)
        del track.offsets[:at], track.events[:at]
        track.first = max(track.first, before)
        self._stir(Partition(topic, number))

    def retain(self, now_ms: int) -> None:
        """Drop the segments that have come to the end of their topic's time; each holds a tenth of it."""
        for at, track in self.tracks.items():
            told = self.retentions.get(at.topic)
            if told is not None and told.seconds is not None:
                span = max(1, round(told.seconds * 100))
                kept_from = (now_ms - round(told.seconds * 1000)) // span * span
                if track.events and (track.events[0].timestamp_ms or 0) < kept_from:
                    self.truncate(at.topic, at.number, track.at_time(kept_from))

    def compact(self, topic: str, number: int, share: float) -> list[Event]:
        """Drop about so many of a partition's events, wherever they stand; return them."""
        track = self.tracks[Partition(topic, number)]
        kept = [self.chance.random() >= share for _ in track.events]
        dropped = [event for event, stays in zip(track.events, kept, strict=True) if not stays]
        track.events[:] = [event for event, stays in zip(track.events, kept, strict=True) if stays]
        track.offsets[:] = [offset for offset, stays in zip(track.offsets, kept, strict=True) if stays]
        return dropped

    def go_down(self) -> None:
        """Answer nobody until `come_up`."""
        self.is_down = True

    def come_up(self) -> None:
        """Answer again; sessions begin anew, as with a restarted coordinator."""
        self.is_down = False
        for group in self._groups.values():
            group.renew_sessions()
        self._stir()

    def cut_off(self, member: str) -> None:
        """Answer this member no more: its network is gone, or it was killed."""
        self._cut_off.add(member)

    def reconnect(self, member: str) -> None:
        """Answer this member again."""
        self._cut_off.discard(member)
        self._stir()

    def exists(self, partition: Partition) -> bool:
        """Tell whether there is such a partition."""
        return partition in self.tracks

    def group(self, name: str) -> Group:
        """Return the consumer group, new if it is unknown."""
        return self._groups.setdefault(name, Group(self))

    def lag(self, group: str) -> int:
        """Return how many offsets a group has before it in all partitions."""
        committed = self.group(group).committed
        return sum(track.end - (committed[at].offset if at in committed else 0) for at, track in self.tracks.items())

    def partitions(self, topics: Collection[str]) -> list[Partition]:
        """Return all partitions of the topics, sorted."""
        return sorted(partition for partition in self.tracks if partition.topic in topics)

    async def round_trip(self, member: str) -> None:
        """Let a request of the member pass to the log and back; waits for as long as it isn't answered."""
        await asyncio.sleep(self.chance.uniform(*self._latency) + self.slowness)
        while not self.answers(member):
            self._changed.clear()
            await self._changed.wait()

    def answers(self, member: str) -> bool:
        """Tell whether the member is answered now."""
        return not self.is_down and member not in self._cut_off

    async def commit(
        self, group: Group, membership: Membership, offsets: Mapping[Partition, Committed]
    ) -> frozenset[Partition]:
        """Let a commit pass and be answered; it may be refused, or its answer may never come.

        Returns what was taken: what is gone, or not known to the coordinator now, is left out. If nothing is left, it
        is answered without a look at who asks, as Kafka does.
        Raises `AssignmentLostError` if the group has fenced the member, `LogError` if the log refuses.
        """
        generation, member = membership
        await self.round_trip(member)
        if self.chance.random() < self.refuses_commits:
            raise LogError("the log refused a commit")
        known = {at: said for at, said in offsets.items() if self.exists(at) and not self._leaves_out()}
        if known:
            group.commit(member, generation, known)
        if self.chance.random() < self.loses_answers:
            await asyncio.get_running_loop().create_future()
        await self.answer(member)
        return frozenset(known)

    def _leaves_out(self) -> bool:
        return self.leaves_out > 0 and self.chance.random() < self.leaves_out

    async def answer(self, member: str) -> None:
        """Let an answer pass from the log to the member; one that is lost does not come at all."""
        await asyncio.sleep(self.chance.uniform(*self._latency) + self.slowness)
        if not self.answers(member):
            await asyncio.get_running_loop().create_future()

    def _lay(self, topic: str, partitions: int) -> None:
        known = self.tracks.get(Partition(topic, 0))
        topic_id = known.topic_id if known is not None else next(self._topic_ids)
        for number in range(partitions):
            self.tracks.setdefault(Partition(topic, number), Track(topic_id))

    def _clear(self, topic: str) -> None:
        for partition in self.partitions({topic}):
            del self.tracks[partition]
            for group in self._groups.values():
                group.committed.pop(partition, None)

    def _rebalance(self, topic: str) -> None:
        for group in self._groups.values():
            group.on_topic_changed(topic)
        self._stir()

    def _stir(self, *fresh: Partition) -> None:
        """Wake who waits; the partitions have something that they may not have fetched yet."""
        self._changed.set()
        for group in self._groups.values():
            for member in group.members.values():
                member.fresh.update(dict.fromkeys(fresh))
                member.stirred.set()
