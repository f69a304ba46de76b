"""The ten minutes on real brokers: few scenarios, each for a reason, under those policies that it tells apart."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from load import machine
from load.compare.book import Book
from load.compare.outcome import outcome
from load.control.comparison import Compared, Comparison
from load.control.results import text
from load.stack import Stack
from load.terminal import run, say
from proxy.simulation import scenario_file
from proxy.simulation.scenario import Scenario
from proxy.simulation.trace import Trace


class Part(NamedTuple):
    """One scenario, under what, and why just that."""

    scenario: str
    policies: tuple[str, ...]
    why: str


PLAN = (
    Part(
        "flash-campaign",
        ("static", "per_type", "aimd", "cubic", "vegas"),
        "what control is for; and confirms are real here, of which the simulation knows too little to judge `vegas`",
    ),
    Part("saw", ("aimd", "cubic"), "where the laws differ most in the simulation"),
)
"""Nine minutes of traffic with the runs that the goals count from; on a machine of two cores ten in all."""


def measure(book: Book, folder: Path, plan: Sequence[Part] = PLAN) -> None:
    """Run the plan on a stack of its own, writing the book after each scenario; `folder` takes the logs.

    Raises WorkerError, WireError, KafkaError, SetupError or StackError.
    """
    policies = {policy for part in plan for policy in part.policies}
    scenario_file.try_laws(sorted(policies))
    with Stack.up() as stack:
        about = machine.describe(stack)
        if about["warning"]:
            say(f"Warning: {about['warning']}.")
        for part in plan:
            scenario = scenario_file.load(scenario_file.shipped()[part.scenario])
            compared = run(Comparison(stack, part.policies, folder).compare(scenario))
            print(text(compared), flush=True)
            book.real(part.scenario, kept(compared, about, part.why))


def kept(compared: Compared, about: Mapping[str, Any], why: str) -> dict[str, Any]:
    """Return what the book keeps of one scenario: where it ran, and each policy's figures with its curve."""
    scenario = compared.scenario
    top = scenario.classes[0]
    unloaded = compared.unloaded_value(f"{top}.consumed_p99")
    runs = {
        policy: outcome(result.scenario, result.trace, compared.judged(policy))
        | {"load": round(result.machine_load, 1), "cores": round(result.cpu, 2), "curve": curve(scenario, result.trace)}
        for policy, result in compared.results.items()
    }
    return {
        "why": why,
        "seconds": scenario.seconds,
        "classes": list(scenario.classes),
        "overload": overload(scenario, next(iter(compared.results.values())).trace),
        "unloaded_p1_p99": None if unloaded is None else round(unloaded, 4),
        "machine": about["machine"]["processor"],
        "machine_cores": os.cpu_count(),
        "versions": about["versions"],
        "faults": compared.faults(),
        "runs": runs,
    }


def curve(scenario: Scenario, trace: Trace) -> list[float | None]:
    """Return for each second the longest that a top-class event had waited when its work began; None without any."""
    worst: list[float | None] = [None] * int(scenario.seconds)
    for name, stream in scenario.streams.items():
        if stream.priority == scenario.classes[0]:
            for at, seconds in zip(trace.consumed[name].at, trace.consumed[name].seconds, strict=True):
                place = int(at)
                if 0 <= place < len(worst):
                    worst[place] = round(max(worst[place] or 0.0, seconds), 3)
    return worst


def overload(scenario: Scenario, trace: Trace) -> list[float] | None:
    """Return from when to when more was due than the consumers of all queues take; None if never."""
    capacity = sum(queue.capacity for queue in scenario.queues.values())
    over = [
        second
        for second in range(int(scenario.seconds))
        if sum(counts.between(second, second + 1) for counts in trace.offered.values()) > capacity
    ]
    return [float(over[0]), float(over[-1] + 1)] if over else None
