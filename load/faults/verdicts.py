"""What a round showed, judged against what is promised. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from load.faults.ledger import Counts
from load.faults.plan import OUTAGE_SECONDS, RAW_SECONDS, RECOVERY_SECONDS, Kind
from load.faults.replicas import IN_FLIGHT, UNCOMMITTED
from load.faults.streams import STREAMS
from proxy.model import Order


@dataclass
class Round:
    """One fault and what came of it."""

    number: int
    kind: Kind
    seconds: float = 0.0
    """How long the fault lasted."""
    node: str = ""
    """That was lost."""
    through: float | None = None
    """Seconds from its loss until a plain client got through."""
    during: float | None = None
    """Seconds from its loss until every partition had delivered an event that was sent after it."""
    said: int | None = None
    """Replicas that had said by then which node it is; None if none was connected with it, and could know."""
    flow: float | None = None
    """Seconds from the fault's end until every partition had delivered an event that was sent after it."""
    slowest: str = ""
    """The partition that was last."""
    ready: float | None = None
    """Seconds from the fault's end (or its own new start) until every replica was ready and read a share."""
    caught_up: float | None = None
    """Seconds from the fault's end until all that was sent before the flow was back had come; None: not in time."""
    counts: Counts = field(default_factory=Counts)
    """Of all partitions, this round's."""
    worst_duplicates: int = 0
    """In one partition."""
    late: dict[str, int] = field(default_factory=dict)
    """Events late, by stream."""
    reach: dict[str, int] = field(default_factory=dict)
    """How far they lay behind at worst, by stream."""
    overtaken: dict[str, int] = field(default_factory=dict)
    """What the replicas reported of that in their metric logs, by stream."""
    truncated: int | None = None
    """Events that the replicas counted as truncated; None where nothing was."""
    with_queue: int = 0
    """Confirmed into a queue in the instant of its deletion."""
    lost: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of the events that are nowhere, by partition."""
    foreign: int = 0
    """Arrivals that nobody sent, or with other bytes than were sent."""
    load: float = 0.0
    """The machine's load average at the end."""
    aided: bool = False
    """Whether the replicas had to be started again by hand."""

    @property
    def recovery(self) -> float | None:
        """Seconds until everything was back."""
        return None if self.flow is None or self.ready is None else max(self.flow, self.ready)

    @property
    def lost_count(self) -> int:
        """Return how many are nowhere."""
        return sum(map(len, self.lost.values()))


def broken(told: Round) -> list[str]:
    """Return, in words, every promise that the round broke."""
    found = _in_outage(told) if told.kind.is_outage else []
    if told.flow is None:
        found.append(f"the flow of {told.slowest} did not come back unaided")
    elif told.flow > told.kind.goal:
        found.append(f"{told.slowest} flowed after {told.flow:.1f} s, goal {told.kind.goal:.0f} s")
    if told.ready is None:
        found.append("a replica did not become ready unaided")
    elif told.ready > RECOVERY_SECONDS:
        found.append(f"a replica was ready after {told.ready:.1f} s, goal {RECOVERY_SECONDS:.0f} s")
    if told.lost_count:
        where = ", ".join(f"{at}: {len(numbers)}" for at, numbers in told.lost.items() if numbers)
        found.append(f"{told.lost_count} events are nowhere ({where})")
    if told.foreign:
        found.append(f"{told.foreign} arrivals are not what was sent")
    if told.worst_duplicates > UNCOMMITTED:
        found.append(f"{told.worst_duplicates} duplicates in one partition, bound {UNCOMMITTED}")
    if told.truncated is not None and told.truncated != told.counts.gone:
        found.append(f"{told.counts.gone} events were truncated, the replicas counted {told.truncated}")
    return found + _out_of_order(told)


def _in_outage(told: Round) -> list[str]:
    if told.through is None:
        return [f"no plain client got through without {told.node}"]
    if told.during is None:
        return [f"{told.slowest} did not flow without {told.node}"]
    found = []
    if told.during > told.through + RAW_SECONDS:
        words = f"{told.slowest} flowed {told.during:.1f} s after the loss of {told.node}"
        found.append(f"{words}, a plain client got through after {told.through:.1f} s")
    if told.during > OUTAGE_SECONDS:
        found.append(
            f"{told.slowest} flowed {told.during:.1f} s after the loss of {told.node}, at most {OUTAGE_SECONDS:.0f}"
        )
    if told.kind.is_silent and told.said == 0:
        found.append(f"nobody said that {told.node} is silent")
    return found


def _out_of_order(told: Round) -> list[str]:
    found: list[str] = []
    for stream in STREAMS if told.kind.keeps_order else ():
        late, reach = told.late.get(stream.name, 0), told.reach.get(stream.name, 0)
        allowed = told.kind.zombies * IN_FLIGHT
        if stream.order is Order.PARTITION:
            allowed += told.overtaken.get(stream.name, 0)
            if reach >= IN_FLIGHT and not told.kind.zombies:
                found.append(f"{stream.name}: an event was overtaken by {reach} places, {IN_FLIGHT} may be in flight")
        if stream.order is not Order.NONE and late > allowed:
            found.append(f"{stream.name}: {late} events out of order, {allowed} allowed")
    return found


@dataclass(frozen=True)
class Row:
    """All rounds of one kind."""

    kind: Kind
    rounds: int
    worst_through: float | None
    worst_during: float | None
    """Without the node; None if it did not flow once, or is no outage."""
    worst_flow: float | None
    """None if it did not come back once."""
    worst_ready: float | None
    worst_caught_up: float | None
    duplicates: int
    worst_duplicates: int
    late: int
    dead: int
    gone: int
    lost: int
    broken: list[str]


def rows(rounds: Sequence[Round]) -> list[Row]:
    """Return one row for each kind of fault that happened, in the order of their first rounds."""
    kinds = dict.fromkeys(one.kind for one in rounds)
    return [_row(kind, [one for one in rounds if one.kind is kind]) for kind in kinds]


def _row(kind: Kind, rounds: list[Round]) -> Row:
    return Row(
        kind=kind,
        rounds=len(rounds),
        worst_through=_worst([one.through for one in rounds]),
        worst_during=_worst([one.during for one in rounds]),
        worst_flow=_worst([one.flow for one in rounds]),
        worst_ready=_worst([one.ready for one in rounds]),
        worst_caught_up=_worst([one.caught_up for one in rounds]),
        duplicates=sum(one.counts.duplicates for one in rounds),
        worst_duplicates=max(one.worst_duplicates for one in rounds),
        late=sum(sum(one.late.values()) for one in rounds),
        dead=sum(one.counts.dead for one in rounds),
        gone=sum(one.counts.gone for one in rounds),
        lost=sum(one.lost_count for one in rounds),
        broken=[f"round {one.number}: {words}" for one in rounds for words in broken(one)],
    )


def _worst(values: list[float | None]) -> float | None:
    return None if None in values else max(value for value in values if value is not None)
