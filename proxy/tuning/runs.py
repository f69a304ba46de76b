"""One run of the grid: the recorded load, steered one way, with the chance of one seed."""

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from proxy.simulation.figures import Figures
from proxy.simulation.scenario import Scenario
from proxy.simulation.scenario_run import EPOCH, simulate
from proxy.simulation.trace import Trace
from proxy.tuning.grid import Candidate
from proxy.tuning.measured import measured
from proxy.tuning.recording import Recording

OF_CLASS = ("consumed_p50", "consumed_p99")
OF_ALL = ("use", "queue_delay_p50", "queue_delay_p99", "nack_ratio", "lost")


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be simulated."""

    candidate: Candidate
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: some numbers, whatever the length of the run."""

    figures: Mapping[str, float | None]
    """As consumers saw it, by the names of `tidegate simulate`; and `through` of each class."""
    measured: Mapping[str, float]
    """As the bridge saw it, by its records."""


def run(scenario: Scenario, classes: tuple[str, ...], task: Run) -> Outcome:
    """Simulate; nothing is written anywhere. `classes` have the most important first."""
    # States and warnings of hours in seconds help nobody.
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    steered, policy = task.candidate.applied(scenario, task.seed)
    kept: list[Mapping[str, Any]] = []

    def keep(record: Mapping[str, Any]) -> None:
        if record["kind"] in {"class", "verdict"}:
            kept.append(record)

    trace = simulate(steered, policy, keep)
    figures = Figures(steered, trace)
    names = [f"{name}.{figure}" for name in classes for figure in OF_CLASS]
    return Outcome(
        {name: figures.value(name) for name in (*names, *OF_ALL)}
        | {f"{name}.through": through(steered, trace, name) for name in classes},
        measured(Recording.of(kept, EPOCH * 1000, scenario.seconds), classes[0], scenario.warm_up),
    )


def through(scenario: Scenario, trace: Trace, name: str) -> float | None:
    """Return what consumers began of a class after the warm-up, as a share of all that was left to be begun by then.

    Not goodput, which goes by what came meanwhile: a backlog came before. None if there was nothing.
    """
    begun, before, came = 0, 0, 0
    for key, stream in scenario.streams.items():
        if stream.priority == name:
            early = sum(at < scenario.warm_up for at in trace.consumed[key].at)
            before += early
            begun += len(trace.consumed[key].at) - early
            came += trace.offered[key].between(0, scenario.seconds)
    return begun / (came - before) if came > before else None
