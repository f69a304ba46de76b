"""From runs to what may be said of them: medians, spreads, ratios, goals. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Run:
    """One contender once through all events, seen from the queue."""

    contender: str
    queue_type: str
    """`classic` or `quorum`."""
    size: int
    """Bytes of one value."""
    round: int
    rate: float
    """Events a second, from the first poll that saw any in the queue to the one that saw all."""
    cpu: float
    """Processor seconds of the contender per 100,000 events over the same span, user and system."""
    rabbitmq_cpu: float
    """The same of RabbitMQ."""
    peak_rss_mb: float
    start_cpu: float
    """Processor seconds from the contender's start to that first poll."""


@dataclass(frozen=True)
class Cell:
    """All rounds of one contender in one setting."""

    runs: tuple[Run, ...]

    @property
    def rate(self) -> float:
        """Return the median rate."""
        return median(run.rate for run in self.runs)

    @property
    def spread(self) -> float:
        """Return half the distance between the slowest and the fastest round, as a share of the median."""
        rates = [run.rate for run in self.runs]
        return (max(rates) - min(rates)) / 2 / self.rate

    @property
    def cpu(self) -> float:
        """Return the median of processor seconds per 100,000 events."""
        return median(run.cpu for run in self.runs)

    @property
    def rabbitmq_cpu(self) -> float:
        """Return the same of RabbitMQ."""
        return median(run.rabbitmq_cpu for run in self.runs)

    @property
    def peak_rss_mb(self) -> float:
        """Return the most memory of any round."""
        return max(run.peak_rss_mb for run in self.runs)


Setting = tuple[str, int]
"""Queue type and size."""


def cells(runs: Iterable[Run]) -> dict[Setting, dict[str, Cell]]:
    """Return the cells by setting and contender, in the order of their first run."""
    sorted_in: dict[Setting, dict[str, list[Run]]] = {}
    for run in runs:
        sorted_in.setdefault((run.queue_type, run.size), {}).setdefault(run.contender, []).append(run)
    return {at: {name: Cell(tuple(of)) for name, of in found.items()} for at, found in sorted_in.items()}


@dataclass(frozen=True)
class Goal:
    """A bound on a ratio of two contenders' medians in one setting."""

    what: str
    """`rate` or `cpu`."""
    over: str
    """The contender in the denominator; Tidegate is in the numerator."""
    bound: float
    at_least: bool
    """Whether the ratio may not fall below the bound; else it may not exceed it."""

    def ratio(self, found: dict[str, Cell]) -> float:
        """Return the ratio of medians."""
        ours, theirs = found["tidegate"], found[self.over]
        return ours.rate / theirs.rate if self.what == "rate" else ours.cpu / theirs.cpu

    def is_met(self, ratio: float) -> bool:
        """Tell whether the ratio is on the right side of the bound."""
        return ratio >= self.bound if self.at_least else ratio <= self.bound

    def __str__(self) -> str:
        """Return it in words."""
        unit = "rate" if self.what == "rate" else "CPU per event"
        return f"Tidegate / {self.over}, {unit} (goal {'>=' if self.at_least else '<='} {self.bound:g})"


GOALS = (
    Goal("rate", "naive", 2.5, at_least=True),
    Goal("rate", "raw", 0.70, at_least=True),
    Goal("cpu", "naive", 0.2, at_least=False),
)
JUDGED_SIZES = (256,)
"""The goals hold at these sizes; at others their ratios are only shown."""


@dataclass(frozen=True)
class Judged:
    """One goal in one setting."""

    goal: Goal
    setting: Setting
    ratio: float
    met: bool | None
    """None where the goal is not judged."""


def judge(
    found: dict[Setting, dict[str, Cell]], goals: Sequence[Goal] = GOALS, sizes: Collection[int] = JUDGED_SIZES
) -> list[Judged]:
    """Return every goal whose two contenders ran, in every setting; judged at these sizes only."""
    return [
        Judged(goal, at, ratio := goal.ratio(here), goal.is_met(ratio) if at[1] in sizes else None)
        for at, here in found.items()
        for goal in goals
        if {"tidegate", goal.over} <= here.keys()
    ]
