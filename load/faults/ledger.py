"""The checker's books: every event ever sent, and what became of it. Pure, knows neither brokers nor clocks.

One ledger a partition. Events are numbered as they were sent, through every life of their topic. Each is, at the end,

* arrived: it came out of its queue;
* dead: it came out of the queue of dead letters;
* gone: the log dropped it (truncated, or deleted with its topic) before the group had committed it;
* unacknowledged: Kafka never said that it has it;
* or lost, if it is nothing of all that.

Queues are deleted when they are empty only, so that next to nothing is confirmed and then deleted with its queue.
"""

from array import array
from collections.abc import Iterable
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

KEPT, ARRIVED, DEAD, GONE, EXCUSED = 1, 2, 4, 8, 16
UNKNOWN = -1


class Counts(NamedTuple):
    """What a partition, or all, came to so far."""

    sent: int = 0
    kept: int = 0
    """By Kafka."""
    arrived: int = 0
    """Different events."""
    dead: int = 0
    gone: int = 0
    duplicates: int = 0
    """Arrivals or dead letters of an event that had come before."""
    late: int = 0
    """First arrivals after a later event of their partition."""

    def plus(self, other: "Counts", sign: int = 1) -> "Counts":
        """Return both added up, or the difference."""
        return Counts(*(mine + sign * its for mine, its in zip(self, other, strict=True)))


def sum_of(every: Iterable[Counts]) -> Counts:
    """Return all counts added up."""
    return reduce(Counts.plus, every, Counts())


class Ledger:
    """One partition. Numbers and offsets start at 0."""

    def __init__(self) -> None:
        self._states = bytearray()
        self._offsets = array("q")
        self._births = [0]
        """First number of each of the topic's lives."""
        self._highest = -1
        self._settled = 0
        """Everything below is accounted for, or was never acknowledged."""
        self._counts = Counts()
        self.reach = 0
        """How far an event lay behind the highest that had come, in places, at worst; to be set back at will."""

    @property
    def sent(self) -> int:
        """Return how many events were sent: the next one's number."""
        return len(self._states)

    @property
    def end(self) -> int:
        """Return the offset after the last event that Kafka has said to have, in this life of the topic."""
        return max(self._offsets[self._births[-1] :], default=UNKNOWN) + 1

    @property
    def counts(self) -> Counts:
        """Return the counts so far."""
        return self._counts

    def send(self, count: int) -> int:
        """Take the next `count` numbers; return the first."""
        first = self.sent
        self._states.extend(bytes(count))
        self._offsets.extend([UNKNOWN] * count)
        self._add(sent=count)
        return first

    def keep(self, first: int, count: int, offset: int) -> None:
        """Note that Kafka has them, from this offset on."""
        for step in range(count):
            self._states[first + step] |= KEPT
            self._offsets[first + step] = offset + step
        self._settled = min(self._settled, first)
        self._add(kept=count)

    def arrive(self, number: int, *, in_turn: bool = True) -> bool:
        """Note an arrival; return whether it is the first. Raises IndexError for a number never sent.

        One that the broker had given out before, to a connection that broke, comes out of turn, and is never late.
        """
        first = self._come(number, ARRIVED)
        if first:
            self._add(arrived=1)
            if number < self._highest and in_turn:
                self._add(late=1)
                self.reach = max(self.reach, self._highest - number)
            self._highest = max(self._highest, number)
        return first

    def bury(self, number: int) -> bool:
        """Note a dead letter; return whether the event comes for the first time. Raises IndexError likewise."""
        first = self._come(number, DEAD)
        if first:
            self._add(dead=1)
        return first

    def repeat(self) -> None:
        """Count a duplicate."""
        self._add(duplicates=1)

    def drop(self, committed: int, before: int | None = None) -> int:
        """Excuse what has not come and lies in the log from `committed` on, up to `before` (None: all there is).

        Returns how many. What was not acknowledged in this life of the topic needs no excuse.
        """
        dropped = 0
        for number in range(self._births[-1], self.sent):
            offset = self._offsets[number]
            in_reach = offset >= committed and (before is None or offset < before)
            if offset != UNKNOWN and in_reach and self._states[number] == KEPT:
                self._states[number] |= GONE
                dropped += 1
        self._add(gone=dropped)
        return dropped

    def excuse(self, numbers: Iterable[int]) -> None:
        """Excuse these, which are nowhere for another reason that is no fault of the bridge's."""
        for number in numbers:
            self._states[number] |= GONE | EXCUSED
            self._add(gone=1)

    def begin_anew(self) -> None:
        """Note that the topic was deleted: offsets start at 0 again, everything not yet come will not be excused."""
        self._births.append(self.sent)

    def missing(self, before: int) -> list[int]:
        """Return the numbers below `before` that Kafka has and that are nowhere."""
        found = [number for number in range(self._settled, before) if self._states[number] == KEPT]
        self._settled = found[0] if found else max(self._settled, before)
        return found

    def is_done(self, number: int) -> bool:
        """Tell whether the event has arrived or is a dead letter."""
        return bool(self._states[number] & (ARRIVED | DEAD))

    def offset(self, number: int) -> int:
        """Return its offset in the log, -1 if it was never acknowledged."""
        return self._offsets[number]

    def lives(self) -> list[range]:
        """Return the numbers of each of the topic's lives, the present one last."""
        return [range(first, end) for first, end in pairwise([*self._births, self.sent])]

    def state(self, number: int) -> int:
        """Return what is known of an event: `KEPT` and so on, added up."""
        return self._states[number]

    def _come(self, number: int, how: int) -> bool:
        state = self._states[number]
        if state & GONE:
            self._add(gone=-1)
        self._states[number] = (state | how) & ~GONE
        return not state & (ARRIVED | DEAD)

    def _add(self, **more: int) -> None:
        self._counts = self._counts.plus(Counts(**more))
