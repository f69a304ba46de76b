"""What a run with thousands of event types came to: its phases, and the goals beside the figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

from load.tables import aligned

TELLING = 10
"""A percentile is told if so many samples lie beyond it."""
PERCENTILES = (50.0, 99.0, 99.9)
KEYS = tuple(f"p{share:g}" for share in PERCENTILES)
STANDARD = 1_000
"""Types that the goals speak of; more may take `MORE` times as much of what grows with them."""
MORE = 3.0
MOST_CPU, MOST_IDLE_CPU = 0.35, 0.05
"""Shares of a core."""
MOST_P99_MS, MOST_MB, MOST_READY_SECONDS = 100.0, 150.0, 5.0
MOST_STEP_MS = 25.0


@dataclass(frozen=True)
class Phase:
    """One stretch of the run."""

    name: str
    seconds: float
    cpu: float
    """Share of a core, user and system."""
    rabbitmq_cpu: float
    kafka_cpu: float
    generator_cpu: float
    """Of producer and consumers."""
    rss_mb: float
    """Resident at its end."""
    switches: float
    """Times a second at which Tidegate gave up a core by itself: how often it was woken."""
    events: int
    """Due within it, of the queues that are told of."""
    response_ms: Mapping[str, float]
    """Percentiles, due instant to consumer."""
    kafka_ms: Mapping[str, float]
    """Due instant to Kafka's acknowledgement: the part that is no bridge's."""


@dataclass(frozen=True)
class Goal:
    """A figure beside what was wanted."""

    name: str
    figure: float
    most: float
    unit: str

    @property
    def is_met(self) -> bool:
        """Whether it was reached."""
        return self.figure <= self.most


def goals(types: int, start: Mapping[str, float], phases: Sequence[Phase], longest_step_ms: float) -> list[Goal]:
    """Return what is judged. With more types than the standard the idle share is not, and the others may be larger."""
    by_name = {one.name: one for one in phases}
    steady, times = by_name["steady"], 1.0 if types <= STANDARD else MORE
    found = [
        Goal("ready after the group is joined", start["ready"] - start["joined"], MOST_READY_SECONDS * times, "s"),
        Goal("steady, of a core", 100 * steady.cpu, 100 * MOST_CPU * times, "%"),
        Goal("steady, P99", steady.response_ms.get("p99", float("inf")), MOST_P99_MS * times, "ms"),
        Goal("steady, resident", steady.rss_mb, MOST_MB * times, "MB"),
        Goal("longest step of the loop", longest_step_ms, MOST_STEP_MS, "ms"),
    ]
    return (
        found
        if types > STANDARD
        else [*found, Goal("idle, of a core", 100 * by_name["idle"].cpu, 100 * MOST_IDLE_CPU, "%")]
    )


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """Return what is known of a sorted list; a percentile with too few samples beyond it is left out."""
    told = [share for share in PERCENTILES if len(times) * (100 - share) / 100 >= TELLING]
    return {f"p{share:g}": round(times[int(len(times) * share / 100)], 2) for share in told}


def tables(phases: Sequence[Phase], judged: Sequence[Goal]) -> str:
    """Return both tables."""
    heading = ["", "of a core", "RabbitMQ", "Kafka", "generator", "MB", "woken/s", "events/s"]
    rows = [[*heading, *(f"P{share:g} ms" for share in PERCENTILES), "P99 to Kafka"]]
    for one in phases:
        shares = [f"{share:.1%}" for share in (one.cpu, one.rabbitmq_cpu, one.kafka_cpu, one.generator_cpu)]
        times = [f"{one.response_ms[key]:.1f}" if key in one.response_ms else "-" for key in KEYS]
        acked = f"{one.kafka_ms['p99']:.1f}" if "p99" in one.kafka_ms else "-"
        rate = f"{one.events / one.seconds:,.0f}"
        rows.append([one.name, *shares, f"{one.rss_mb:.0f}", f"{one.switches:,.0f}", rate, *times, acked])
    verdicts = [["", "measured", "at most", ""]]
    verdicts += [
        [one.name, f"{one.figure:.1f} {one.unit}", f"{one.most:g} {one.unit}", "met" if one.is_met else "MISSED"]
        for one in judged
    ]
    return f"{aligned(rows)}\n\n{aligned(verdicts)}\n"


def cpu(process: psutil.Process) -> float:
    """Return the processor seconds that a process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)
