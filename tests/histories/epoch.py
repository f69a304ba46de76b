"""One partition in one assignment epoch of one replica, as connections and flow show it: what is out, what has failed.

The rules of order and of duplicates are judged here, at every write.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count

from proxy.model import Order, Outcome, Partition
from tests.histories.facts import Fact, Facts

_moments = count(1)


class State(Enum):
    """Where the publication of one received record stands."""

    OUT = auto()
    FAILED = auto()
    CONFIRMED = auto()
    PARKED = auto()


@dataclass(slots=True)
class _Received:
    """A record that was written at least once in this epoch."""

    state: State
    moment: int
    """When it came into the state, counted."""
    written: int
    """When it was first written."""


@dataclass(slots=True, eq=False)
class Epoch:
    """`number` tells the epochs of one replica and partition apart."""

    replica: str
    partition: Partition
    number: int
    order: Order
    cap: int
    topic_id: str
    """Of the topic that there was when it began."""
    generation: int
    """Of the group, in which the partition was given out."""
    known: str | None = None
    """Of the topic that was read before, if its owner began it anew by itself."""
    offsets: list[int] = field(default_factory=list)
    """Of the records received, in their order."""
    committed: int = 0
    """So many of them the log knows to be done with."""
    rewound: bool = False
    """Records were handed out twice."""
    lettered: dict[int, str] = field(default_factory=dict)
    """Offsets of which the dead letter is confirmed, and its reason."""
    discarded: set[int] = field(default_factory=set)
    """Offsets that a person has let be discarded."""
    told: int = field(default_factory=count().__next__)
    """The order in which replicas were told of epochs."""
    failures: int = 0
    written_at: float = 0.0
    """When anything of it was written last."""
    strayed: int = 0
    """Records received of another topic, one that was made anew under the name."""
    _records: dict[int, _Received] = field(default_factory=dict)
    _out: dict[int, int] = field(default_factory=dict)
    """Records that are out and the moment of their write, in its order."""
    _out_ids: dict[int, int] = field(default_factory=dict)
    _parked: set[int] = field(default_factory=set)
    _letters_refused: int = 0

    @property
    def since(self) -> tuple[int, int]:
        """The order of epochs, of whatever replica: one that was stopped is told late of what is long another's."""
        return self.generation, self.told

    def receive(self, facts: Iterator[Fact]) -> None:
        """Note records handed to the bridge."""
        for fact in facts:
            self.strayed += fact.topic_id != self.topic_id
            if self.offsets and fact.offset <= self.offsets[-1]:
                self.rewound = True
            self.offsets.append(fact.offset)

    def commit(self, offset: int) -> None:
        """Note a commit."""
        if not self.rewound:
            self.committed = max(self.committed, bisect_left(self.offsets, offset))

    def write(self, sequence: int, fact: Fact, facts: Facts, first: int) -> Iterator[str]:
        """Note a write; yield what is wrong with it. `first` is where the log begins now."""
        record = self._records.get(sequence)
        if record is not None and record.state is State.PARKED and sequence in self._parked:
            self._parked.discard(sequence)
            since = max(record.moment, self._letters_refused)
            # Without an order, what went to the lane before the letter was refused may still be written after it.
            passed = any(one.state is State.CONFIRMED and one.written > since for one in self._records.values())
            if passed and self.order is not Order.NONE:
                yield f"{fact} is taken back from the dead letters although its partition has gone on past it"
        elif record is not None and record.state is not State.FAILED:
            yield f"{fact} is written again although it is {record.state.name.lower()}"
        if record is None and not self.rewound and sequence - self.committed >= self.cap:
            yield f"{fact} is written {sequence - self.committed + 1} ahead of the commit, the cap is {self.cap}"
        if self.order is not Order.NONE:
            yield from self._out_of_order(record, fact, facts, first)
        if self.order is Order.STRICT and (self._out or self._parked):
            yield f"{fact} is written while another of its partition is unresolved, and its order is strict"
        moment = next(_moments)
        self._records[sequence] = _Received(State.OUT, moment, moment if record is None else record.written)
        self._out[sequence] = moment
        self._out_ids[fact.id] = self._out_ids.get(fact.id, 0) + 1

    def end(self, sequence: int, fact: Fact, outcome: Outcome) -> str | None:
        """Note an outcome; return what is wrong with it."""
        record = self._records.get(sequence)
        was_out = self._out.pop(sequence, None) is not None
        if was_out:
            self._out_ids[fact.id] -= 1
        elif outcome is not Outcome.UNDELIVERABLE:
            return f"{fact} ends as {outcome.value} although it is not out"
        moment = next(_moments)
        state = State.FAILED
        if outcome is Outcome.CONFIRMED:
            state = State.CONFIRMED
        elif outcome is Outcome.UNDELIVERABLE:
            state = State.PARKED
            self._parked.add(sequence)
        else:
            self.failures += 1
        if record is not None and record.state is State.CONFIRMED:
            return f"{fact} ends as {outcome.value} although it was confirmed"
        self._records[sequence] = _Received(state, moment, moment if record is None else record.written)
        return None

    def refuse_letter(self) -> None:
        """Note that a dead letter was not taken: what is parked may be sent again as it was."""
        self._letters_refused = next(_moments)

    def end_letter(self, sequence: int, reason: str) -> None:
        """Note that a dead letter is confirmed."""
        self._parked.discard(sequence)
        self.lettered[self.offsets[sequence]] = reason

    def discard(self, sequence: int, fact: Fact) -> str | None:
        """Note that it was discarded; return what is wrong with that."""
        record = self._records.get(sequence)
        was_parked = record is not None and record.state is State.PARKED and sequence in self._parked
        self._parked.discard(sequence)  # it was taken back, its letter refused
        if record is not None and record.state is not State.FAILED and not was_parked:
            return f"{fact} is discarded although it is {record.state.name.lower()}"
        self.discarded.add(self.offsets[sequence])
        self._records[sequence] = _Received(State.CONFIRMED, next(_moments), 0)
        return None

    @property
    def out(self) -> int:
        """How many records are out."""
        return len(self._out)

    def _out_of_order(self, record: _Received | None, fact: Fact, facts: Facts, first: int) -> Iterator[str]:
        parked = {self.offsets[sequence] for sequence in self._parked if sequence < len(self.offsets)}
        for other in facts.before(fact):
            if other.offset >= first and not self._out_ids.get(other.id) and other.offset not in parked:
                yield f"{fact} is written while {other} is neither out nor done"
                break
        oldest = next(iter(self._out.values()), None)
        if record is not None and oldest is not None and oldest < record.moment:
            yield f"{fact} is sent again before all that was out with it has its outcome"
