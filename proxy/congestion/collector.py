"""The statistics collector: publish latency and publish errors of each route, reported at its times.

Only what the broker confirmed is a latency sample (a nack is faster than an ack and would pull P50 down); only nacks,
missed deadlines and publications lost with their connection are errors (a refused or unroutable event says nothing
about load).
"""

from dataclasses import dataclass
from typing import NamedTuple

from proxy.congestion.buckets import LOWEST_US, index_of, quantile
from proxy.congestion.trips import Trips


@dataclass(frozen=True, slots=True)
class Statistics:
    """One route between two reports."""

    route: str
    samples: int
    """Confirmed publications and errors together."""
    errors: int
    p50: float | None
    """Publish latency in seconds, write to confirm; None if nothing was confirmed."""


class Way(NamedTuple):
    """What the events of a type do to the consumers behind a route."""

    queues: tuple[str, ...] = ()
    """Where they go; none: nobody said, so to all."""
    cost: float = 1.0
    """So many times as long as an event of cost 1 keeps one a consumer busy."""


class RouteStatistics:
    """Counts one route's outcomes: since the start for every control tick, and until the next report."""

    def __init__(self, route: str, classes: int) -> None:
        self.confirmed = [0] * classes
        """Publications confirmed since the start, by class."""
        self.charged = [0.0] * classes
        """What these cost."""
        self.failed = 0
        """Publications nacked or lost since the start."""
        self.trips = Trips()
        self.by_way: dict[Way, list[int | None]] = {}
        """Confirmed by what they do; None: no event type of the class goes that way."""
        self._classes = classes
        self._route = route
        self._latency: dict[int, int] = {}
        """Publications by the bucket of their latency."""
        self._errors = 0
        self._shortest: float | None = None

    def open(self, rank: int, way: Way) -> None:
        """Know that events of a class may go a way from now on."""
        counts = self.by_way.setdefault(way, [None] * self._classes)
        counts[rank] = counts[rank] or 0

    def on_confirmed(self, rank: int, count: int, seconds: float | None, way: Way = Way()) -> None:  # noqa: B008
        """Count `count` publications of a class confirmed `seconds` after they were written, if that is known."""
        self.confirmed[rank] += count
        self.charged[rank] += count * way.cost
        if way in self.by_way:
            counts = self.by_way[way]
            counts[rank] = (counts[rank] or 0) + count
        if seconds is not None:
            index = index_of(max(int(seconds * 1e6), LOWEST_US))
            self._latency[index] = self._latency.get(index, 0) + count
            if self._shortest is None or seconds < self._shortest:
                self._shortest = seconds

    def on_errors(self, count: int) -> None:
        """Count nacked or lost publications."""
        self._errors += count
        self.failed += count

    def take_shortest(self) -> float | None:
        """Return the shortest publish latency since this was asked last, in seconds; None if nothing was confirmed."""
        shortest, self._shortest = self._shortest, None
        return shortest

    def report(self) -> Statistics:
        """Return what happened since the last report, and begin anew."""
        median = quantile(self._latency, 0.5)
        p50 = None if median is None else median / 1e6
        statistics = Statistics(self._route, sum(self._latency.values()) + self._errors, self._errors, p50)
        self._latency.clear()
        self._errors = 0
        return statistics
