"""Throughput: Tidegate, the naive loop and the raw publisher in turn, over the same events, timed at the queue."""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from load import bridge_settings, machine
from load.bridge_settings import Lane
from load.contenders.raw import PARTITIONS, WINDOW, bare_properties
from load.events import Bulk
from load.kafka import KafkaView, await_committed
from load.measure import verify, watch
from load.producer import fill
from load.ratios import JUDGED_SIZES, Judged, Run, cells, judge
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

    rounds: int = 3
    events: int = 100_000
    sizes: tuple[int, ...] = (256, 1024)
    judged: bool = True

    @classmethod
    def quick(cls) -> "Plan":
        """Return a plan that shows the way in a minute or two and whose figures say little."""
        return cls(rounds=1, events=20_000, sizes=(256,), judged=False)


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
    """What runs lost, repeated or displaced, in words."""

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
    judged = judge(found, sizes=JUDGED_SIZES if plan.judged else ())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(_record(about, bench, judged), indent=1) + "\n", encoding="utf-8")
    print(throughput_table(found))
    print(verdict_lines(judged))
    for fault in bench.faults:
        print(fault)
    say(f"every run is in {file}")
    return 1 if bench.faults or any(one.met is False for one in judged) else 0


async def _produce(bench: Bench, size: int) -> None:
    async with KafkaView(bench.stack.kafka) as kafka:
        await kafka.create(bench.topic(size), PARTITIONS)
    await fill(bench.stack.kafka, bench.topic(size), bench.counts, Bulk(size, seed=SEED))


def _rounds(bench: Bench) -> None:
    began = time.monotonic()
    names = list(CONTENDERS)
    for number in range(bench.plan.rounds):
        if time.monotonic() - began > TOTAL_SECONDS:
            say(f"stopping after {number} rounds: {TOTAL_SECONDS / 60:.0f} minutes are over")
            break
        for size in bench.plan.sizes:
            for queue_type in QUEUE_TYPES:
                # Whoever goes first meets another broker than whoever goes last: each does both.
                for name in names[number % len(names) :] + names[: number % len(names)] if number else names:
                    _one(bench, name, queue_type, size, number)


def _one(bench: Bench, name: str, queue_type: str, size: int, number: int) -> None:
    group = f"{name}-{queue_type}-{size}-{number}"
    queue = bench.queue
    bench.wire.declare(queue, QUEUE_TYPES[queue_type])
    events = sum(bench.counts)
    rabbitmq_pid = bench.stack.rabbitmq_pid
    if rabbitmq_pid is None:
        raise WorkerError("RabbitMQ has ended")
    start, reads_log = CONTENDERS[name]
    with start(bench, group, size) as worker:
        rabbitmq = psutil.Process(rabbitmq_pid)
        span = watch(bench.wire, queue, worker, rabbitmq, events, RUN_SECONDS + events / 1000)
        if reads_log:
            ends = {(bench.topic(size), at): count for at, count in enumerate(bench.counts)}
            asyncio.run(await_committed(bench.stack.kafka, group, ends, END_SECONDS))
        worker.stop() if name == "tidegate" else worker.join(END_SECONDS)
    tally, properties = verify(bench.wire, queue, Bulk(size, seed=SEED), bench.counts)
    if name == "tidegate":
        bench.properties.setdefault(size, properties)
    bench.wire.delete(queue)
    if tally.lost or tally.duplicates or tally.late or tally.foreign:
        bench.faults.append(f"{group}: {tally.lost} lost, {tally.duplicates} repeated, {tally.late} late")
    per_100k = 100_000 / span.events
    bench.runs.append(
        Run(
            contender=name, queue_type=queue_type, size=size, round=number, rate=span.rate,
            cpu=span.cpu * per_100k, rabbitmq_cpu=span.rabbitmq_cpu * per_100k,
            peak_rss_mb=span.peak_rss / 1e6, start_cpu=span.start_cpu,
        )
    )  # fmt: skip
    say(f"round {number + 1}, {queue_type}, {size} B, {name}: {span.rate:,.0f}/s, {span.cpu * per_100k:.2f} CPU-s/100k")


def _tidegate(bench: Bench, group: str, size: int) -> Worker:
    file = bench.folder / f"{group}.yaml"
    lane = Lane("bulk", bench.topic(size), bench.queue)
    bridge_settings.write(file, bench.stack, group, [lane], in_flight=WINDOW)
    return Worker("proxy", "run", "-c", str(file), output=bench.folder / f"{group}.txt")


def _naive(bench: Bench, group: str, size: int) -> Worker:
    return Worker(
        "load.contenders.naive",
        *("--kafka", bench.stack.kafka, "--amqp", bench.stack.amqp, "--topic", bench.topic(size)),
        *("--group", group, "--queue", bench.queue, "--events", str(sum(bench.counts))),
        output=bench.folder / f"{group}.txt",
    )


def _raw(bench: Bench, group: str, size: int) -> Worker:
    return _raw_with(bench, group, size, bench.properties[size])


def _raw_bare(bench: Bench, group: str, size: int) -> Worker:
    return _raw_with(bench, group, size, bare_properties())


def _raw_with(bench: Bench, group: str, size: int, properties: bytes) -> Worker:
    return Worker(
        "load.contenders.raw",
        *("--port", str(bench.stack.amqp_port), "--queue", bench.queue, "--events", str(sum(bench.counts))),
        *("--size", str(size), "--seed", str(SEED), "--properties", properties.hex()),
        output=bench.folder / f"{group}.txt",
    )


CONTENDERS: Mapping[str, tuple[Callable[[Bench, str, int], Worker], bool]] = {
    "tidegate": (_tidegate, True),
    "naive": (_naive, True),
    "raw": (_raw, False),
    "raw-bare": (_raw_bare, False),
}
"""How each is started, and whether it reads the log; Tidegate first, because raw copies the header of its messages."""


def _record(about: dict[str, Any], bench: Bench, judged: Sequence[Judged]) -> dict[str, Any]:
    found = cells(bench.runs)
    return about | {
        "measured": "throughput",
        "plan": asdict(bench.plan),
        "seed": SEED,
        "window": WINDOW,
        "partitions": PARTITIONS,
        "content_header_bytes": {str(size): len(properties) for size, properties in bench.properties.items()},
        "runs": [asdict(run) for run in bench.runs],
        "cells": [
            {
                "queue_type": at[0], "size": at[1], "contender": name, "rounds": len(cell.runs),
                "rate": cell.rate, "spread": cell.spread, "cpu": cell.cpu,
                "rabbitmq_cpu": cell.rabbitmq_cpu, "peak_rss_mb": cell.peak_rss_mb,
            }
            for at, here in found.items() for name, cell in here.items()
        ],
        "ratios": [
            {
                "queue_type": one.setting[0], "size": one.setting[1], "what": one.goal.what, "over": one.goal.over,
                "ratio": one.ratio, "goal": one.goal.bound, "met": one.met,
            }
            for one in judged
        ],
        "faults": bench.faults,
    }  # fmt: skip
