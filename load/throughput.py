"""Throughput: Tidegate and others in turn, over the same events, timed at the queue or at its consumer."""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import psutil

from load import machine
from load.checker import Tally
from load.contenders.raw import PARTITIONS, WINDOW
from load.contenders.starting import Contender, Course, contenders
from load.drain import Drain
from load.events import Bulk
from load.kafka import KafkaError, KafkaView, await_committed
from load.measure import Span, verify, watch
from load.producer import fill
from load.ratios import WORDS, Judged, Run, cells, judge
from load.stack import Stack
from load.tables import throughput_table, verdict_lines
from load.terminal import say
from load.wire import Wire
from load.worker import Worker, WorkerError

SEED = 20_240_422
QUEUE_TYPES: Mapping[str, dict[str, str]] = {"classic": {}, "quorum": {"x-queue-type": "quorum"}}
RUN_SECONDS = 60.0
"""One run may take so long, and a second more for every 1,000 events."""
END_SECONDS = 20.0
"""A contender may take so long to commit and end once the last event is in the queue."""
TOTAL_SECONDS = 1_800.0
"""No round begins after this."""


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    rounds: int = 5
    """Kept; the first one comes before them and is discarded."""
    events: int = 100_000
    sizes: tuple[int, ...] = (256, 1024)
    queue_types: tuple[str, ...] = tuple(QUEUE_TYPES)
    without: tuple[str, ...] = ()
    """Contenders left out."""
    is_judged: bool = True

    @classmethod
    def quick(cls) -> "Plan":
        """Return a plan that shows the way in a minute or two and whose figures say little."""
        return cls(rounds=1, events=20_000, sizes=(256,), is_judged=False)


@dataclass
class Bench:
    """What all runs share, and what they found."""

    stack: Stack
    wire: Wire
    plan: Plan
    folder: Path
    properties: dict[int, bytes] = field(default_factory=dict)
    """Content header of a message of Tidegate's by size of value, learnt in its first run."""
    runs: list[Run] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What runs of Tidegate's lost, repeated or displaced, in words."""
    remarks: list[str] = field(default_factory=list)
    """The same of others."""

    @cached_property
    def entered(self) -> Mapping[str, Contender]:
        """Return who is measured."""
        return contenders(self.plan.without)

    @property
    def counts(self) -> list[int]:
        """Return the events of each partition."""
        return [self.plan.events // PARTITIONS] * PARTITIONS

    @property
    def queue(self) -> str:
        """Return the queue of the next run: each has a name of its own, because quorum queues are deleted slowly."""
        return f"bench.{len(self.runs):04d}"

    def topic(self, size: int) -> str:
        """Return the topic that holds the events of this size."""
        return f"bench.{size}"


def measure(stack: Stack, plan: Plan, file: Path) -> int:
    """Run all rounds, print the tables, write the JSON; return the exit code.

    Raises WorkerError, WireError or KafkaError when a contender or a broker fails.
    """
    about = machine.describe(stack)
    if about["warning"]:
        say(f"Warning: {about['warning']}.")
    with Wire(stack.amqp_port) as wire, tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder:
        bench = Bench(stack, wire, plan, Path(folder))
        for size in plan.sizes:
            say(f"producing {plan.events:,} events of {size} B")
            asyncio.run(_produce(bench, size))
        _rounds(bench)
    found = cells(bench.runs)
    judged = judge(found, is_judged=plan.is_judged)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(_record(about, bench, judged), indent=1) + "\n", encoding="utf-8")
    print(throughput_table(found))
    print(verdict_lines(judged))
    for fault in bench.faults:
        print(f"FAULT: {fault}")
    say(f"every run is in {file}")
    return 1 if bench.faults or any(one.met is False for one in judged) else 0


async def _produce(bench: Bench, size: int) -> None:
    async with KafkaView(bench.stack.kafka) as kafka:
        await kafka.create(bench.topic(size), PARTITIONS)
    await fill(bench.stack.kafka, bench.topic(size), bench.counts, Bulk(size, seed=SEED))


def _rounds(bench: Bench) -> None:
    began = time.monotonic()
    names = list(bench.entered)
    for number in range(bench.plan.rounds + 1):
        if time.monotonic() - began > TOTAL_SECONDS:
            say(f"stopping after {number} rounds: {TOTAL_SECONDS / 60:.0f} minutes are over")
            break
        # Whoever goes first meets another broker than whoever goes last: each does both.
        turn = number % len(names)
        for size in bench.plan.sizes:
            for queue_type in bench.plan.queue_types:
                for name in names[turn:] + names[:turn]:
                    _one(bench, name, queue_type, size, number)


def _one(bench: Bench, name: str, queue_type: str, size: int, number: int) -> None:
    contender = bench.entered[name]
    course = Course(
        bench.stack, bench.folder, f"{name}-{queue_type}-{size}-{number}", bench.topic(size), bench.queue,
        sum(bench.counts), size, SEED, bench.properties.get(size, b""),
    )  # fmt: skip
    bench.wire.declare(course.queue, QUEUE_TYPES[queue_type])
    span, tally = _drained(bench, contender, course) if contender.is_consumed else _kept(bench, name, contender, course)
    bench.wire.delete(course.queue)
    if tally.lost or tally.duplicates or tally.late or tally.foreign:
        words = f"{course.group}: {tally.lost} lost, {tally.duplicates} repeated, {tally.late} late"
        (bench.faults if contender.is_ours else bench.remarks).append(words)
    per_100k = 100_000 / span.events
    bench.runs.append(
        Run(
            contender=name, queue_type=queue_type, size=size, round=number, rate=span.rate, cpu=span.cpu * per_100k,
            rabbitmq_cpu=span.broker_cpu["rabbitmq"] * per_100k, kafka_cpu=span.broker_cpu["kafka"] * per_100k,
            peak_rss_mb=span.peak_rss / 1e6, start_cpu=span.start_cpu,
            delivered=tally.arrived, lost=tally.lost, duplicates=tally.duplicates, late=tally.late,
        )
    )  # fmt: skip
    say(
        f"round {number or '0, discarded'}, {queue_type}, {size} B, {name}: {span.rate:,.0f}/s, "
        f"{span.cpu * per_100k:.2f} CPU-s/100k{', order lost' if tally.late else ''}"
    )


def _kept(bench: Bench, name: str, contender: Contender, course: Course) -> tuple[Span, Tally]:
    """Run it, timed by how many messages the queue holds; then read them."""
    with contender.start(course) as worker:
        span = _watched(bench, lambda: bench.wire.count(course.queue).ready, worker, course)
        _end(bench, contender, course, worker)
    came = bench.wire.drain(course.queue, bench.wire.count(course.queue).ready)
    tally, properties = verify(came, Bulk(course.size, seed=SEED), bench.counts)
    if name == "tidegate":
        bench.properties.setdefault(course.size, properties)
    return span, tally


def _drained(bench: Bench, contender: Contender, course: Course) -> tuple[Span, Tally]:
    """Run it, timed by what a consumer has got."""
    with Drain(bench.stack.amqp_port, course.queue) as drain:
        with contender.start(course) as worker:
            span = _watched(bench, lambda: drain.count, worker, course)
            _end(bench, contender, course, worker)
        return span, verify(drain.end(), Bulk(course.size, seed=SEED), bench.counts)[0]


def _watched(bench: Bench, arrived: Callable[[], int], worker: Worker, course: Course) -> Span:
    pids = {"rabbitmq": bench.stack.rabbitmq_pid, "kafka": bench.stack.kafka_pid}
    gone = [name for name, pid in pids.items() if pid is None]
    if gone:
        raise WorkerError(f"{gone[0]} has ended")
    brokers = {name: psutil.Process(pid) for name, pid in pids.items()}
    return watch(arrived, worker, brokers, course.events, RUN_SECONDS + course.events / 1000)


def _end(bench: Bench, contender: Contender, course: Course, worker: Worker) -> None:
    """Wait for its commit, if it reads the log, and for its end."""
    ends = {(course.topic, at): count for at, count in enumerate(bench.counts)}
    if contender.reads_log:
        try:
            asyncio.run(await_committed(bench.stack.kafka, course.group, ends, END_SECONDS))
        except KafkaError as error:
            (bench.faults if contender.is_ours else bench.remarks).append(f"{course.group}: {error}")
    worker.join(END_SECONDS) if contender.ends_alone else worker.stop()


def _record(about: dict[str, Any], bench: Bench, judged: Sequence[Judged]) -> dict[str, Any]:
    found = cells(bench.runs)
    return about | {
        "measured": "throughput",
        "plan": asdict(bench.plan),
        "seed": SEED,
        "window": WINDOW,
        "partitions": PARTITIONS,
        "content_header_bytes": {str(size): len(properties) for size, properties in bench.properties.items()},
        "contenders": {name: one.words for name, one in bench.entered.items()},
        "runs": [asdict(run) for run in bench.runs],
        "cells": [
            {
                "queue_type": at[0], "size": at[1], "contender": name, "rounds": len(cell.runs),
                **{what: cell.middle(what) for what in WORDS}, "spread": cell.spread(),
                "peak_rss_mb": cell.peak_rss_mb, "delivered": cell.delivered,
                **{what: cell.total(what) for what in _TROUBLES},
            }
            for at, here in found.items() for name, cell in here.items()
        ],
        "ratios": [
            {
                "queue_type": one.setting[0], "size": one.setting[1],
                "what": one.goal.what, "of": one.goal.of, "over": one.goal.over,
                "ratio": one.ratio, "spread": one.spread, "goal": one.goal.bounds.get(one.setting[0]), "met": one.met,
            }
            for one in judged
        ],
        "load_after": os.getloadavg()[0],
        "faults": bench.faults,
        "remarks": bench.remarks,
    }  # fmt: skip


_TROUBLES: tuple[Literal["lost", "duplicates", "late"], ...] = ("lost", "duplicates", "late")
