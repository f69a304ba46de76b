"""How much quicker `tidegate tune` makes a grid's runs over Spark than one after the other: the same runs, in turn.

    python -m load.tune_speed --runs 16 --json FILE

Each block of runs is made by a plain loop in this process, by Spark on all cores (`proxy.tuning.spread`, what `tidegate
tune` calls), and by bare processes, one a core, which shows what the machine itself gives: on cores that are shared,
less than their number. Both are warm before. CPU is told beside the time: where others take part of the cores, a loop
on one of them suffers otherwise than what wants them all. Outcomes and ranks must be those of the loop.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import psutil

from load import machine
from load.terminal import command_line, say
from proxy.reports.session import spark_session
from proxy.simulation.scenario import Scenario
from proxy.tuning.goals import ranked
from proxy.tuning.grid import Candidate
from proxy.tuning.runs import Outcome, Run, run
from proxy.tuning.spread import spread

GOAL = 0.9
"""Of the cores."""
CLASSES = ("P1", "P2", "P3")
SECONDS = 600
TYPES = {"P1": 2, "P2": 3, "P3": 5}
"""Event types of each class: ten."""
RATES = {"P1": 3.0, "P2": 4.0, "P3": 5.0}
"""Events a second of one type: 43 together, of which the consumers take 36."""
WAYS = (Candidate(), Candidate("cubic"), Candidate("static"), Candidate("per_type"))
P1_GOAL = 0.5
RUNS_A_CORE = 4
"""Of a block, which ends with cores that have nothing left to do: less than an eighth of its time, on average."""

EXAMPLES = """\
examples:
  python -m load.tune_speed --json out/tune-speed.json               16 runs of ten minutes, about 9 minutes
  python -m load.tune_speed --runs 500 --json out/tune-speed.json    four hours

exit codes: 0 the goal is met; 1 it is missed, or outcomes differ
"""

Spread = Callable[[Scenario, Sequence[Run]], list[Outcome]]


def scenario(seconds: int) -> Scenario:
    """Return ten event types whose consumers can't take all that comes."""
    streams = {
        f"{name.lower()}-{number}": {"priority": name, "rate": RATES[name]}
        for name, types in TYPES.items()
        for number in range(types)
    }
    return Scenario.model_validate(
        {
            "name": "tune-speed",
            "why": "what a grid is tried on",
            "seconds": seconds,
            "warm_up": min(15, seconds // 2),
            "queues": {"work": {"capacity": 36}},
            "routes": {"shop": {"queues": ["work"]}},
            "streams": streams,
            "expect": [{"figure": "use", "at_least": 0, "why": "it is not judged"}],
        }
    )


def blocks(runs: int, cores: int) -> list[list[Run]]:
    """Return the runs, all ways with as many seeds each as that takes, in blocks that keep every core at work."""
    every = [Run(way, seed) for seed in range(1, -(-runs // len(WAYS)) + 1) for way in WAYS][:runs]
    size = RUNS_A_CORE * cores
    return [every[first : first + size] for first in range(0, len(every), size)]


def loop(load: Scenario, tasks: Sequence[Run]) -> list[Outcome]:
    """Make one run after the other."""
    return [run(load, CLASSES, task) for task in tasks]


class Used:
    """What this process and those below it, Java among them, have used; what those used that have ended counts, too."""

    def __init__(self) -> None:
        self._by_process: dict[psutil.Process, float] = {}

    def seconds(self) -> float:
        """Return the processor time so far, as far as it was seen."""
        own = psutil.Process()
        for one in (own, *own.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                self._by_process[one] = sum(one.cpu_times()[:2])
        return sum(self._by_process.values())


def measured(
    ways: dict[str, Spread], tasks: Sequence[Run], seconds: int, used: Used
) -> tuple[dict[str, float], dict[str, list[Outcome]]]:
    """Return the seconds that each way took for these runs, in turn, and what came of them."""
    load = scenario(seconds)
    took: dict[str, float] = {}
    found: dict[str, list[Outcome]] = {}
    for name, way in ways.items():
        say(f"{len(tasks)} runs: {name}")
        began, before = time.monotonic(), used.seconds()
        found[name] = way(load, tasks)
        took |= {name: time.monotonic() - began, f"{name}_cpu": used.seconds() - before}
    return took, found


def ranks(tasks: Sequence[Run], outcomes: Sequence[Outcome]) -> list[int]:
    """Return the places of the ways that every seed was tried with, the best first."""
    of = [[one.figures for task, one in zip(tasks, outcomes, strict=True) if task.candidate == way] for way in WAYS]
    seeds = min(map(len, of))
    return [one.place for one in ranked([some[:seeds] for some in of], CLASSES, P1_GOAL)]


def main() -> int:
    """Measure, print and save; return 0 if the goal is met and everything equal, else 1."""
    options = _parser().parse_args()
    cores = os.cpu_count() or 1
    before = os.getloadavg()[0]
    grid = blocks(options.runs, cores)
    tasks = [task for block in grid for task in block]
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-tune-speed-") as folder,
        spark_session(f"local[{cores}]", Path(folder, "spark.log")) as spark,
        multiprocessing.get_context("spawn").Pool(cores) as pool,
    ):
        ways: dict[str, Spread] = {
            "loop": loop,
            "spark": lambda load, some: spread(spark.sparkContext, load, CLASSES, some, lambda _: None),
            "processes": lambda load, some: pool.map(partial(run, load, CLASSES), some, 1),
        }
        say("warming up")
        used = Used()
        measured(ways, [Run(way, seed) for seed in range(cores) for way in WAYS], 5, used)
        found = [measured(ways, block, options.seconds, used) for block in grid]
    took = [one for one, _ in found]
    outcomes = {name: [one for _, some in found for one in some[name]] for name in ways}
    places = {name: ranks(tasks, some) for name, some in outcomes.items()}
    equal = all(outcomes[name] == outcomes["loop"] and places[name] == places["loop"] for name in ways)
    quicker = {
        name: sum(one["loop"] for one in took) / sum(one[name] for one in took) / cores
        for name in ("spark", "processes")
    }
    dearer = sum(one["spark_cpu"] for one in took) / sum(one["loop_cpu"] for one in took)
    by_block = [one["loop"] / one["spark"] / cores for one in took]
    about = {"cores": cores, "load_before": before, "load_after": os.getloadavg()[0], "tidegate": machine.commit()}
    result = {
        "of_cores": quicker,
        "of_cores_by_block": by_block,
        "cpu_of_loop": dearer,
        "equal": equal,
        "ranks": places["spark"],
        "goal": GOAL,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "measured": "tune-speed",
        **about,
        "runs": len(tasks),
        "seconds": options.seconds,
        **result,
        "blocks": took,
    }
    options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(
        f"{len(tasks)} runs of {options.seconds} simulated seconds, ten types: over Spark {quicker['spark']:.2f} x"
        f" {cores} cores (blocks: median {statistics.median(by_block):.2f}, {min(by_block):.2f} to"
        f" {max(by_block):.2f}), bare processes {quicker['processes']:.2f}; goal {GOAL};"
        f" CPU {dearer:.2f} of the loop's; outcomes and ranks"
        f" {'equal' if equal else 'DIFFER'}"
    )
    return 0 if equal and quicker["spark"] >= GOAL else 1


def _parser() -> argparse.ArgumentParser:
    parser = command_line("load.tune_speed", (__doc__ or "").splitlines()[0], EXAMPLES)
    parser.add_argument("--runs", type=int, default=16, metavar="N", help="how many (default: 16)")
    parser.add_argument("--seconds", type=int, default=SECONDS, metavar="N", help="simulated, of each (default: 600)")
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="where the figures go")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
