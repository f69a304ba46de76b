"""Open schedules: when each event is due is settled before the first one is sent.

A generator that waits for the system it measures slows down with it and so leaves out the very waits it was to
measure (coordinated omission).
Here every event has a due instant of its own, and all times count from it, however late the event really left.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True)
class Stretch:
    """A time in which the rate goes in a straight line from one value to another."""

    seconds: float
    """How long; above 0."""
    first: float
    """Events a second at its beginning; 0 or more."""
    last: float
    """Events a second at its end; 0 or more."""

    def __post_init__(self) -> None:
        """Raise ValueError for what is no stretch of time or no rate."""
        if self.seconds <= 0 or self.first < 0 or self.last < 0:
            raise ValueError("a stretch lasts longer than 0 s, at rates of 0 or more")

    @property
    def events(self) -> float:
        """Return how many events fall due within, not rounded."""
        return self.seconds * (self.first + self.last) / 2

    def when(self, number: float) -> float:
        """Return the second within the stretch at which so many events have fallen due; `number <= events`."""
        slope = (self.last - self.first) / self.seconds
        root = sqrt(max(0.0, self.first**2 + 2 * slope * number))
        return 2 * number / (self.first + root) if number else 0.0


@dataclass(frozen=True)
class Schedule:
    """Stretches, one after the other."""

    stretches: tuple[Stretch, ...]

    @property
    def seconds(self) -> float:
        """Return how long it lasts."""
        return sum(stretch.seconds for stretch in self.stretches)

    @property
    def events(self) -> float:
        """Return how many events fall due in all; with chance, how many are to be expected."""
        return sum(stretch.events for stretch in self.stretches)

    def due(self, chance: random.Random | None = None) -> Iterator[float]:
        """Yield the due instant of each event, in seconds from the start, never falling.

        Evenly spaced along the rate; with `chance` as independent customers come (Poisson), repeatable by its seed.
        """
        passed_seconds, passed_events, number = 0.0, 0.0, 0.0
        for stretch in self.stretches:
            end = passed_events + stretch.events
            while number < end:
                yield passed_seconds + stretch.when(number - passed_events)
                number += 1.0 if chance is None else chance.expovariate(1.0)
            passed_seconds, passed_events = passed_seconds + stretch.seconds, end


def constant(rate: float, seconds: float) -> Schedule:
    """Return a schedule of one rate."""
    return Schedule((Stretch(seconds, rate, rate),))


def ramp(first: float, last: float, seconds: float) -> Schedule:
    """Return a schedule whose rate rises or falls in a straight line."""
    return Schedule((Stretch(seconds, first, last),))


def campaign(rate: float, *, start: float, rise: float, hold: float, seconds: float) -> Schedule:
    """Return the schedule of a campaign: silence, a steep rise, a plateau at `rate`, silence again; all in seconds.

    Raises ValueError if the campaign does not fit into `seconds`.
    """
    rest = seconds - start - rise - hold
    if rest < 0:
        raise ValueError(f"a campaign of {start + rise + hold:g} s does not fit into {seconds:g} s")
    parts = [(start, 0.0, 0.0), (rise, 0.0, rate), (hold, rate, rate), (rest, 0.0, 0.0)]
    return Schedule(tuple(Stretch(*part) for part in parts if part[0] > 0))
