"""What is asked for: how large the fleet is, for how long it runs, and what goes wrong in it."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

START_MS = 1_763_700_000_000
"""The instant 0 of every fleet; all instants of the model are milliseconds from it."""
ROUTE_MS = 1_000
"""Between two records of a route or class."""
TYPE_MS = 10_000
"""Between two records of an event type, and two of what was committed of it. A multiple of `ROUTE_MS`."""
TICK_MS = 50
"""Between two judgements of a route under `class_budget`."""
FILE_MS = 600_000
"""What one file of a process holds, by time; also what one task of a worker makes. A multiple of `TYPE_MS`."""
LEAST_MINUTES = 5.0
"""What goes wrong needs room, one thing beside the other."""
LEAST_ACTIVE = 16
"""... and each of what happens to a partition has one of its own."""
MOST_RATE = 100.0
"""Events a second of a partition; what comes of it in a second must fit into a pool of latencies."""


class FleetError(Exception):
    """The fleet can't be made as asked for; the message says what to change."""


class Fault(StrEnum):
    """What may go wrong, by name."""

    CRASH = "crash"
    RESTART = "restart"
    ZOMBIE = "zombie"
    UNFINISHED = "unfinished"
    LOSSY = "lossy"
    GAPS = "gaps"
    LETTERS = "letters"
    TRUNCATED = "truncated"
    RECREATED = "recreated"
    SKIP = "skip"
    REWIND = "rewind"
    DISCARD = "discard"
    REDRIVE = "redrive"
    ADVICE = "advice"
    CONGESTION = "congestion"
    SAW = "saw"
    BLIND = "blind"
    NACKS = "nacks"
    CLOCK = "clock"
    INCIDENTS = "incidents"
    LATE = "late"
    TWICE = "twice"
    SHUFFLED = "shuffled"
    OLD = "old"
    LINES = "lines"
    KINDS = "kinds"
    SKEW = "skew"
    STUCK = "stuck"
    SCALED = "scaled"


WORDS = {
    Fault.CRASH: "a replica is killed with -9 and comes back: ranges unrecorded, an open file with a torn line",
    Fault.RESTART: "a replica is restarted in an orderly way: partitions move there and back",
    Fault.ZOMBIE: "a replica stands still, loses its partitions and writes what it still believes to own",
    Fault.UNFINISHED: "a replica still runs when the log is taken: an open file, no `stop`; a type is behind",
    Fault.LOSSY: "a replica loses all its records for twelve seconds and says how many (`drops`)",
    Fault.GAPS: "positions without events: markers of transactions, a stretch that was compacted",
    Fault.LETTERS: "dead letters of every reason, once more than 50 ranges of them in one record",
    Fault.TRUNCATED: "retention drops records unread: while they are being read, and between two owners",
    Fault.RECREATED: "a topic is deleted and made anew: another topic_id, positions from 0",
    Fault.SKIP: "somebody moves a cursor forward",
    Fault.REWIND: "somebody moves a cursor back; what was a dead letter is delivered the second time",
    Fault.DISCARD: "a type is in mode `discard` for a while",
    Fault.REDRIVE: "somebody sends dead letters again (makes dead letters, too)",
    Fault.ADVICE: "`scaling`, `retention` and `shadow` records",
    Fault.CONGESTION: "episodes of congestion on every route, of every cause, with backlogs of the lower classes",
    Fault.SAW: "a minute of steady control at the threshold: congested and not, some thirty times",
    Fault.BLIND: "a route is not seen for a while",
    Fault.NACKS: "nacks, unknown outcomes, resends, events that overtake",
    Fault.CLOCK: "a producer's clock is ahead: negative ages; a type without timestamps",
    Fault.INCIDENTS: "refused dead letters, a type that stops",
    Fault.LATE: "files that lie in a folder of their own, to be read later",
    Fault.TWICE: "files that lie in two folders",
    Fault.SHUFFLED: "lines out of order",
    Fault.OLD: "a replica of version 1, with event types of its own and no ledger",
    Fault.LINES: "lines that are no records",
    Fault.KINDS: "records of kinds that nobody knows",
    Fault.SKEW: "replicas whose clocks are off by up to 1.5 s; known",
    Fault.STUCK: "an event type gets nothing done for three quarters of a minute",
    Fault.SCALED: "consumers are added to a route, and each brings less than those before",
}
_LONE = {Fault.CRASH, Fault.ZOMBIE, Fault.RESTART}
"""Faults that need another replica."""


def faults(names: Iterable[str]) -> frozenset[Fault]:
    """Return the faults by name; `all` and `none` are mixtures. Raises `FleetError` for a name that is none."""
    found: set[Fault] = set()
    for name in names:
        if name == "all":
            found |= set(Fault)
        elif name in list(Fault):
            found.add(Fault(name))
        elif name != "none":
            raise FleetError(f"--faults {name}: there is none, all, {', '.join(Fault)}")
    return frozenset(found)


@dataclass(frozen=True)
class Plan:
    """A fleet as it is asked for. The same plan makes the same bytes."""

    replicas: int = 3
    types: int = 40
    active: int = 30
    """Of the types, those that have traffic; the others are assigned and silent."""
    minutes: float = 10.0
    seed: int = 1
    rate: float = 1.0
    """Events a second of a partition, on average."""
    faults: frozenset[Fault] = frozenset()
    events: bool = False
    """Whether every event is told of by its producer and its consumer."""

    def __post_init__(self) -> None:
        """Raise `FleetError` for a fleet that can't be."""
        if self.replicas < 1 or not 1 <= self.active <= self.types:
            raise FleetError("--replicas and --active are at least 1, and --active at most --types")
        if not (self.minutes > 0 and self.rate > 0):
            raise FleetError("--minutes and --rate are above 0")
        if self.rate > MOST_RATE:
            raise FleetError(f"--rate {self.rate:g}: {MOST_RATE:g} at most")
        if self.faults and (self.minutes < LEAST_MINUTES or self.active < LEAST_ACTIVE):
            raise FleetError(f"faults need room: --minutes {LEAST_MINUTES:g} --active {LEAST_ACTIVE}, or more of both")
        if self.replicas == 1 and (lone := self.faults & _LONE):
            raise FleetError(f"--faults {', '.join(sorted(lone))}: needs --replicas 2 or more")

    @property
    def end_ms(self) -> int:
        """Return the last instant, a whole number of type intervals from the first."""
        return max(1, round(self.minutes * 60_000 / TYPE_MS)) * TYPE_MS

    def chance(self, *names: object) -> random.Random:
        """Return chance that depends on the seed and the names only, in whatever process."""
        return random.Random("/".join(map(str, (self.seed, *names))))

    def has(self, fault: Fault) -> bool:
        """Return whether this goes wrong."""
        return fault in self.faults
