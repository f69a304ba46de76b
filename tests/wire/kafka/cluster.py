"""The scripted cluster: who leads what, what each broker believes of it, and the batches that partitions hold.

What is produced, dropped, compacted or made anew is `MemoryCluster`'s; here it gets leaders and bytes.
"""

import asyncio
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf
from random import Random
from typing import NamedTuple

from proxy.model import Event, Partition
from proxy.simulation.memory_cluster import MemoryCluster, Track
from tests.wire.kafka.groups import ScriptedGroup
from tests.wire.kafka.mischief import Mischief
from tests.wire.kafka.records import TRANSACTIONAL, Batch, batch, marker

NOBODY = -1
"""The leader of a partition that has none."""
_ID_BYTES = 16
_MOST_REPLICAS = 3


@dataclass(slots=True)
class Place:
    """Where a partition lies."""

    leader: int
    replicas: tuple[int, ...]
    epoch: int = 0
    """How often it was given a leader."""


class Reign(NamedTuple):
    """What one leader writes."""

    epoch: int
    first: int
    """Its first offset."""


class Shelf:
    """A track's records in batches, laid when they are first asked for; holes are filled as real logs are."""

    def __init__(self, track: Track, chance: Random, most: int, reigns: list[Reign]) -> None:
        self.track = track
        self._reigns = reigns
        self.batches: list[Batch] = []
        self._chance = chance
        self._most = most
        self._end = 0
        self._producers = count(1)

    def since(self, offset: int) -> list[Batch]:
        """Return the batches from the one on that holds the offset, or the first behind it."""
        self._lay()
        batches = self.batches
        at = len(batches)
        while at and batches[at - 1].last >= offset:
            at -= 1
        return batches[at:]

    def _lay(self) -> None:
        track = self.track
        if self._end == track.end:
            return
        events = [(at, one) for at, one in zip(track.offsets, track.events, strict=True) if at >= self._end]
        while events:
            base = events[0][0]
            self._fill(base)
            taken = 1
            most = self._chance.randint(1, self._most)
            epoch, until = _reign(self._reigns, base)
            while taken < min(most, len(events)) and events[taken][0] == base + taken < until:
                taken += 1
            together, events = events[:taken], events[taken:]
            last = together[-1][0]
            is_compressed = self._chance.random() < _COMPRESSED
            self.batches.append(batch(base, last, together, epoch=epoch, compressed=is_compressed))
            self._end = last + 1
        self._fill(track.end, must=True)

    def _fill(self, end: int, *, must: bool = False) -> None:
        """Lay what uses up the offsets before `end`; within a log it may be nothing at all, not at its end."""
        while self._end < end:
            epoch, until = _reign(self._reigns, self._end)
            self._fill_of(epoch, int(min(end, until)), must=must)

    def _fill_of(self, epoch: int, end: int, *, must: bool) -> None:
        """Lay what one leader has written."""
        holes = end - self._end
        kind = self._chance.randrange(3 if must else 4)
        if kind == 0 and holes > 1:
            producer = next(self._producers)
            unseen = Event(0, 0, None, b"never seen", (), 0)
            records = [(at, unseen) for at in range(self._end, end - 1)]
            self.batches.append(
                batch(self._end, end - 2, records, epoch=epoch, attributes=TRANSACTIONAL, producer=producer)
            )
            self.batches.append(marker(end - 1, producer, epoch=epoch, commits=False))
        elif kind == 1:
            self.batches += [
                marker(at, next(self._producers), epoch=epoch, commits=True) for at in range(self._end, end)
            ]
        elif kind == 2 or must:
            self.batches.append(batch(self._end, end - 1, [], epoch=epoch))
        self._end = end


_COMPRESSED = 0.2


def _reign(reigns: Sequence[Reign], offset: int) -> tuple[int, float]:
    """Return the epoch that writes at an offset, and where it ends."""
    at = bisect_right(reigns, offset, key=lambda reign: reign.first) - 1
    return reigns[at].epoch, reigns[at + 1].first if at + 1 < len(reigns) else inf


class ScriptedCluster(MemoryCluster):
    """See `MemoryCluster` for the hands on the log; further ones are here."""

    def __init__(
        self, chance: Random, addresses: Sequence[tuple[str, int]], *, batch_events: int = 20, fetch_events: int = 500
    ) -> None:
        super().__init__(chance, fetch_events=fetch_events)
        self.addresses = dict(enumerate(addresses, 1))
        """Of each broker by its number."""
        self.advertised = dict(self.addresses)
        """What brokers say their addresses are."""
        self.controller = 1
        self.beliefs: dict[int, dict[Partition, Place]] = {}
        """What a broker tells instead of the truth about leaders."""
        self.mischief = Mischief(chance)
        self.knows_ids = True
        """It is new enough to tell topic ids (Kafka 2.8)."""
        self.fetches_by_id = True
        """... and to know topics by them in a fetch (Kafka 3.1)."""
        self.keeps_sessions = True
        """A fetch may name what has changed only; else there is no room for sessions, and each names everything."""
        self.fetched_by_id: bool | None = None
        """Whether the last fetch named topics by their ids."""
        self.named = 0
        """Partitions that fetches have named."""
        self.logins: dict[str, str] = {}
        """Passwords by user."""
        self.tokens: dict[str, float] = {}
        """Tokens that are taken, and until when by the loop's clock. Without them and passwords nobody need log in."""
        self.session_seconds = inf
        """After so long a connection must have logged in again, or its next request ends it."""
        self.sessions: dict[object, str] = {}
        """The secret that each connection has shown last."""
        self.wrongs: list[str] = []
        """What clients did that ended their connection: asked in the midst of a login, or after their session."""
        self._batch_events = batch_events
        self._topic_ids = (_printed(number) for number in count(1))
        self._places: dict[Partition, Place] = {}
        self._shelves: dict[Partition, Shelf] = {}
        self._reigns: dict[Partition, list[Reign]] = {}
        self._scripted: dict[str, ScriptedGroup] = {}
        self._waiting: dict[asyncio.Future[None], Collection[Partition]] = {}
        self._turn = 0

    @property
    def mechanisms(self) -> list[str]:
        """How one logs in."""
        return ["PLAIN"] * bool(self.logins) + ["OAUTHBEARER"] * bool(self.tokens)

    @property
    def is_secured(self) -> bool:
        """Whether one has to log in."""
        return bool(self.logins or self.tokens)

    # -- what brokers ask ---------------------------------------------------------------------------------------------

    def place(self, partition: Partition) -> Place:
        """Return where a partition lies."""
        place = self._places.get(partition)
        if place is None:
            numbers = sorted(self.addresses)
            self._turn += 1
            turned = [numbers[(self._turn + at) % len(numbers)] for at in range(len(numbers))]
            place = self._places[partition] = Place(turned[0], tuple(turned[:_MOST_REPLICAS]))
        return place

    def believed(self, node: int, partition: Partition) -> Place:
        """Return where a broker says that a partition lies."""
        return self.beliefs.get(node, {}).get(partition) or self.place(partition)

    def batches(self, partition: Partition, offset: int) -> list[Batch]:
        """Return the batches from an offset on."""
        track = self.tracks[partition]
        shelf = self._shelves.get(partition)
        if shelf is None or shelf.track is not track:
            shelf = self._shelves[partition] = Shelf(track, self.chance, self._batch_events, self._reigns_of(partition))
        return shelf.since(offset)

    async def news(self, partitions: Collection[Partition], seconds: float) -> None:
        """Wait until one of the partitions may have something new, `seconds` at most."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = partitions
        try:
            await asyncio.wait([future], timeout=seconds)
        finally:
            del self._waiting[future]

    def group(self, name: str) -> ScriptedGroup:  # type: ignore[override]  # what hands and judges use of it is there
        """Return the consumer group, new if it is unknown."""
        if name not in self._scripted:
            numbers = sorted(self.addresses)
            self._scripted[name] = ScriptedGroup(self, numbers[len(name) % len(numbers)])
        return self._scripted[name]

    # -- hands --------------------------------------------------------------------------------------------------------

    def move_leader(self, partition: Partition, leader: int) -> None:
        """Give a partition another leader, or `NOBODY`."""
        place = self.place(partition)
        self._places[partition] = Place(leader, place.replicas, place.epoch + 1)
        self._reigns_of(partition).append(Reign(place.epoch + 1, self.tracks[partition].end))
        self._wake([partition])

    def cut(self, partition: Partition, kept: int) -> None:
        """Lose what stands from an offset on, as a leader does that had not synced it; another epoch begins there."""
        track, place = self.tracks[partition], self.place(partition)
        left = bisect_left(track.offsets, kept)
        del track.offsets[left:], track.events[left:]
        track.end = kept
        reigns = self._reigns_of(partition)
        reigns[:] = [reign for reign in reigns if reign.first < kept or not reign.epoch]
        self._shelves.pop(partition, None)
        self.move_leader(partition, place.leader)

    def leader_end(self, partition: Partition, epoch: int) -> tuple[int, int]:
        """Return where what was written up to an epoch ends, and the last epoch there; -1 for what can't be known."""
        reigns = self._reigns_of(partition)
        if epoch > reigns[-1].epoch:
            return -1, -1
        at = bisect_right(reigns, epoch, key=lambda reign: reign.epoch) - 1
        return reigns[at].epoch, reigns[at + 1].first if at + 1 < len(reigns) else self.tracks[partition].end

    def _reigns_of(self, partition: Partition) -> list[Reign]:
        return self._reigns.setdefault(partition, [Reign(0, 0)])

    def freeze_belief(self, node: int) -> None:
        """Let a broker go on telling what is true now, whatever comes."""
        self.beliefs[node] = {partition: self.place(partition) for partition in self.tracks}

    def compact(self, topic: str, number: int, share: float) -> list[Event]:
        """See `MemoryCluster`."""
        self._shelves.pop(Partition(topic, number), None)
        return super().compact(topic, number, share)

    def come_up(self) -> None:
        """See `MemoryCluster`."""
        super().come_up()
        for group in self._scripted.values():
            group.renew_sessions()

    def close(self) -> None:
        """Arm no timer any more."""
        for group in self._scripted.values():
            group.end()

    # -- within -------------------------------------------------------------------------------------------------------

    def _clear(self, topic: str) -> None:
        gone = self.partitions({topic})
        super()._clear(topic)
        for partition in gone:
            self._places.pop(partition, None)
            self._shelves.pop(partition, None)
            self._reigns.pop(partition, None)
            for group in self._scripted.values():
                group.committed.pop(partition, None)
        self._wake(gone)

    def _stir(self, *fresh: Partition) -> None:
        self._changed.set()
        self._wake(fresh)

    def _wake(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            for future, awaited in self._waiting.items():
                if partition in awaited and not future.done():
                    future.set_result(None)


def _printed(number: int) -> str:
    return printed_id(number.to_bytes(_ID_BYTES))


def printed_id(told: bytes) -> str:
    """Return a topic's id as Kafka's tools print it."""
    return urlsafe_b64encode(told).rstrip(b"=").decode()


def id_bytes(printed: str) -> bytes:
    """Return a topic's id as it goes over the wire."""
    return urlsafe_b64decode(printed + "==")
