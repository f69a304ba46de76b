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
from proxy.tuning.grid import Candidate
from proxy.tuning.measured import measured
from proxy.tuning.recording import Recording

OF_CLASS = ("consumed_p50", "consumed_p99", "goodput")
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
    """As consumers saw it, by the names of `tidegate simulate`."""
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
        {name: figures.value(name) for name in (*names, *OF_ALL)},
        measured(Recording.of(kept, EPOCH * 1000, scenario.seconds), classes[0], scenario.warm_up),
    )
