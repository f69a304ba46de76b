"""Consumers that work as a scenario says, each on one event at a time. Pure: told the time, decides when work ends.

A timer that fires late must lower no capacity: an event begins when its consumer was free and held it, not when
the loop got round to it.
"""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from proxy.simulation.scenario import Service

Work = TypeVar("Work")


def service_seconds(mean: float, service: Service, chance: random.Random) -> float:
    """Return how long one event takes."""
    if service == "exponential":
        return chance.expovariate(1.0 / mean)
    return mean * chance.uniform(0.5, 1.5) if service == "uniform" else mean


@dataclass
class Hand(Generic[Work]):
    """One consumer: what it works on, what it holds besides."""

    mean: float
    """Seconds that an event of cost 1 takes on average."""
    service: Service
    chance: random.Random
    held: deque[tuple[float, int, Work]] = field(default_factory=deque)
    """Not begun, with the instant each came and its cost."""
    at_work: Work | None = None
    ends_at: float = 0.0
    """When the present work ends, or the last one ended."""
    is_stalled: bool = False
    drawn: float = 0.0
    """Seconds that the work begun so far takes, as chance had it ..."""
    expected: float = 0.0
    """... and as it would take on average."""

    def take(self, work: Work, now: float, cost: int = 1) -> None:
        """Hold one more event, which takes `cost` times as long as one of cost 1."""
        self.held.append((now, cost, work))

    def begin(self) -> tuple[Work, float] | None:
        """Begin the next event if free; return it with the instant at which it began."""
        if self.at_work is not None or self.is_stalled or not self.held:
            return None
        came, cost, work = self.held.popleft()
        begun_at = max(self.ends_at, came)
        drawn = service_seconds(cost * self.mean, self.service, self.chance)
        self.at_work, self.ends_at = work, begun_at + drawn
        self.drawn += drawn
        self.expected += cost * self.mean
        return work, begun_at

    def finish(self, now: float) -> Work | None:
        """Return the event whose work has ended by `now`, if it has."""
        if self.at_work is None or self.is_stalled or self.ends_at > now:
            return None
        work, self.at_work = self.at_work, None
        return work

    def change(self, mean: float | None, now: float) -> None:
        """Work at another pace from now on, the present event included; None: stand still with what is held."""
        if mean is None:
            self.is_stalled = True
            return
        if self.is_stalled:
            self.is_stalled, self.ends_at = False, max(self.ends_at, now)
        elif self.at_work is not None:
            self.ends_at = now + max(0.0, self.ends_at - now) * mean / self.mean
        self.mean = mean

    def give_back(self) -> list[Work]:
        """Return all that it has not finished; it holds nothing any more."""
        left = [work for _, _, work in self.held]
        self.held.clear()
        if self.at_work is not None:
            left.insert(0, self.at_work)
            self.at_work = None
        return left
