"""Latencies, raw: each event's own value, drawn from pools of known values so that all of them can be kept as counts.

A pool stands for how things are (how far behind, congested or not). An interval takes a stretch of it from a random
place, so what is drawn is as raw as if it had been drawn one by one. Percentiles are by nearest rank.
"""

from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from load.metric_fleet.plan import Plan
from proxy.congestion.buckets import index_of

POOL = 4096
"""Values of a pool; an interval takes at most as many for one type and second."""
BEHIND_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Levels of bridge time: a class that is so far behind draws from the pool of its level."""
SHARES = {
    "p50_us": Fraction(1, 2),
    "p90_us": Fraction(9, 10),
    "p99_us": Fraction(99, 100),
    "p999_us": Fraction(999, 1000),
    "p9999_us": Fraction(9999, 10_000),
}


class Pools:
    """All values that a latency may have."""

    def __init__(self, plan: Plan) -> None:
        chance = plan.chance("pools")
        self.publish = [
            [max(150, round(chance.lognormvariate(middle, 0.5))) for _ in range(2 * POOL)] for middle in (7.0, 10.2)
        ]
        """Calm and congested."""
        self._bridge = [
            [
                round(chance.lognormvariate(8.3, 0.7) + 1e6 * chance.uniform(0.5, 1.5) * level)
                for _ in range(2 * POOL)
            ]
            for level in BEHIND_S
        ]  # fmt: skip
        self._seen: dict[int, list[Ages]] = {}
        self.index = _Indexes()
        """Bucket of each value, as it is written."""

    def bridge(self, skew_ms: int) -> "list[Ages]":
        """Return the pool of each level as a process sees it whose clock is so far ahead."""
        if skew_ms not in self._seen:
            own = [[value + 1000 * skew_ms for value in pool] for pool in self._bridge]
            self._seen[skew_ms] = [Ages([max(0, age) for age in pool], [age < 0 for age in pool]) for pool in own]
        return self._seen[skew_ms]


class Ages(NamedTuple):
    """Bridge times of a pool."""

    values: list[int]
    """None is below 0: an event that is confirmed before its own timestamp counts as 0."""
    is_ahead: list[bool]
    """Whether it was such an event."""


class _Indexes(dict[int, str]):
    """The bucket of each value, found when it is asked for first."""

    def __missing__(self, value: int) -> str:
        self[value] = str(index_of(value))
        return self[value]


def level_of(behind_s: float) -> int:
    """Return the pool of bridge times for a class that is so many seconds behind."""
    return bisect_right(BEHIND_S, behind_s) - 1


def percentiles(counts: Mapping[int, int]) -> dict[str, Any]:
    """Return samples, percentiles by nearest rank, and the largest of raw values with their counts."""
    total = sum(counts.values())
    found: dict[str, Any] = {"samples": total, "max_us": max(counts, default=None)}
    ordered = sorted(counts.items())
    for name, share in SHARES.items():
        wanted, passed = max(1, -int(-share * total // 1)), 0
        found[name] = None
        for value, count in ordered:
            passed += count
            if passed >= wanted:
                found[name] = value
                break
    return found
