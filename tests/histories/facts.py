"""The truth about every event ever produced: what the log, the queues and the dead-letter queue made of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from proxy.model import Event, Partition
from proxy.simulation.memory_cluster import offset_of


@dataclass(slots=True, eq=False)
class Fact:
    """One event."""

    id: int
    partition: Partition
    offset: int
    topic_id: str
    timestamp_ms: int
    size: int
    event: Event
    fits: bool
    """It can be delivered."""
    stored: int = 0
    """How often the queue took it."""
    first_stored: int = 0
    """Place of its first arrival in the queue among all arrivals."""
    letters: int = 0
    """How often the dead-letter queue took it."""
    gone: bool = False
    """Compacted, or deleted with its topic, before it was delivered: nobody can be blamed."""
    skipped: bool = False
    """A replica has told that the log dropped it unread."""
    returned: bool = False
    refused: bool = False
    discarded_in: tuple[int, int] | None = None
    """The epoch in which it was discarded, by its `Epoch.since`, until a later one reads it again."""
    passed_over: bool = False
    """A skip that was made has passed over it."""
    stored_before: int = 0
    """How often the queue had taken it when a rewind went back before it: it is to come once more."""
    letters_before: int = 0
    is_dropped: bool = False
    """The log has lost it for a reason of its own, delivered or not."""

    @property
    def is_settled(self) -> bool:
        """Whether the log may forget it."""
        is_out = self.stored > self.stored_before or self.letters > self.letters_before
        return is_out or self.gone or self.passed_over or self.discarded_in is not None

    def __str__(self) -> str:
        """Return its place."""
        return f"{self.partition}@{self.offset}"


@dataclass(slots=True)
class Track:
    """The events of one partition, in order of their offsets."""

    facts: list[Fact] = field(default_factory=list)
    settled: int = 0
    """All before this place are settled, or were dropped by the log."""


class Facts:
    """Every event by its value, which is its number, and by its place."""

    def __init__(self) -> None:
        self.all: list[Fact] = []
        self.tracks: dict[Partition, Track] = {}
        self._arrivals = 0

    def produce(self, partition: Partition, topic_id: str, event: Event, *, fits: bool) -> None:
        """Note an event; its value begins with the number that `number` told."""
        assert event.timestamp_ms is not None
        number = len(self.all)
        fact = Fact(number, partition, offset_of(event.position), topic_id, event.timestamp_ms, event.size, event, fits)
        self.all.append(fact)
        self.tracks.setdefault(partition, Track()).facts.append(fact)

    def of(self, event: Event) -> Fact:
        """Return what is known of an event."""
        return self.all[int((event.value or b"").split(b".", 1)[0])]

    def store(self, fact: Fact) -> None:
        """Note that the queue took it."""
        self._arrivals += 1
        fact.stored += 1
        if fact.stored == 1:
            fact.first_stored = self._arrivals

    def forget_stored(self, fact: Fact, *, is_letter: bool) -> None:
        """Note that the broker has lost a copy that it had not confirmed."""
        if is_letter:
            fact.letters -= 1
        else:
            fact.stored -= 1
        fact.stored_before = min(fact.stored_before, fact.stored)
        fact.letters_before = min(fact.letters_before, fact.letters)
        self._unsettle(fact)

    def read_again(self, fact: Fact, since: tuple[int, int]) -> None:
        """Note that an epoch was handed it: what an earlier one has discarded of it counts no more.

        A replica that was stopped and wakes may read in an epoch that others have long taken over from: that undoes
        nothing.
        """
        if fact.discarded_in is not None and since > fact.discarded_in:
            fact.discarded_in = None
            self._unsettle(fact)

    def come_again(self, fact: Fact) -> None:
        """Note that a rewind has gone back before it."""
        fact.stored_before, fact.letters_before = fact.stored, fact.letters
        fact.passed_over, fact.discarded_in, fact.skipped = False, None, False
        fact.gone = fact.is_dropped
        self._unsettle(fact)

    def _unsettle(self, fact: Fact) -> None:
        track = self.tracks.get(fact.partition)
        if track is not None and fact in track.facts:
            track.settled = min(track.settled, track.facts.index(fact))

    def delete(self, topic: str) -> None:
        """Note that a topic is gone, and all that was in it."""
        for partition, track in self.tracks.items():
            if partition.topic == topic:
                self.forget(track.facts)
                self.tracks[partition] = Track()

    @staticmethod
    def forget(facts: Iterable[Fact]) -> None:
        """Note that the log lost these for a reason of its own; what is done with stays done with."""
        for fact in facts:
            fact.gone = fact.gone or not fact.is_settled
            fact.is_dropped = True

    def unsettled(self, partition: Partition, first: int) -> Fact | None:
        """Return the first event of a partition that may not be committed yet; `first` is where the log begins."""
        track = self.tracks.get(partition)
        if track is None:
            return None
        facts = track.facts
        while track.settled < len(facts) and (facts[track.settled].is_settled or facts[track.settled].offset < first):
            track.settled += 1
        return facts[track.settled] if track.settled < len(facts) else None

    def before(self, fact: Fact) -> Iterable[Fact]:
        """Return the unsettled events that stand before one in its partition."""
        track = self.tracks[fact.partition]
        for at in range(track.settled, len(track.facts)):
            other = track.facts[at]
            if other.offset >= fact.offset or other.topic_id != fact.topic_id:
                return
            if not other.is_settled:
                yield other
