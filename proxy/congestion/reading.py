"""What one control tick saw of one route: the only thing the control loop ever judges by."""

from dataclasses import dataclass

from proxy.congestion.trips import Trip


@dataclass(frozen=True, slots=True)
class QueueReading:
    """One watched queue, as last seen."""

    ready: int
    """Messages waiting; not those handed to consumers."""
    consumers: int
    at: float
    """When it was seen, in seconds on the caller's clock."""
    fresh_for: float
    """Seconds for which this counts as known: three polls."""
    unacked: int | None = None
    """Messages at its consumers, some seconds ago; None: not known."""
    unacked_growing: bool = False
    """Its consumers are known to take and not to acknowledge."""


@dataclass(frozen=True, slots=True)
class Inflow:
    """What goes to one queue."""

    confirmed: tuple[int, ...]
    """Own events confirmed that went there, by class."""
    feeds: tuple[bool, ...]
    """Whether any event type of each class goes there."""
    others: float | None = 0.0
    """Events a second that other replicas put in; None: not known."""
    charged: tuple[float, ...] = ()
    """What the own events cost, by class; none: one each."""
    others_cost: float = 1.0
    """What one of the others' costs on average."""

    @property
    def work(self) -> tuple[float, ...]:
        """What the own events cost, by class."""
        return self.charged or self.confirmed

    @property
    def others_work(self) -> float:
        """Cost a second that other replicas put in; 0 if not known."""
        return (self.others or 0.0) * self.others_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Counts are since the start of the process and never fall; times are seconds on the caller's clock."""

    at: float
    queues: tuple[QueueReading | None, ...] = ()
    """None: not known, or it does not exist. Empty: the route names none and is steered by nacks and latency."""
    names: tuple[str, ...] = ()
    """Of the queues; none: by their places."""
    inflows: tuple[Inflow, ...] = ()
    """What goes to each queue; none: everything to every one."""
    confirmed: tuple[int, ...]
    """Own events confirmed, by class, the most important first."""
    failed: int = 0
    """Own events nacked, or lost with a deadline or a connection."""
    others: float | None = 0.0
    """Events a second that other replicas confirm; None: not known."""
    charged: tuple[float, ...] = ()
    """What the own confirmed events cost, by class; none: one each."""
    others_cost: float = 1.0
    """What one of the others' costs on average."""
    can_publish: bool = True
    """The connection is open and not blocked."""
    oldest: float = 0.0
    """Seconds since the oldest unconfirmed event was written."""
    latency: float | None = None
    """Shortest write to confirm since the last reading, in seconds; None if nothing was confirmed."""
    in_flight: int = 0
    trips: tuple[Trip, ...] = ()
    """Of the batches that have come back since the last reading, where a law asks for them."""
    waited: tuple[bool, ...]
    """By class: whether events had to wait for its level's rate since the last reading."""
    unacked_growing: bool = False
    """Consumers are known to take and not to acknowledge."""

    @property
    def everything(self) -> Inflow:
        """What goes to all queues together."""
        feeds = tuple(True for _ in self.confirmed)
        return Inflow(self.confirmed, feeds, self.others, self.charged, self.others_cost)

    def inflow(self, place: int) -> Inflow:
        """Return what goes to the queue at a place."""
        return self.inflows[place] if self.inflows else self.everything

    def name(self, place: int) -> str:
        """Return the name of the queue at a place."""
        return self.names[place] if self.names else str(place)

    @property
    def ready(self) -> int:
        """Messages waiting in all queues that are known."""
        return sum(queue.ready for queue in self.queues if queue is not None)
