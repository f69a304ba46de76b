"""Simulates every scenario under every policy and rate law, in processes beside each other, where it was left off."""

import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

import structlog

from load.compare.book import Book, digest
from load.compare.outcome import outcome
from load.terminal import say
from proxy.errors import SettingsError
from proxy.settings import Policy, Route
from proxy.simulation import scenario_file
from proxy.simulation.figures import Figures
from proxy.simulation.scenario import Scenario
from proxy.simulation.scenario_run import simulate

NICENESS = 19
"""Whatever else runs on the machine goes first: virtual time does not mind."""
DEFAULT_POLICY: str = Route.model_fields["policy"].default


class Job(NamedTuple):
    """One scenario under one policy."""

    scenario: str
    policy: str


def compared() -> tuple[str, ...]:
    """Return policies, laws and the simulator's rivals, without what is the same as another one.

    The default policy is its default law; one that is only watched lets all go, as `static` does.
    """
    return tuple(one for one in scenario_file.simulated_policies() if one not in {DEFAULT_POLICY, scenario_file.SHADOW})


def missing(book: Book, scenarios: Iterable[str], policies: Sequence[str]) -> Iterator[Job]:
    """Yield what is not in the book yet, the shortest scenarios first: the last one is an hour."""
    paths = scenario_file.shipped()
    loaded = sorted((scenario_file.load(paths[name]) for name in scenarios), key=lambda scenario: scenario.seconds)
    for scenario in loaded:
        for policy in policies:
            if scenario.only != "real" and not book.knows(scenario.name, policy, digest(paths[scenario.name])):
                yield Job(scenario.name, policy)


def run_all(book: Book, jobs: Sequence[Job], *, processes: int, code: str) -> None:
    """Do the jobs and write each into the book as it ends; `code` is the version that they run.

    Raises BrokenProcessPool when a process died; what had ended by then is in the book.
    """
    paths = scenario_file.shipped()
    context = multiprocessing.get_context("spawn")
    began = time.monotonic()
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_prepare) as pool:
        running: dict[Future[dict[str, Any]], Job] = {pool.submit(live, job, paths[job.scenario]): job for job in jobs}
        try:
            for done, future in enumerate(as_completed(running), start=1):
                job, run = running[future], future.result()
                about = {"digest": digest(paths[job.scenario]), **_about(scenario_file.load(paths[job.scenario]))}
                book.simulated(job.scenario, about, job.policy, run | {"code": code})
                left = (time.monotonic() - began) / done * (len(jobs) - done)
                its = f"{job.scenario}, {job.policy}, {run['took']:.0f} s"
                say(f"{done} of {len(jobs)}: {its}; {left / 60:.0f} min left")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()  # what it simulates would go on for a minute
            raise


def live(job: Job, path: Path) -> dict[str, Any]:
    """Simulate one job; return its figures, or why it can't be."""
    began = time.process_time()
    scenario = scenario_file.load(path)
    try:
        trace = simulate(scenario, job.policy)
    except SettingsError as error:
        return {"refused": " ".join(error.mistakes), "took": 0.0}
    figures, alone = Figures(scenario, trace), unloaded(path)
    judged = [figures.judge(one, alone) for one in scenario.expect if one.only != "real"]
    run = outcome(scenario, trace, judged)
    if (why := unfit(scenario, job.policy)) is not None:
        run["unfit"] = why
    return run | {"took": round(time.process_time() - began, 1)}


def unfit(scenario: Scenario, policy: str) -> str | None:
    """Return in words why a policy can't show here what it is for; None if it can."""
    queues = scenario.queues.values()
    if policy == "per_type" and any(queue.most_messages is None or queue.sheds for queue in queues):
        return "a queue refuses nothing, so nothing tells of slow consumers"
    if policy in get_args(Policy) and any(q.autoscale is not None and q.autoscale.by == "wanted" for q in queues):
        return "tells no wanted consumers, so none are added"
    return None


@cache
def unloaded(path: Path) -> Figures | None:
    """Return the figures that a scenario's ranges count from; None if none does."""
    scenario = scenario_file.load(path)
    if not any(one.plus_unloaded for one in scenario.expect):
        return None
    alone = scenario_file.unloaded(scenario)
    return Figures(alone, simulate(alone, "static"))


def _about(scenario: Scenario) -> dict[str, Any]:
    return {"seconds": scenario.seconds, "classes": list(scenario.classes)}


def _prepare() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends its processes
    os.nice(NICENESS)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
