"""Makes a fleet: its files by as many processes as there are processors, its truth from what they report."""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from load.metric_fleet import proof
from load.metric_fleet.files import FOLDERS, Written, write
from load.metric_fleet.fleet import Fleet
from load.metric_fleet.kinds import ROUTES, kinds
from load.metric_fleet.life import Part, parts
from load.metric_fleet.plan import ROUTE_MS, TYPE_MS, FleetError, Plan
from load.metric_fleet.samples import Pools
from load.metric_fleet.truth import truth
from load.terminal import say

SAY_SECONDS = 5.0
"""Between two lines of progress."""
_PER_TICK = 3 + 2 * len(ROUTES)
"""Records of a process a second: of each class, and of each route with its verdict."""
_made: "list[tuple[Path, Fleet, Pools]]" = []
"""In a worker: what it works on."""


def records_a_minute(plan: Plan) -> float:
    """Return about how many records a fleet writes: two for each type and owner of some of its partitions."""
    owners = sum(
        plan.replicas * (1 - (1 - 1 / plan.replicas) ** kind.partitions) for kind in kinds(plan) if kind.rate
    )  # fmt: skip
    return 60_000 / ROUTE_MS * _PER_TICK * plan.replicas + 60_000 / TYPE_MS * 2 * owners


def make(out: Path, plan: Plan, workers: int | None = None) -> dict[str, Any]:
    """Write the logs of a fleet and `truth.json` into a folder that is not there yet, or empty; return the truth.

    `workers` processes make it, as many as there are processors if not told; one is this process itself.
    Raises `FleetError` if the folder holds anything.
    """
    if out.exists() and any(out.iterdir()):
        raise FleetError(f"{out} is not empty: choose another folder, or remove it")
    fleet = Fleet(plan)
    if plan.events:
        proof.check_size(plan, sum(kind.rate * kind.partitions for kind in fleet.kinds))
    for folder in FOLDERS:
        (out / folder).mkdir(parents=True, exist_ok=True)
    tasks = [(life.number, number) for life in fleet.lives for number in range(parts(life))]
    written = list(_written(out, plan, tasks, min(workers or os.cpu_count() or 1, len(tasks))))
    proofs = proof.write(out, fleet) if plan.events else None
    say("fleet: the truth of every position")
    found = truth(fleet, written, proofs)
    with (out / "truth.json").open("w", encoding="utf-8") as file:
        json.dump(found, file, separators=(",", ":"))
        file.write("\n")
    return found


def _written(out: Path, plan: Plan, tasks: list[tuple[int, int]], workers: int) -> Iterator[Written]:
    """Yield every file when it is written, in the order of the tasks, whoever is first."""
    started = said = time.monotonic()
    records = 0
    made: Iterator[Written]
    with ExitStack() as running:
        if workers == 1:
            _prepare(out, plan)
            made = map(_write, tasks)
        else:
            spawn = get_context("spawn")
            made = running.enter_context(ProcessPoolExecutor(workers, spawn, _prepare, (out, plan))).map(_write, tasks)
        for number, one in enumerate(made, 1):
            yield one
            records += one.lines
            now = time.monotonic()
            if now - said >= SAY_SECONDS or number == len(tasks):
                said = now
                rate = records / (now - started)
                say(f"fleet: {number} of {len(tasks)} files, {records:,} records, {rate:,.0f} a second")


def _prepare(out: Path, plan: Plan) -> None:
    _made[:] = [(out, Fleet(plan), Pools(plan))]


def _write(task: tuple[int, int]) -> Written:
    (out, fleet, pools), (life, number) = _made[0], task
    return write(out, fleet.plan, Part(fleet, pools, fleet.lives[life], number), number)
