"""What was seen in one run of a scenario, simulated or real: what every figure and every curve is made of."""

from array import array
from collections import defaultdict
from dataclasses import dataclass, field

BIN = 0.1
"""Seconds that one count stands for."""


class Counts:
    """Events in each tenth of a second."""

    def __init__(self) -> None:
        self.bins = array("l")

    def add(self, at: float, count: int = 1) -> None:
        """Count events at a second of the run."""
        index = int(at / BIN + 1e-6)
        bins = self.bins
        if index >= len(bins):
            bins.extend([0] * (index + 1 - len(bins)))
        bins[index] += count

    def between(self, since: float, until: float) -> int:
        """Return how many there were from one second to another, both rounded to a tenth."""
        return sum(self.bins[round(since / BIN) : round(until / BIN)])


@dataclass(slots=True)
class Times:
    """Instants, and how long something had taken by then."""

    at: "array[float]" = field(default_factory=lambda: array("d"))
    seconds: "array[float]" = field(default_factory=lambda: array("f"))

    def add(self, at: float, seconds: float) -> None:
        """Take one in; instants must not fall by more than a second."""
        self.at.append(at)
        self.seconds.append(seconds)


@dataclass(frozen=True, slots=True)
class QueueSample:
    """A queue at one instant."""

    at: float
    ready: int
    held: int
    """Messages that consumers hold, begun or not."""
    capacity: float
    """Events of cost 1 a second that its consumers can truly do now."""
    foreign: float
    """Events a second that others publish into it now."""
    work: float
    """What the ready messages cost."""


@dataclass(frozen=True, slots=True)
class Told:
    """One verdict, as recorded."""

    at: float
    route: str
    congested: bool | None
    cause: str


@dataclass(slots=True)
class Trace:
    """One run; streams and queues by their names in the scenario, instants in seconds since its start."""

    seconds: float
    offered: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    """Events due, by stream."""
    sent: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    """Publications that reached the broker, by stream."""
    refused: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    """Those of them that were nacked."""
    admitted: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    """What the events cost that a queue took in, by queue."""
    worked: defaultdict[str, Counts] = field(default_factory=lambda: defaultdict(Counts))
    """What the events cost that the consumers of a queue began, whoever published them."""
    consumed: defaultdict[str, Times] = field(default_factory=lambda: defaultdict(Times))
    """When a consumer began to work on an event, and how long after it was due, by stream."""
    bridged: defaultdict[str, list[tuple[float, dict[int, int]]]] = field(default_factory=lambda: defaultdict(list))
    """Due to confirm, as buckets of `congestion.buckets` with the instants of their records, by class."""
    queues: defaultdict[str, list[QueueSample]] = field(default_factory=lambda: defaultdict(list))
    told: list[Told] = field(default_factory=list)
    confirmed: defaultdict[int, Counts] = field(default_factory=lambda: defaultdict(Counts))
    """By replica, in the order of their starts."""
    reads: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Classes that a replica reads."""
    group_requests: Counts = field(default_factory=Counts)
    """Questions of all replicas about how far the group has come."""
    group_bytes: Counts = field(default_factory=Counts)
    """What the answers take on the wire."""
    scalings: defaultdict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))
    """Instants at which an autoscaler changed the number of consumers, and the new number, by queue."""
    lost: int = 0
    truncated: int = 0
    duplicates: int = 0
