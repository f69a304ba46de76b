"""What arrived, judged against what was promised: pure, knows neither brokers nor clocks.

Every bulk event carries its partition and its number there, so that the checker needs nothing that the bridge says.
Arrivals are judged in the order in which the queue took them, one partition at a time:

* lost: produced, never arrived;
* duplicates: arrivals of a number that had arrived before;
* late: *first* arrivals of a number after a higher one of the partition. A repetition is no inversion: at least once
  means that a fault may play a stretch again; what counts is that nothing was overtaken when it first came;
* reach: how far a late one lay behind the highest that had arrived, in places of its partition.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from proxy.model import Order


@dataclass(frozen=True)
class Tally:
    """What happened to one partition, or to several added up."""

    produced: int = 0
    arrived: int = 0
    """Different events."""
    duplicates: int = 0
    late: int = 0
    reach: int = 0
    replays: int = 0
    """How often the arrivals went back to a number seen before, however long the stretch played again."""
    foreign: int = 0
    """Arrivals that nobody produced."""

    @property
    def lost(self) -> int:
        """Return the events that never arrived."""
        return self.produced - self.arrived

    def __add__(self, other: "Tally") -> "Tally":
        """Return both taken together."""
        return Tally(
            produced=self.produced + other.produced,
            arrived=self.arrived + other.arrived,
            duplicates=self.duplicates + other.duplicates,
            late=self.late + other.late,
            reach=max(self.reach, other.reach),
            replays=self.replays + other.replays,
            foreign=self.foreign + other.foreign,
        )


def tally(produced: int, arrivals: Iterable[int]) -> Tally:
    """Count what became of the events 0 to `produced` - 1 of one partition; `arrivals` are numbers as they came."""
    seen = bytearray(produced)
    highest, last = -1, -1
    duplicates = late = reach = replays = foreign = 0
    for number in arrivals:
        if not 0 <= number < produced:
            foreign += 1
            continue
        if seen[number]:
            duplicates += 1
            replays += number <= last
        else:
            seen[number] = 1
            if number < highest:
                late += 1
                reach = max(reach, highest - number)
            else:
                highest = number
        last = number
    return Tally(produced, sum(seen), duplicates, late, reach, replays, foreign)


@dataclass(frozen=True)
class Promise:
    """What holds for one event type, whatever happens."""

    order: Order
    in_flight: int
    """Events of the route on their way at once: only among those may `order: partition` be broken, by a nack."""
    duplicates: int
    """Bound for one partition: events sent ahead of the committed position, times the faults that may repeat them."""
    overtaken: int
    """What the bridges say they delivered after a later event of its partition; they may not have overlooked any."""


def broken(partitions: Iterable[Tally], promise: Promise) -> list[str]:
    """Return, in words, every promise that does not hold for the partitions of one event type; empty if all do."""
    partitions = list(partitions)
    whole = sum(partitions, Tally())
    found = []
    if whole.lost:
        found.append(f"{whole.lost} of {whole.produced} events never arrived")
    if whole.foreign:
        found.append(f"{whole.foreign} arrivals were never produced")
    worst = max((partition.duplicates for partition in partitions), default=0)
    if worst > promise.duplicates:
        found.append(f"{worst} duplicates in one partition, bound {promise.duplicates}")
    if promise.order is Order.STRICT and whole.late:
        found.append(f"{whole.late} events arrived for the first time after a later one, order: strict allows none")
    if promise.order is Order.PARTITION:
        if whole.reach >= promise.in_flight:
            found.append(f"an event was overtaken by {whole.reach} places, more than the {promise.in_flight} in flight")
        if whole.late > promise.overtaken:
            found.append(f"{whole.late} events were overtaken, the bridges reported {promise.overtaken}")
    return found


@dataclass(frozen=True)
class Whereabouts:
    """Where the events of one class are after a run that was stopped before the log was empty."""

    produced: int = 0
    delivered: int = 0
    """Different events that a consumer has finished."""
    duplicates: int = 0
    in_log: int = 0
    """Not delivered and not committed: the log still has them and the next start sends them."""
    lost: int = 0
    """Committed and not delivered: nobody will ever send them again."""

    def __add__(self, other: "Whereabouts") -> "Whereabouts":
        """Return both taken together."""
        return Whereabouts(
            self.produced + other.produced,
            self.delivered + other.delivered,
            self.duplicates + other.duplicates,
            self.in_log + other.in_log,
            self.lost + other.lost,
        )


def whereabouts(end: int, committed: int, consumed: Iterable[int]) -> Whereabouts:
    """Return where offsets 0 to `end` - 1 of a partition are, from the group's position and the offsets consumed."""
    times = bytearray(end)
    total = 0
    for offset in consumed:
        times[offset] = 1
        total += 1
    delivered = sum(times)
    lost = committed - sum(times[:committed])
    return Whereabouts(end, delivered, total - delivered, end - delivered - lost, lost)
