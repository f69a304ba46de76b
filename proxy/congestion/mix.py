"""What waits in a queue costs: a queue tells how many wait, and what was put in last is what waits.

Queues are first in, first out. One with priorities keeps the least important back, so where those are dearer than the
rest more waits than is told here (docs/design/0024-cost.md).
"""

from collections import deque
from dataclasses import dataclass

from proxy.congestion.reading import Inflow

MOST = 100
"""Looks that are remembered, of those between which something was put in: 5 s at one each 50 ms. What was put in before
costs what is usual since."""


@dataclass(frozen=True, slots=True)
class _Sum:
    """Of all that was put in so far."""

    events: float
    work: float
    """What they cost."""
    squares: float
    """What their costs, each multiplied by itself, add up to."""


class Mix:
    """Of one queue, or of all queues of a route taken together. As long as every event costs 1 it only counts them."""

    def __init__(self) -> None:
        self._sums: deque[_Sum] = deque([_Sum(0.0, 0.0, 0.0)], maxlen=MOST)
        self._own: tuple[tuple[int, ...], tuple[float, ...]] = (), ()
        """Own events and what they cost by the last look, by class."""
        self._at: float | None = None
        self.is_even = True
        """Every event cost 1."""

    @property
    def mean(self) -> float:
        """What an event cost on average; 1 if none was put in."""
        first, last = self._sums[0], self._sums[-1]
        return (last.work - first.work) / (last.events - first.events) if last.events > first.events else 1.0

    @property
    def lump(self) -> float:
        """In what pieces work comes: the mean cost of an event, each counted by its own cost."""
        first, last = self._sums[0], self._sums[-1]
        return (last.squares - first.squares) / (last.work - first.work) if last.work > first.work else 1.0

    def add(self, at: float, inflow: Inflow) -> None:
        """Take in what was put in until `at`, in seconds by the caller's clock; it must not fall."""
        before, self._own = self._own, (inflow.confirmed, inflow.work)
        elapsed, self._at = 0.0 if self._at is None else max(0.0, at - self._at), at
        others = (inflow.others or 0.0) * elapsed
        last = self._sums[-1]
        if self.is_even and inflow.work == inflow.confirmed and (not others or inflow.others_cost == 1):
            events = last.events + others + sum(inflow.confirmed) - sum(before[0])
            if len(self._sums) > 1:
                self._sums.pop()  # all alike, so nothing is lost
            self._sums.append(_Sum(events, events, events))
            return
        self.is_even = False
        events, work, squares = others, others * inflow.others_cost, others * inflow.others_cost**2
        for rank, (count, cost) in enumerate(zip(inflow.confirmed, inflow.work, strict=True)):
            more = count - (before[0][rank] if before[0] else 0)
            dearer = cost - (before[1][rank] if before[1] else 0.0)
            if more > 0:
                events, work, squares = events + more, work + dearer, squares + dearer * dearer / more
        if events:
            self._sums.append(_Sum(last.events + events, last.work + work, last.squares + squares))

    def cost_of_last(self, events: int) -> float:
        """Return what the last so many events cost."""
        if self.is_even or not events:
            return float(events)
        last = self._sums[-1]
        first = last.events - events
        later = last
        for sums in reversed(self._sums):
            if sums.events <= first:
                share = (first - sums.events) / (later.events - sums.events) if later is not sums else 0.0
                return last.work - sums.work - share * (later.work - sums.work)
            later = sums
        return last.work - later.work + (later.events - first) * self.mean
