"""How fast the consumers take: what all replicas confirmed, less what the queues grew by (design decision 13).

All of it in cost, which is events where each costs 1 (docs/design/0024).

Two windows: one second, steady; and a fast one, which takes over while the queues grow, so that a capacity that falls
is known before a second of it is wasted.
"""

from collections import deque
from dataclasses import dataclass
from itertools import islice
from math import sqrt

SLOW = 1.0
FAST = 0.35
"""Seconds of the two windows."""
CHANCE = 4.0
"""Standard deviations, of events that come by pure chance, below which a rate has fallen and did not stray."""
SHORTEST = 0.15
"""Seconds of samples that make a rate."""
LONGEST_GAP = 1.5
"""Seconds between two samples after which the depth counts as unknown meanwhile; the longest tick and its delay."""
FADING = 1.0
"""Seconds of a lower drain rate in which a higher one, remembered, is halved: consumers that stand still may return."""


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    waiting: float
    confirmed: tuple[float, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Drain:
    """Rates in events of cost 1 a second."""

    rate: float
    """What the consumers take, 0 or more; if the queues ran empty meanwhile, what they were last seen to be able to."""
    inflow: float
    """What all replicas put in over the slow window."""
    own: tuple[float, ...]
    """What this replica put in over the same, by class."""
    slope: float
    """By how much the queues grew of late; negative while they shrink."""
    is_capacity: bool
    """The queues never ran empty within the window, so `rate` is all that the consumers can now."""


class DrainRate:
    """Estimates from samples taken when the depth was read."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()
        self._capacity = 0.0
        """What the consumers took when they last had enough, in events of cost 1 a second."""
        self._estimated_at = 0.0
        self._fallen: Drain | None = None
        """The rate after the last sudden fall, until there are samples enough for another."""
        self.empty_at: float | None = None
        """When the queues were last seen empty; None if never."""

    def add(self, at: float, waiting: float, confirmed: tuple[float, ...], known_for: float = 0.0) -> None:
        """Take in what waits in all queues and the own confirms so far, by class, both of the time `at`, in cost.

        `known_for` is for how many seconds a depth counts as known: rarely asked queues make samples far apart.
        """
        if not waiting:
            self.empty_at = at
        if self._samples and at <= self._samples[-1].at:
            return
        if self._samples and at - self._samples[-1].at > max(LONGEST_GAP, known_for):
            self._samples.clear()  # the depth was unknown for long
            self._fallen = None
        self._samples.append(_Sample(at, waiting, confirmed, sum(confirmed)))
        while len(self._samples) > 1 and self._samples[1].at <= at - SLOW:
            self._samples.popleft()

    def estimate(self, others: float, lump: float = 1.0) -> Drain | None:
        """Return the rates now, None if not enough was seen; `others` is what other replicas confirm, a second.

        `lump` is in what pieces work comes: the mean cost of an event, each counted by its own.
        """
        if not self._samples or self._samples[-1].at - self._samples[0].at < SHORTEST:
            return self._fallen
        slow, fast = self._over(SLOW, others), self._over(FAST, others)
        taken = self._sudden(slow, others, lump) or (fast if fast.slope > 0 and fast.rate < slow.rate else slow)
        if taken.is_capacity:
            faded = self._capacity * 0.5 ** ((self._samples[-1].at - self._estimated_at) / FADING)
            self._capacity = max(taken.rate, faded)
        self._estimated_at = self._samples[-1].at
        # What is taken from empty queues is what there was to take: no less can be done than was done before.
        rate = taken.rate if taken.is_capacity else max(taken.rate, self._capacity)
        return Drain(rate, slow.inflow, slow.own, fast.slope, is_capacity=taken.is_capacity)

    def _sudden(self, slow: Drain, others: float, lump: float) -> Drain | None:
        """Return the rate over the shortest span in which so little was taken that chance can't be the reason.

        What was seen before that span is forgotten: it was another capacity.
        """
        samples, last = self._samples, self._samples[-1]
        for start in range(len(samples) - 3 if last.waiting else -1, -1, -1):
            seconds = last.at - samples[start].at
            if seconds > FAST or not samples[start + 1].waiting:
                break  # over this span and all longer ones the queues were empty once: what was taken tells nothing
            now, expected = self._since(start, others), slow.rate * seconds
            if now.is_capacity and now.rate * seconds < expected - CHANCE * sqrt(lump * expected):
                for _ in range(start):
                    samples.popleft()
                self._capacity = now.rate
                self._fallen = now
                return now
        return None

    def _over(self, window: float, others: float) -> Drain:
        samples, last = self._samples, self._samples[-1]
        first = last.at - window - 1e-9
        start = len(samples) - 2
        while start > 0 and samples[start - 1].at >= first:
            start -= 1
        if last.at - samples[start].at < SHORTEST:
            start -= 1  # quick samples after a gap; the first of all lies far enough back
        return self._since(start, others)

    def _since(self, start: int, others: float) -> Drain:
        """Return the rates from one of the samples to the last."""
        samples = self._samples
        first, last = samples[start], samples[-1]
        seconds = last.at - first.at
        slope = (last.waiting - first.waiting) / seconds
        inflow = (last.total - first.total) / seconds + others
        return Drain(
            max(0.0, inflow - slope),
            inflow,
            tuple([(now - then) / seconds for now, then in zip(last.confirmed, first.confirmed, strict=True)]),
            slope,
            is_capacity=all([sample.waiting for sample in islice(samples, start + 1, None)]),  # noqa: C419  # quicker
        )
