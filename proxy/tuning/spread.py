"""Runs of a grid over the cores of a machine or a cluster: one Spark task is one simulation."""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from proxy.simulation.scenario import Scenario
from proxy.tuning.runs import Outcome, Run, run

if TYPE_CHECKING:
    from pyspark import SparkContext

Say = Callable[[str], None]

LOOK = 5.0
"""Seconds between two looks at how many runs are done."""


def spread(
    context: "SparkContext", scenario: Scenario, classes: tuple[str, ...], tasks: Sequence[Run], say: Say
) -> list[Outcome]:
    """Return what came of every run, in their order; `say` is told every few seconds how many are done."""
    if str(context.master).startswith("local"):
        context.pythonExec = sys.executable  # else the first `python3` of the PATH, whatever is installed there
    # A task for each run: one that takes long holds nobody up but itself.
    work = context.parallelize(tasks, len(tasks)).map(partial(run, scenario, classes))
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(context, len(tasks), done, say), daemon=True)
    watch.start()
    try:
        return work.collect()
    finally:
        done.set()
        watch.join()


def _watch(context: "SparkContext", count: int, done: threading.Event, say: Say) -> None:
    tracker, began, before = context.statusTracker(), time.monotonic(), 0
    while not done.wait(LOOK):
        infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        ended = sum(info.numCompletedTasks for info in infos if info is not None)
        if ended > before:
            left = (time.monotonic() - began) / ended * (count - ended)
            say(f"{ended} of {count} runs, about {left:.0f} s left")
            before = ended
