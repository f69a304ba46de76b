"""Vegas for batches: a limit of batches on their way, from how much longer than an idle broker would they take.

Source: Netflix concurrency-limits, pull request 161: a batch waits in the sender's buffer by design, for up to BF of a
round trip (BF = 1 / batches on their way), so that is no sign of a queue. As written there, the probe's shrink *lifts*
a limit that is below its start value: `vegas` is literal, `vegas_capped` never lifts.

On RabbitMQ confirms come at once however slow the consumers are (design decision 9): alone, this law would be blind to
them. It stands beside the default law, which hears of the queues; the lower of the two rates holds.
"""

from collections.abc import Callable, Sequence
from math import ceil, inf

from proxy.congestion.aimd import Aimd
from proxy.congestion.rate_law import Level
from proxy.congestion.trips import Trip
from proxy.settings import ClassBudget

START, MOST = 20.0, 1_000.0
"""Batches on their way, to begin with and at most; 1 at least."""
PROBE_EVERY = 30
"""Trips for each batch of the limit, times a jitter of 0.5 to 1, after which the shortest trip is learnt anew."""
SMOOTHING = 0.1
"""Share of a trip in the mean that makes a rate of a limit."""


class VegasLimit:
    """The limit alone, as published; `chance` draws from 0 to 1, `batching` is BF, None: from what is on its way."""

    def __init__(self, chance: Callable[[], float], *, is_capped: bool, batching: float | None) -> None:
        self.value = START
        """Batches on their way, 1 to `MOST`."""
        self.shortest: float | None = None
        """Seconds of a trip to an idle broker, as far as was seen; None: of none."""
        self._chance = chance
        self._is_capped = is_capped
        self._batching = batching
        self._count = 0
        self._jitter = self._draw()
        self._frozen_until = -inf

    def on_trip(self, now: float, trip: Trip) -> None:
        """Take in a batch that has come back at `now`, in seconds."""
        factor = 1.0 / max(1, trip.in_flight) if self._batching is None else self._batching
        self._count += 1
        if self._jitter * PROBE_EVERY * self.value <= self._count:
            self._probe(now, trip.seconds, factor)
            return
        if self.shortest is None or trip.seconds < self.shortest:
            self.shortest = trip.seconds
            return
        if now < self._frozen_until:
            return
        self.value = min(MOST, max(1.0, self._changed(trip, factor, self.shortest)))

    def _changed(self, trip: Trip, factor: float, shortest: float) -> float:
        limit, step = self.value, max(1, _digits(self.value))
        if trip.is_dropped:
            return limit - step
        if 2 * trip.in_flight < limit:
            return limit
        queue = max(0, ceil(limit * (1 - shortest * (1 + factor) / trip.seconds)))
        if queue <= step:
            return limit + 6 * step
        if queue < 3 * step:
            return limit + step
        return limit - step if queue > 6 * step else limit

    def _probe(self, now: float, seconds: float, factor: float) -> None:
        """Learn the shortest trip anew: without the batches that wait, and until those on their way are back."""
        self.shortest = seconds
        shrunk = max(START, ceil(self.value / (1 + factor)))
        self.value = min(MOST, min(self.value, shrunk) if self._is_capped else shrunk)
        self._frozen_until = now + seconds * (1 + factor / (1 + factor))
        self._count = 0
        self._jitter = self._draw()

    def _draw(self) -> float:
        return 0.5 + self._chance() / 2


class Vegas:
    """The default law, and below it what the limit comes to as a rate: batches x their cost / their trip (Little)."""

    unit = "batches on their way"
    hears_trips = True

    def __init__(self, settings: ClassBudget, *, start: float, chance: Callable[[], float], is_capped: bool) -> None:
        self.limit = VegasLimit(chance, is_capped=is_capped, batching=settings.vegas.batching)
        self._depth = Aimd(settings, start=start)
        self._mean: Trip | None = None
        """Of the trips of late."""
        self._pace = inf

    @property
    def rate(self) -> float:
        """Events of cost 1 a second; the top level, as long as nothing limits it, is not limited by this either."""
        return inf if self._depth.rate == inf else min(self._depth.rate, self._pace)

    @rate.setter
    def rate(self, rate: float) -> None:
        self._depth.rate = rate

    def on_trips(self, now: float, trips: Sequence[Trip]) -> None:
        """See `RateLaw.on_trips`."""
        for trip in trips:
            self.limit.on_trip(now, trip)
            mean = self._mean or trip
            self._mean = mean._replace(
                seconds=mean.seconds + SMOOTHING * (trip.seconds - mean.seconds),
                cost=mean.cost + SMOOTHING * (trip.cost - mean.cost),
            )
        if self._mean is not None and self._mean.seconds:
            self._pace = self.limit.value * self._mean.cost / self._mean.seconds

    def on_hot(self, level: Level) -> None:
        """See `RateLaw.on_hot`."""
        self._depth.on_hot(level)

    def on_calm(self, level: Level) -> bool:
        """See `RateLaw.on_calm`."""
        return self._depth.on_calm(level)

    def on_used(self, level: Level, elapsed: float) -> None:
        """See `RateLaw.on_used`: what the limit holds back lets the rate that it holds back stand."""
        if self._depth.rate <= self._pace:
            self._depth.on_used(level, elapsed)

    def on_resume(self, level: Level, before: float) -> None:
        """See `RateLaw.on_resume`."""
        self._depth.on_resume(level, before)


def _digits(value: float) -> int:
    """Return the whole part of the logarithm to base 10 of a number from 1."""
    return len(str(int(value))) - 1
