"""What a bridge saw, by its records: the same of a recording and of its replay, so that the two compare."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median_low, stdev

from proxy.congestion.buckets import quantile
from proxy.tuning.recording import Recording

HELD = 2.0
"""Seconds that a verdict holds at most: one comes every second where nothing is new."""
WITHIN_SHARE = 0.2
WITHIN_SECONDS = 0.05
"""A replay is near enough if it is within the greater of the two, or within chance."""
_STUDENT = ((1, 63.66), (2, 9.92), (3, 5.84), (4, 4.60), (5, 4.03), (6, 3.71), (8, 3.36), (10, 3.17), (20, 2.85))
"""Student's t of 99 %, by degrees of freedom: one more run lies within so many standard deviations of those before."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of a recording and of its replays, in seconds."""

    name: str
    recorded: float
    replayed: float
    """The median of all replays; of an even number the lower one in the middle."""
    least: float
    most: float
    chance: float = 0.0
    """How far one more run of the same model lies from them, of a hundred all but one."""

    @property
    def allowed(self) -> float:
        """How far the replay may be off.

        A recording is one run of what happened, so it may lie as far from the replays as one more of them would; but
        never by more than itself: what is off by that much is not reproduced, however much the model's runs differ.
        """
        return max(WITHIN_SHARE * self.recorded, WITHIN_SECONDS, min(self.chance, self.recorded))

    @property
    def is_near(self) -> bool:
        """Whether the model reproduces what happened."""
        return abs(self.replayed - self.recorded) <= self.allowed


def measured(recording: Recording, top: str, since: float) -> dict[str, float]:
    """Return the figures of a bridge from a second on, by name, in seconds; what it did not see is left out.

    The bridge time of the class `top`; the queue delay of each route that tells one, weighted by how long it held.
    """
    found: dict[str, float] = {}
    records = recording.of_kind("class")
    counts = merged(one["bridge_us"] for one in records if one["class"] == top and recording.at(one) > since)
    for part, share in (("p50", 0.5), ("p99", 0.99)):
        us = quantile(counts, share)
        if us is not None:
            found[f"{top}.bridge_{part}"] = us / 1e6
    for route in dict.fromkeys(record["route"] for record in recording.of_kind("verdict")):
        held = sorted(_held(recording, route, since))
        if held:
            found[f"queue_delay_p50.{route}"] = weighted(held, 0.5)
            found[f"queue_delay_p99.{route}"] = weighted(held, 0.99)
    return found


def compared(recorded: Mapping[str, float], replays: Sequence[Mapping[str, float]]) -> list[Compared]:
    """Return every figure that the recording and all replays have."""
    return [
        Compared(name, value, median_low(values), min(values), max(values), chance(values))
        for name, value in recorded.items()
        if (values := [one[name] for one in replays if name in one]) and len(values) == len(replays)
    ]


def chance(values: Sequence[float]) -> float:
    """Return how far one more value like these lies from their mean at most, in 99 of 100 cases.

    By Student's t; 0 of a single value, which tells nothing of that.
    """
    count = len(values)
    if count == 1:
        return 0.0
    student = next(t for freedom, t in reversed(_STUDENT) if freedom < count)
    return student * stdev(values) * sqrt(1 + 1 / count)


def is_believed(found: Sequence[Compared]) -> bool:
    """Return whether the model reproduces what happened, as far as there was anything to compare."""
    return bool(found) and all(one.is_near for one in found)


def merged(distributions: Iterable[Mapping[str, int]]) -> Counter[int]:
    """Return the buckets of several records as one distribution."""
    counts = Counter[int]()
    for one in distributions:
        counts.update({int(index): count for index, count in one.items()})
    return counts


def weighted(held: Sequence[tuple[float, float]], share: float) -> float:
    """Return the value at or below which a share of the time lies.

    `held` are values in rising order, and for how long each held.
    """
    wanted = share * sum(seconds for _, seconds in held)
    passed = 0.0
    for delay, seconds in held:
        passed += seconds
        if passed >= wanted:
            return delay
    return held[-1][0]


def _held(recording: Recording, route: str, since: float) -> Iterator[tuple[float, float]]:
    """Yield each queue delay that a process told, with the seconds for which it held."""
    for verdicts in recording.by_process("verdict", route=route):
        ends = [*(recording.at(one) for one in verdicts[1:]), recording.seconds]
        for verdict, until in zip(verdicts, ends, strict=True):
            delay = verdict.get("queue_delay_us")
            begins = max(recording.at(verdict), since)
            seconds = min(until, recording.at(verdict) + HELD) - begins
            if delay is not None and seconds > 0:
                yield delay / 1e6, seconds
