"""From runs to what may be said of them: medians, spreads, ratios, goals. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal


@dataclass(frozen=True)
class Run:
    """One contender once through all events, seen from the queue."""

    contender: str
    queue_type: str
    """`classic` or `quorum`."""
    size: int
    """Bytes of one value."""
    round: int
    """From 1 on; 0 is the first, which is discarded."""
    rate: float
    """Events a second, from the first poll that saw any in the queue to the one that saw all."""
    cpu: float
    """Processor seconds of the contender per 100,000 events over the same span, user and system."""
    rabbitmq_cpu: float
    """The same of RabbitMQ."""
    kafka_cpu: float
    peak_rss_mb: float
    start_cpu: float
    """Processor seconds from the contender's start to that first poll."""
    delivered: int
    """Different events that came."""
    lost: int = 0
    duplicates: int = 0
    late: int = 0
    """Events that first came after a later one of their partition: the order is lost if there are any."""


What = Literal["rate", "cpu", "rabbitmq_cpu", "kafka_cpu"]
WORDS: Mapping[What, str] = {
    "rate": "rate", "cpu": "CPU per event", "rabbitmq_cpu": "RabbitMQ's CPU per event",
    "kafka_cpu": "Kafka's CPU per event",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """All rounds of one contender in one setting."""

    runs: tuple[Run, ...]

    def middle(self, what: What) -> float:
        """Return the median."""
        return float(median(getattr(run, what) for run in self.runs))

    def spread(self, what: What = "rate") -> float:
        """Return half the distance between the smallest and the largest round, as a share of the median."""
        found = [getattr(run, what) for run in self.runs]
        half, middle = (max(found) - min(found)) / 2, median(found)
        return half / middle if middle else 0.0

    def total(self, what: Literal["lost", "duplicates", "late"]) -> int:
        """Return the sum of all rounds."""
        return sum(getattr(run, what) for run in self.runs)

    @property
    def delivered(self) -> int:
        """Return the fewest events of any round."""
        return min(run.delivered for run in self.runs)

    @property
    def peak_rss_mb(self) -> float:
        """Return the most memory of any round."""
        return max(run.peak_rss_mb for run in self.runs)


Setting = tuple[str, int]
"""Queue type and size."""
Cells = Mapping[Setting, Mapping[str, Cell]]


def cells(runs: Iterable[Run]) -> dict[Setting, dict[str, Cell]]:
    """Return the cells by setting and contender, in the order of their first run; the first round is left out."""
    sorted_in: dict[Setting, dict[str, list[Run]]] = {}
    for run in runs:
        if run.round:
            sorted_in.setdefault((run.queue_type, run.size), {}).setdefault(run.contender, []).append(run)
    return {at: {name: Cell(tuple(of)) for name, of in found.items()} for at, found in sorted_in.items()}


@dataclass(frozen=True)
class Goal:
    """A bound on a ratio of two contenders' medians in one setting."""

    what: What
    over: str
    """The contender in the denominator."""
    bounds: Mapping[str, float]
    """By queue type."""
    of: str = "tidegate"
    """The contender in the numerator."""
    sizes: tuple[int, ...] = (256,)
    """The goal holds at these sizes; at others its ratio is only shown."""

    @property
    def at_least(self) -> bool:
        """Whether the ratio may not fall below the bound; else it may not exceed it."""
        return self.what == "rate"

    def is_met(self, ratio: float, setting: Setting) -> bool | None:
        """Tell whether the ratio is on the right side of the bound; None where there is none."""
        bound = self.bounds.get(setting[0])
        if bound is None or setting[1] not in self.sizes:
            return None
        return ratio >= bound if self.at_least else ratio <= bound


GOALS = (
    Goal("rate", "raw", {"classic": 0.97, "quorum": 0.95}, sizes=(256, 1024)),
    Goal("rate", "raw-bare", {"classic": 0.85, "quorum": 0.90}),
    Goal("rate", "mq-bridge", {}),
    Goal("rate", "mq-bridge-tuned", {"classic": 1.03, "quorum": 1.5}),
    Goal("cpu", "mq-bridge", {"classic": 0.33, "quorum": 0.33}),
    Goal("cpu", "mq-bridge-tuned", {"classic": 0.33, "quorum": 0.33}),
    Goal("rabbitmq_cpu", "raw-bare", {"classic": 1.2, "quorum": 1.1}),
    Goal("rate", "tidegate-static", {"classic": 0.98, "quorum": 0.98}, of="tidegate-defaults", sizes=(256, 1024)),
    Goal("cpu", "tidegate-static", {"classic": 1.1, "quorum": 1.1}, of="tidegate-defaults", sizes=(256, 1024)),
    Goal("rate", "naive", {}),
)


@dataclass(frozen=True)
class Judged:
    """One goal in one setting."""

    goal: Goal
    setting: Setting
    ratio: float | None
    """Of medians; None where one of the two did not run."""
    spread: float
    """By how much the ratio may be off, as a share of it: both spreads together."""
    met: bool | None
    """None where the goal is not judged."""


def judge(found: Cells, goals: Sequence[Goal] = GOALS, *, is_judged: bool = True) -> list[Judged]:
    """Return every goal in every setting."""
    return [_judged(goal, at, here, is_judged=is_judged) for at, here in found.items() for goal in goals]


def _judged(goal: Goal, at: Setting, here: Mapping[str, Cell], *, is_judged: bool) -> Judged:
    ours, theirs = here.get(goal.of), here.get(goal.over)
    if ours is None or theirs is None or not theirs.middle(goal.what):
        return Judged(goal, at, None, 0.0, None)
    ratio = ours.middle(goal.what) / theirs.middle(goal.what)
    spread = ours.spread(goal.what) + theirs.spread(goal.what)
    return Judged(goal, at, ratio, spread, goal.is_met(ratio, at) if is_judged else None)
