"""`python -m tests.histories`: runs fault histories by their seeds, replays one, makes a failing one shorter."""

import argparse
import gc
import logging
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import NoReturn, TextIO

import structlog

from tests.histories import kept, wire_plan
from tests.histories import plan as memory_plan
from tests.histories.history import Result, live
from tests.histories.nakadi import plan as nakadi_plan
from tests.histories.nakadi.history import live as live_with_nakadi
from tests.histories.plan import Plan
from tests.histories.shrink import smallest

EXIT_VIOLATION = 1
Draw = Callable[[int], Plan]
_PLANS = {"memory": memory_plan, "wire": wire_plan, "nakadi": nakadi_plan}
MOST_SHOWN = 5
"""Failing seeds that are shown with their steps; all are named."""
PROGRESS_SECONDS = 10.0
"""Between two words on how far many histories have come, on stderr."""
MOST_STEPS = 60
"""Steps shown of a history, the last before its first violation."""
_HASH_SEED = "0"

_EPILOG = """
examples:
  python -m tests.histories --seeds 0..999      a thousand histories on all processors
  python -m tests.histories --wire --seeds 0..99  a hundred with the real clients inside
  python -m tests.histories --nakadi --seeds 0..99  a hundred with Nakadi as the log
  python -m tests.histories --wire --kept       those that are kept for the states in which their faults strike
  python -m tests.histories --replay 1381       one, step by step
  python -m tests.histories --shrink 1381       the fewest of its faults that still break it
exit codes: 0 no history shows what it must not, 1 one does, 2 a mistake in the arguments,
  130 or 143 interrupted by Ctrl-C or SIGTERM
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command; return the exit code."""
    options = _parser().parse_args(arguments)
    if (options.wire or options.nakadi) and os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        # The client goes through sets of names: their order is chance, too, and Python draws it when it starts.
        environment = os.environ | {"PYTHONHASHSEED": _HASH_SEED}
        os.execve(sys.executable, [sys.executable, "-m", "tests.histories", *arguments], environment)
    _be_quiet()
    for signum in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, _end)
    return _done(options)


def _end(signum: int, _frame: FrameType | None) -> NoReturn:
    """End at once: there is nothing to take down, and whatever an exception hits would tell of it at length."""
    os.write(sys.stdout.fileno(), b"interrupted\n")
    os._exit(128 + signum)


def _draw(plans: str, seed: int) -> Plan:
    plan: Plan = _PLANS[plans].draw(seed)
    return plan


def _done(options: argparse.Namespace) -> int:
    draw = partial(_draw, "nakadi" if options.nakadi else "wire" if options.wire else "memory")
    if options.replay is not None:
        plan = draw(options.replay)
        return _replay(plan if options.only is None else plan.only(options.only))
    if options.shrink is not None:
        return _shrink(draw(options.shrink))
    seeds = kept.seeds() if options.kept else options.seeds
    return _first(seeds, draw) if options.first else _run(seeds, options.jobs, draw, keeps=options.keep)


def _first(seeds: Sequence[int], draw: Draw) -> int:
    """Look for the first seed that fails, one after another."""
    for seed in seeds:
        result = _lived_plan(draw(seed), ends_at_first=True)
        gc.collect()
        if result.violations:
            _say(f"seed {seed}: {_summary(result)}")
            return EXIT_VIOLATION
    _say(f"seeds {seeds[0]}..{seeds[-1]}: no violation")
    return 0


def _run(seeds: Sequence[int], jobs: int, draw: Draw, *, keeps: bool) -> int:
    began = told = time.monotonic()
    used = Counter[str]()
    failing: dict[int, Result] = {}
    reached: dict[int, tuple[str, ...]] = {}
    for seed, result in _lived(seeds, jobs, draw):
        used.update(histories=1, events=result.events, writes=result.writes, letters=result.letters)
        used["faults"] += len(draw(seed).faults)
        used["virtual"] += round(1000 * result.seconds)
        reached[seed] = result.pairs
        if result.violations:
            failing[seed] = result
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            _say(f"{used['histories']:,} of {len(seeds):,} histories, {len(failing)} failed", sys.stderr)
    for seed, result in sorted(failing.items())[:MOST_SHOWN]:
        _show(draw(seed), result)
    _say(
        f"{used['histories']:,} histories, {used['faults']:,} faults, {used['events']:,} events, {used['writes']:,} "
        f"writes, {used['letters']:,} dead letters, {used['virtual'] / 1000:,.0f} virtual seconds "
        f"in {time.monotonic() - began:.1f} s: " + (f"{len(failing)} FAILED" if failing else "no violation")
    )
    if failing:
        _say("seeds: " + " ".join(map(str, sorted(failing))))
    elif keeps:
        after = kept.extended(kept.read(), dict(sorted(reached.items())))
        kept.write(after)
        _say(f"{len(after) - 1} seeds are kept, {len(set().union(*after.values()))} pairs of state and fault reached")
    return EXIT_VIOLATION if failing else 0


def _lived(seeds: Sequence[int], jobs: int, draw: Draw) -> Iterator[tuple[int, Result]]:
    """Live the histories in so many processes; which ends first comes first."""
    if jobs == 1:
        yield from ((seed, _live(draw(seed))) for seed in seeds)
        return
    context, left = get_context("spawn"), iter(seeds)
    living: dict[Connection, int] = {}
    for seed in islice(left, jobs):
        ours, theirs = context.Pipe()
        context.Process(target=_work, args=(theirs, draw), daemon=True).start()
        theirs.close()
        ours.send(seed)
        living[ours] = seed
    while living:
        for ready in [one for one in wait(list(living)) if isinstance(one, Connection)]:
            ended = living.pop(ready)
            try:
                result = ready.recv()
            except EOFError:
                raise SystemExit(f"the process that lived seed {ended} was killed") from None
            following = next(left, None)
            if following is None:
                ready.close()
            else:
                ready.send(following)
                living[ready] = following
            yield ended, result


def _work(seeds: Connection, draw: Draw) -> None:
    """Live what comes, until the command is gone, however it ended."""
    _be_quiet()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches this process, too, but the command answers for all
    with suppress(EOFError, ConnectionError):
        while True:
            seeds.send(_live(draw(seeds.recv())))


def _lived_plan(plan: Plan, *, ends_at_first: bool = False) -> Result:
    if isinstance(plan, nakadi_plan.NakadiPlan):
        return live_with_nakadi(plan)
    return live(plan, ends_at_first=ends_at_first)


def _live(plan: Plan) -> Result:
    result = _lived_plan(plan)
    gc.collect()  # rarely and at once: no history is slower for what the one before it left
    return result if result.violations else result.without_steps()


def _replay(plan: Plan) -> int:
    result = _lived_plan(plan)
    for at, step in result.steps:
        _say(f"  {at:8.3f} {step}")
    _say(f"seed {plan.seed}: {_summary(result)}, {result.digest[:16]}")
    return EXIT_VIOLATION if result.violations else 0


def _shrink(plan: Plan) -> int:
    every = range(len(plan.faults))
    if not _lived_plan(plan).violations:
        _say(f"seed {plan.seed} shows no violation: there is nothing to shrink")
        return 0
    kept = smallest(every, lambda numbers: bool(_lived_plan(plan.only(numbers)).violations))
    _say(f"{len(kept)} of {len(plan.faults)} faults are enough:")
    short = plan.only(kept)
    _show(short, _lived_plan(short), f" --only {','.join(map(str, sorted(kept))) or 'none'}")
    return EXIT_VIOLATION


def _show(plan: Plan, result: Result, only: str = "") -> None:
    settings = plan.settings
    limits = settings.limits
    _say(f"seed {plan.seed}: {_summary(result)}")
    _say(
        f"  {plan.replicas} replicas, {plan.partitions} partitions, inbox {limits.inbox_events}, uncommitted "
        f"{limits.uncommitted_events}, {plan.old:.0%} of the first ones old, {settings.class_budget.catch_up}"
    )
    for name, route in settings.routes.items():
        types = ", ".join(f"{one.name} ({one.priority})" for one in settings.event_types.values() if one.route == name)
        _say(
            f"  route {name} of {types or 'nothing'}: {route.policy} ({route.law}){' in shadow' * route.shadow}, "
            f"cap {route.cap}, window {route.most_in_flight}"
        )
    for fault in plan.faults:
        _say(f"  fault {fault}")
    first = next((at for at, (_, step) in enumerate(result.steps) if step.startswith("VIOLATION")), len(result.steps))
    for at, step in result.steps[max(0, first + 1 - MOST_STEPS) : first + 1]:
        _say(f"  {at:8.3f} {step}")
    nakadi = isinstance(plan, nakadi_plan.NakadiPlan)
    wire = "--nakadi " if nakadi else "" if plan.wire is None else "--wire "
    _say(f"  replay it by: python -m tests.histories {wire}--replay {plan.seed}{only}")


def _summary(result: Result) -> str:
    return f"FAILED: {'; '.join(result.violations)}" if result.violations else "no violation"


def _be_quiet() -> None:
    """States and warnings of thousands of lives would drown the result, and what clients leave in their own tasks."""
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _say(text: str, where: TextIO | None = None) -> None:
    print(text, file=where, flush=True)


def _seeds(text: str) -> range:
    first, _, last = text.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    if not seeds:
        raise ValueError(text)
    return seeds


def _numbers(text: str) -> frozenset[int]:
    return frozenset() if text == "none" else frozenset(int(number) for number in text.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.histories",
        description="The production bridge under seeded faults, in memory and virtual time.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--seeds", type=_seeds, metavar="A..B", help="run these histories")
    what.add_argument("--kept", action="store_true", help="run those that are kept; with --wire")
    what.add_argument("--replay", type=int, metavar="SEED", help="run one and show its steps")
    what.add_argument("--shrink", type=int, metavar="SEED", help="leave out faults for as long as it fails")
    parser.add_argument("--only", type=_numbers, metavar="N,N", help="with --replay: these faults alone, from 0")
    inside = parser.add_mutually_exclusive_group()
    inside.add_argument(
        "--nakadi",
        action="store_true",
        help="with the real clients inside: a scripted Nakadi and RabbitMQ on a network in memory",
    )
    inside.add_argument(
        "--wire",
        action="store_true",
        help="with the real clients inside: a scripted Kafka and RabbitMQ on a network in memory",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="with --wire --seeds: keep those that reach a pair of state and fault that none has reached",
    )
    parser.add_argument("--first", action="store_true", help="with --seeds: one by one, up to the first violation")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per processor)")
    return parser
