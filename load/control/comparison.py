"""One scenario under several policies, side by side, judged by what the scenario itself expects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from load.control.calibration import busy_share
from load.control.happenings import for_real, impossible, left_out
from load.control.offer import PRELOAD_BYTES, preload_bytes
from load.control.run import Result, Run
from load.stack import Stack
from load.terminal import say
from proxy.simulation import scenario_file
from proxy.simulation.figures import Figures, Judged
from proxy.simulation.scenario import Queue, Scenario
from proxy.simulation.scenario_checks import figure_names

DECISIVE = "class_budget"
"""The policy whose misses count; the others are shown beside it."""
LATE_SECONDS = 1.0
"""A generator that handed events over later than this after their due instant could not keep its schedule."""

UNDISTURBED = 0.06
"""Seconds that the top class's P99 may take without load; more tells of the machine, not of Tidegate."""
FULLY_BUSY = 0.99
"""Share of their time that consumers work on a full queue, if nothing but RabbitMQ keeps them waiting."""
ATTEMPTS = 3
"""A measurement is repeated so often where it did not come up to these two."""


@dataclass(frozen=True)
class Compared:
    """What became of one scenario."""

    scenario: Scenario
    scales: Mapping[str, float] = field(default_factory=dict)
    """Share of their time that the consumers of each queue work while it is full."""
    results: Mapping[str, Result] = field(default_factory=dict)
    """By policy."""
    unloaded: Result | None = None
    skipped: str | None = None
    """Why it was not run."""
    left_out: Sequence[str] = ()
    """What of it did not happen, and why."""

    def figures(self, policy: str) -> Figures:
        """Return the figures of one run."""
        return Figures(self.results[policy].scenario, self.results[policy].trace)

    def judged(self, policy: str) -> list[Judged]:
        """Return every expectation that is judged on real brokers, with what came of it."""
        unloaded = self._unloaded_figures()
        figures = self.figures(policy)
        return [figures.judge(one, unloaded) for one in self.scenario.expect]

    def unloaded_value(self, figure: str) -> float | None:
        """Return a figure of the run without load; None if there was none."""
        figures = self._unloaded_figures()
        return None if figures is None else figures.value(figure)

    def faults(self) -> list[str]:
        """Return, in words, what makes the figures worthless or the bridge wrong."""
        found = []
        for policy, result in self.results.items():
            if result.trace.lost:
                found.append(f"{policy}: {result.trace.lost} events LOST")
            if result.failed:
                found.append(f"{policy}: Kafka did not take {result.failed} events")
            if result.worst_lateness > LATE_SECONDS and not any(one.what == "log_lost" for one in self.scenario.events):
                found.append(f"{policy}: the generator was up to {result.worst_lateness:.1f} s late")
        return found

    def missed(self) -> list[Judged]:
        """Return the expectations that the decisive policy misses."""
        return [one for one in self.judged(DECISIVE) if not one.holds] if DECISIVE in self.results else []

    def _unloaded_figures(self) -> Figures | None:
        if self.unloaded is None:
            return None
        return Figures(self.unloaded.scenario, self.unloaded.trace)


class Comparison:
    """Runs scenarios on one stack; everything that it makes at the brokers has names of its own."""

    def __init__(self, stack: Stack, policies: Sequence[str], folder: Path) -> None:
        self._stack = stack
        self._policies = policies
        self._folder = folder
        self._scales: dict[str, float] = {}
        """By what the consumers are."""
        self._count = 0

    async def compare(self, scenario: Scenario) -> Compared:
        """Run the scenario under every policy. Raises WorkerError, WireError, KafkaError or StackError."""
        why = impossible(scenario)
        if why is None and (size := preload_bytes(scenario)) > PRELOAD_BYTES:
            why = f"its endless streams and backlogs would put {size / 2**30:.0f} GiB into the log"
        if why is not None:
            say(f"{scenario.name}: skipped, {why}")
            return Compared(scenario, skipped=why)
        missing, scenario = left_out(scenario), for_real(scenario)
        scales = {name: await self._scale(queue, scenario.seed) for name, queue in scenario.queues.items()}
        needs_unloaded = any(one.plus_unloaded for one in scenario.expect)
        unloaded = await self._unloaded(scenario, scales) if needs_unloaded else None
        results = {policy: await self._run(scenario, policy, policy, scales) for policy in self._policies}
        return Compared(scenario, scales, results, unloaded, left_out=missing)

    async def _unloaded(self, scenario: Scenario, scales: Mapping[str, float]) -> Result:
        """Run the top class alone, again if something else kept the machine busy; return the quickest run."""
        figure = f"{scenario.classes[0]}.consumed_p99"
        alone = scenario_file.unloaded(scenario)
        best, least = None, inf
        for attempt in range(1, ATTEMPTS + 1):
            result = await self._run(alone, "static", f"unloaded-{attempt}", scales)
            p99 = Figures(alone, result.trace).value(figure) or 0.0
            if best is None or p99 < least:
                best, least = result, p99
            if least <= UNDISTURBED:
                break
            say(f"  P99 {p99:.3f} s without load: the machine was busy elsewhere")
        assert best is not None
        return best

    async def _scale(self, queue: Queue, seed: int) -> float:
        """Return what such consumers take of a full queue, measured once."""
        told = queue.model_dump(include={"capacity", "consumers", "prefetch", "service", "kind"})
        key = f"{sorted(told.items())}"
        if key not in self._scales:
            say(f"what {queue.consumers} consumers of {queue.capacity:g}/s take of a full queue")
            share = 0.0
            for _ in range(ATTEMPTS):  # what kept the machine busy elsewhere would flatter every use
                share = max(share, await busy_share(self._stack, queue, seed=seed))
                if share >= FULLY_BUSY:
                    break
            self._scales[key] = share
        return self._scales[key]

    async def _run(self, scenario: Scenario, policy: str, called: str, scales: Mapping[str, float]) -> Result:
        self._count += 1
        prefix = f"{scenario.name}-{called}-{self._count}"
        say(f"{scenario.name}, {called}, {scenario.seconds:g} s")
        return await Run(self._stack, scenario, policy, self._folder / scenario.name / called, prefix, scales).run()


def document(compared: Compared) -> dict[str, Any]:
    """Return all that was found, for the JSON."""
    scenario = compared.scenario
    found: dict[str, Any] = {"why": scenario.why, "seed": scenario.seed, "seconds": scenario.seconds}
    if compared.skipped is not None:
        return found | {"skipped": compared.skipped}
    names = list(figure_names(scenario))
    runs = {}
    for policy, result in compared.results.items():
        figures = compared.figures(policy)
        told = sorted({f"told.{one.cause}" for one in result.trace.told})
        runs[policy] = {
            "figures": {name: figures.value(name) for name in [*names, *told]},
            "expectations": [_expected(one) for one in compared.judged(policy)],
            "generator_worst_lateness_s": result.worst_lateness,
            "tidegate_cores": result.cpu,
            "load_average": result.machine_load,
        }
    top = scenario.classes[0]
    return found | {
        "full_queue_share": dict(compared.scales),
        "unloaded": {name: compared.unloaded_value(name) for name in (f"{top}.consumed_p50", f"{top}.consumed_p99")},
        "policies": runs,
        "left_out": list(compared.left_out),
        "faults": compared.faults(),
    }


def _expected(judged: Judged) -> dict[str, Any]:
    expectation = judged.expectation
    return {
        "figure": expectation.figure,
        "since": expectation.since,
        "until": expectation.until,
        "value": judged.value,
        "at_least": judged.at_least,
        "at_most": judged.at_most,
        "holds": judged.holds,
        "why": expectation.why,
    }
