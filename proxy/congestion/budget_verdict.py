"""The verdict of a control tick on a route under `policy: class_budget`."""

from dataclasses import dataclass

from proxy.congestion.drain_rate import Drain
from proxy.congestion.group import Tether
from proxy.congestion.reading import Reading
from proxy.congestion.receiver import View
from proxy.congestion.signs import Sign


@dataclass(frozen=True, slots=True)
class BudgetVerdict:
    """What every observer of a route is told: what was seen, what it means, what may be sent."""

    route: str
    congested: bool | None
    """None: not enough is known to say that it is not."""
    cause: Sign
    hot: tuple[bool, ...]
    """By level."""
    rates: tuple[float, ...]
    """Events of cost 1 a second by level; infinite: no limit."""
    allowance: float | None
    """Where the top level has no limit, the cost it may admit until it is told anew; None: what it was told."""
    counts: tuple[tuple[bool, ...], ...]
    """By level: whether the events of each class are among those that its rate counts."""
    trickles: tuple[float, ...]
    """Cost a second that each class gets whatever comes above it; nothing comes above the first."""
    delay: float | None
    """Queue delay in seconds, an estimate; None: not known."""
    drain: Drain
    ruled_by: str | None
    """The queue that `delay` and `drain` are of; None: all queues together."""
    waiting: float
    """What the messages in the queues cost."""
    queues: tuple[View, ...]
    """Each queue; one without a name is all of them together."""
    states: dict[str, Tether]
    """How each of them stands to its group."""
    cuts: int
    """Levels cut by this verdict."""
    reading: Reading

    @property
    def is_even(self) -> bool:
        """Whether every event that was ever seen cost 1."""
        return all(view.is_even for view in self.queues)
