"""Which way of steering is best, by how much, and whether that is more than chance.

The goals of control, the first that tells two apart decides:

1. the most important class keeps its goal: P99 of the time from event to consumer at most the goal, and nearly all of
   its events come through. Of two that miss it the nearer one is better, in steps of 10 ms;
2. use: of what the consumers could take, as much as possible, in whole percent;
3. the other classes, in the order of importance: of what was there to be taken, as much as possible, in whole percent;
4. the first class's P99, in steps of 10 ms;
5. the order in which they were given: the recorded settings first, so that nobody changes any for nothing.

Each is the median over the seeds. Every way has the same seeds, so that two are compared seed by seed: one is better by
a goal only if it is in every seed, and by a whole step at the median. Five seeds of one sign are by chance one in 16.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from statistics import median_low

Figures = Mapping[str, float | None]
"""Of one run, by name; None: there was nothing to measure."""

THROUGH = 0.95
"""Share of the first class's events that must come through for its goal to be kept."""
PERCENT = 0.01
LATENCY_STEP = 0.01
"""Seconds below which a difference in latency is none."""
DUST = 1e-9
"""Less than this is rounding."""


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much one way is better than the recorded one, in one goal."""

    goal: str
    by: float
    """At the median of the seeds; negative: worse. Seconds, or a share."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One way of steering."""

    place: int
    """Among those given, 0 the recorded one."""
    is_met: bool
    """Whether the first class keeps its goal, at the median."""
    difference: Difference | None
    """To the recorded one, in the first goal in which there surely is one; None: none."""


def ranked(runs: Sequence[Sequence[Figures]], classes: Sequence[str], goal: float) -> list[Ranked]:
    """Return the ways of steering, the best first; `runs` has the figures of each by seed, the recorded one first.

    `classes` have the most important first; `goal` is in seconds.
    """
    told = [list(_told(one, classes, goal)) for one in runs]
    order = sorted(range(len(runs)), key=lambda place: (_key(told[place]), place))
    return [
        Ranked(place, median_low(told[place][0].values) <= DUST, _difference(told[place], told[0])) for place in order
    ]


@dataclass(frozen=True, slots=True)
class _Told:
    """One goal of one way: less is better."""

    goal: str
    values: tuple[float, ...]
    """By seed."""
    step: float


def _told(runs: Sequence[Figures], classes: Sequence[str], goal: float) -> Iterator[_Told]:
    top, *others = classes
    yield _Told(f"{top} beyond its goal", tuple(_beyond(run, top, goal) for run in runs), LATENCY_STEP)
    yield _Told("use", tuple(-(run["use"] or 0.0) for run in runs), PERCENT)
    for name in others:
        yield _Told(f"{name} through", tuple(-_through(run, name) for run in runs), PERCENT)
    yield _Told(f"{top} P99", tuple(_latency(run, top) for run in runs), LATENCY_STEP)


def _beyond(run: Figures, top: str, goal: float) -> float:
    """Return by how many seconds the goal is missed; without end if too few events came through."""
    return inf if _through(run, top) < THROUGH else max(0.0, _latency(run, top) - goal)


def _latency(run: Figures, name: str) -> float:
    value = run[f"{name}.consumed_p99"]
    return inf if value is None else value


def _through(run: Figures, name: str) -> float:
    value = run[f"{name}.through"]
    return 1.0 if value is None else min(1.0, value)


def _key(told: Sequence[_Told]) -> list[float]:
    """Return the medians in whole steps: what is nearer than that is the same."""
    return [_steps(median_low(one.values), one.step, up=place == 0) for place, one in enumerate(told)]


def _steps(value: float, step: float, *, up: bool) -> float:
    if value == inf:
        return inf
    return ceil(value / step - DUST) if up else round(value / step)


def _difference(told: Sequence[_Told], recorded: Sequence[_Told]) -> Difference | None:
    for one, other in zip(told, recorded, strict=True):
        by = [theirs - ours if ours != theirs else 0.0 for ours, theirs in zip(one.values, other.values, strict=True)]
        is_sure = all(value > 0 for value in by) or all(value < 0 for value in by)
        if is_sure and abs(median_low(by)) >= one.step:
            return Difference(one.goal, median_low(by))
    return None
