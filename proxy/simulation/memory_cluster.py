"""A durable log in memory, shared by the members of its consumer groups: topics, committed offsets, generations.

It behaves as Kafka does where the bridge could tell the difference: eager rebalances, fencing by generation, sessions
that expire, gaps, truncation, outages. Every request of every member passes `MemoryCluster.round_trip`, the seam for
delays and faults. All time is the running loop's, all chance comes from the `random.Random` it is given.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from proxy.errors import AssignmentLostError
from proxy.model import Event, Partition


@dataclass(slots=True)
class Track:
    """One partition: its events, and where it begins and ends. Offsets may have gaps."""

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
        self.refused: set[str] = set()
        """Topics that may not be read."""
        self._latency = latency
        self._groups: dict[str, Group] = {}
        self._cut_off: set[str] = set()
        self.is_down = False
        """Set by `go_down`, cleared by `come_up`."""
        self._changed = asyncio.Event()

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        """Create a topic, or add partitions to it until it has so many."""
        for number in range(partitions):
            self.tracks.setdefault(Partition(topic, number), Track())
        self._rebalance(topic)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic and what was committed for it."""
        for partition in self.partitions({topic}):
            del self.tracks[partition]
            for group in self._groups.values():
                group.committed.pop(partition, None)
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

    def truncate(self, topic: str, number: int, before: int) -> None:
        """Drop what stands before an offset, as retention does."""
        track = self.tracks[Partition(topic, number)]
        at = bisect_left(track.offsets, before)
        del track.offsets[:at], track.events[:at]
        track.first = max(track.first, before)
        self._stir(Partition(topic, number))

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

    def group(self, name: str) -> "Group":
        """Return the consumer group, new if it is unknown."""
        return self._groups.setdefault(name, Group(self))

    def partitions(self, topics: Collection[str]) -> list[Partition]:
        """Return all partitions of the topics, sorted."""
        return sorted(partition for partition in self.tracks if partition.topic in topics)

    async def round_trip(self, member: str) -> None:
        """Let a request of the member pass to the log and back; waits for as long as it isn't answered."""
        await asyncio.sleep(self.chance.uniform(*self._latency))
        while not self.answers(member):
            self._changed.clear()
            await self._changed.wait()

    def answers(self, member: str) -> bool:
        """Tell whether the member is answered now."""
        return not self.is_down and member not in self._cut_off

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


@dataclass(frozen=True, slots=True)
class Seat:
    """What a member gets in one generation."""

    generation: int
    partitions: tuple[Partition, ...]


@dataclass(slots=True)
class Member:
    """One member as its group sees it."""

    name: str
    topics: frozenset[str]
    session_timeout: float
    stirred: asyncio.Event
    """Set when there may be something to fetch."""
    fresh: dict[Partition, None] = field(default_factory=dict)
    """Where that may be; a fetch looks nowhere else."""
    joining: "asyncio.Future[Seat | None] | None" = None
    expiry: asyncio.TimerHandle | None = None


class Group:
    """A consumer group: who is in it, whose turn it is, what it has committed."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._is_rebalancing = False
        self._laggards: asyncio.TimerHandle | None = None
        self.members: dict[str, Member] = {}
        self.generation = 0
        self.committed: dict[Partition, int] = {}

    def join(self, member: Member, rebalance_timeout: float) -> "asyncio.Future[Seat | None]":
        """Take part in the next generation; None if the member leaves before.

        Members that have not joined after `rebalance_timeout` seconds are left out.
        """
        loop = asyncio.get_running_loop()
        known = self.members.get(member.name)
        if known is not None and known.expiry is not None:
            known.expiry.cancel()
        self.members[member.name] = member
        joining: asyncio.Future[Seat | None] = loop.create_future()
        member.joining = joining
        self._is_rebalancing = True
        if self._laggards is None:
            self._laggards = loop.call_later(rebalance_timeout, self._drop_laggards)
        self._complete()
        return joining

    def heartbeat(self, name: str, generation: int) -> bool:
        """Renew the member's session; True if it is to join again. Raises `AssignmentLostError` if it is no member."""
        self.check(name, generation)
        self._renew(self.members[name])
        return self._is_rebalancing

    def commit(self, name: str, generation: int, offsets: Mapping[Partition, int]) -> None:
        """Take the offsets. Raises `AssignmentLostError` if the member is not of the current generation."""
        self.check(name, generation)
        self.committed |= offsets

    def leave(self, name: str) -> None:
        """Remove the member, whether it asks for that or its session has expired."""
        member = self.members.pop(name, None)
        if member is None:
            return
        if member.expiry is not None:
            member.expiry.cancel()
        if member.joining is not None and not member.joining.done():
            member.joining.set_result(None)
        self._is_rebalancing = bool(self.members)
        self._complete()

    def renew_sessions(self) -> None:
        """Begin the session of every member anew."""
        for member in self.members.values():
            if member.joining is None:
                self._renew(member)

    def on_topic_changed(self, topic: str) -> None:
        """Have the members join again if one of them reads the topic."""
        if any(topic in member.topics for member in self.members.values()):
            self._is_rebalancing = True

    def check(self, name: str, generation: int) -> None:
        """Raise `AssignmentLostError` if the member is not of the current generation."""
        if name not in self.members or generation != self.generation:
            raise AssignmentLostError("the group has fenced this replica")

    def _renew(self, member: Member) -> None:
        if member.expiry is not None:
            member.expiry.cancel()
        loop = asyncio.get_running_loop()
        member.expiry = loop.call_later(member.session_timeout, self._expire, member.name)

    def _expire(self, name: str) -> None:
        """End a session, unless the log is down: who keeps the sessions is down with it."""
        if not self._cluster.is_down:
            self.leave(name)

    def _drop_laggards(self) -> None:
        self._laggards = None
        for name in [name for name, member in self.members.items() if member.joining is None]:
            self.leave(name)

    def _complete(self) -> None:
        """Begin the next generation once every member has joined: partitions go round the members in turn."""
        joined = {name: member.joining for name, member in self.members.items() if member.joining is not None}
        if not self._is_rebalancing or len(joined) < len(self.members):
            return
        if self._laggards is not None:
            self._laggards.cancel()
            self._laggards = None
        self.generation += 1
        self._is_rebalancing = False
        shares: dict[str, list[Partition]] = {name: [] for name in joined}
        turn = 0
        names = sorted(joined)
        for partition in self._cluster.partitions(frozenset().union(*(self.members[name].topics for name in names))):
            while partition.topic not in self.members[names[turn % len(names)]].topics:
                turn += 1
            shares[names[turn % len(names)]].append(partition)
            turn += 1
        for name, future in joined.items():
            member = self.members[name]
            member.joining = None
            self._renew(member)
            if not future.done():
                future.set_result(Seat(self.generation, tuple(shares[name])))
