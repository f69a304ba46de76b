"""Whether the window that adapts finds the best fixed one: both in turn, at several distances from RabbitMQ."""

import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from load import admin_view, bridge_settings, machine
from load.bridge_settings import Lane
from load.control.relay import Relay
from load.events import Bulk
from load.kafka import KafkaView
from load.metric_tail import MetricTail
from load.producer import fill
from load.stack import Stack, ports
from load.tables import aligned
from load.terminal import run, say
from load.wire import Wire
from load.worker import Worker, WorkerError
from proxy.congestion.buckets import quantile

WINDOWS = (50, 100, 200, 400, 800, 1_600, 4_000)
DISTANCES = (0.0, 0.005, 0.02)
"""Seconds by which every answer of RabbitMQ comes later."""
PARTITIONS = 4
TOPIC = "windows"
SEED = 20_240_422
LEAST_RATE, MOST_LATENCY = 0.95, 1.25
"""Goals: throughput over that of the best fixed window; P99 confirm over that of the smallest fixed one within this."""
WARM_SECONDS, SECONDS = 2.0, 4.0
"""Of each run, from the first confirm on."""
RUN_SECONDS = 60.0
POLL_SECONDS = 0.25
MOST_QUEUED = 5_000
"""Messages that the queue keeps: the same for all, however long a run."""


@dataclass(frozen=True)
class Run:
    """One window once."""

    distance: float
    window: int | None
    """None: it adapts."""
    rate: float
    p50_ms: float
    p99_ms: float
    widths: tuple[int, ...]
    """The window now and then."""


@dataclass
class Sweep:
    """What all runs share, and what they found; `events` of `size` bytes lie in the log."""

    stack: Stack
    folder: Path
    runs: list[Run] = field(default_factory=list)


def measure(stack: Stack, rounds: int, size: int, events: int, file: Path) -> int:
    """Run all, print the table, write the JSON; return 0 if every goal is met, else 1.

    Raises WorkerError, WireError or KafkaError when Tidegate or a broker fails.
    """
    about = machine.describe(stack)
    with tempfile.TemporaryDirectory(prefix="tidegate-windows-") as folder:
        sweep = Sweep(stack, Path(folder))
        say(f"producing {events:,} events of {size} B")
        run(_produce(stack, size, events))
        chance = random.Random(SEED)  # a machine that grows slower meanwhile must not weigh on the same windows
        for number in range(rounds):
            for distance in DISTANCES:
                for window in chance.sample([None, *WINDOWS], len(WINDOWS) + 1):
                    sweep.runs.append(one := run(_one(sweep, distance, window)))
                    say(f"round {number + 1}: {_words(one)}")
    found = [_judged(sweep.runs, distance) for distance in DISTANCES]
    file.parent.mkdir(parents=True, exist_ok=True)
    record = about | {"measured": "windows", "size": size, "runs": [asdict(one) for one in sweep.runs], "found": found}
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(_table(sweep.runs))
    print(
        aligned(
            [
                ["added", "best fixed", "smallest within", "adaptive: rate", "", "P99", ""],
                *(_verdict_row(one) for one in found),
            ]
        )
    )
    return 0 if all(one["rate_met"] and one["latency_met"] for one in found) else 1


async def _produce(stack: Stack, size: int, events: int) -> None:
    async with KafkaView(stack.kafka) as kafka:
        await kafka.create(TOPIC, PARTITIONS)
    await fill(stack.kafka, TOPIC, [events // PARTITIONS] * PARTITIONS, Bulk(size, seed=SEED))


async def _one(sweep: Sweep, distance: float, window: int | None) -> Run:
    group = f"windows.{len(sweep.runs)}"
    settings = sweep.folder / f"{group}.yaml"
    admin = ports.choose(["admin"])["admin"]
    with Wire(sweep.stack.amqp_port) as wire:
        # Each run has a queue of its own.
        wire.declare(group, {"x-max-length": MOST_QUEUED})
        async with Relay(sweep.stack.amqp_port, delay=distance) as relay:
            bridge_settings.write(
                settings, sweep.stack, group, [Lane("bulk", TOPIC, group)], in_flight=window, admin_port=admin,
                amqp_port=relay.port,
            )  # fmt: skip
            with Worker("proxy", "run", "-c", str(settings), output=settings.with_suffix(".txt")) as worker:
                records, widths = await _watch(worker, MetricTail(settings.with_suffix("")), admin)
                await asyncio.to_thread(worker.stop)
        wire.delete(group)
    latencies: Counter[int] = Counter()
    for one in records:
        latencies.update({int(index): count for index, count in one["publish_us"].items()})
    return Run(
        distance, window, sum(one["confirmed"] for one in records) / sum(one["interval_s"] for one in records),
        (quantile(latencies, 0.5) or 0) / 1000, (quantile(latencies, 0.99) or 0) / 1000, tuple(widths),
    )  # fmt: skip


async def _watch(worker: Worker, tail: MetricTail, admin: int) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the records of the route and the widths of its window, from when the bridge is warm."""
    deadline, began = time.monotonic() + RUN_SECONDS, 0.0
    records: list[dict[str, Any]] = []
    widths: list[int] = []
    while not began or time.monotonic() < began + WARM_SECONDS + SECONDS:
        await asyncio.sleep(POLL_SECONDS)
        worker.check()
        seen = [one for one in tail.poll() if one["kind"] == "route" and one["confirmed"]]
        began = began or (time.monotonic() if seen else 0.0)
        if began and time.monotonic() > began + WARM_SECONDS:
            records += seen
            width = await asyncio.to_thread(admin_view.window, admin)
            widths += [] if width is None else [width]
        if time.monotonic() > deadline:
            raise WorkerError(f"nothing is confirmed after {RUN_SECONDS:.0f} s\n{worker.last_words()}")
    return records, widths


def _judged(runs: Sequence[Run], distance: float) -> dict[str, Any]:
    """Return what the medians of all rounds say of one distance."""
    rates, latencies = _medians(runs, distance)
    fixed = [window for window in rates if window is not None]
    best = max(fixed, key=lambda window: rates[window])
    smallest = min(window for window in fixed if rates[window] >= LEAST_RATE * rates[best])
    rate, latency = rates[None] / rates[best], latencies[None] / latencies[smallest]
    return {
        "distance_s": distance, "best": best, "smallest": smallest, "rate": rate, "latency": latency,
        "rate_met": rate >= LEAST_RATE, "latency_met": latency <= MOST_LATENCY,
    }  # fmt: skip


def _medians(runs: Sequence[Run], distance: float) -> tuple[dict[int | None, float], dict[int | None, float]]:
    """Return rate and P99 of each window."""
    here: Mapping[int | None, list[Run]] = {
        window: [one for one in runs if (one.distance, one.window) == (distance, window)] for window in (None, *WINDOWS)
    }
    return (
        {window: median(one.rate for one in some) for window, some in here.items()},
        {window: median(one.p99_ms for one in some) for window, some in here.items()},
    )


def _table(runs: Sequence[Run]) -> str:
    rows = [["window", *(f"+{distance * 1000:.0f} ms: events/s, P99 ms" for distance in DISTANCES)]]
    for window in (*WINDOWS, None):
        cells = []
        for distance in DISTANCES:
            rates, latencies = _medians(runs, distance)
            cells.append(f"{rates[window]:,.0f} {latencies[window]:7.1f}")
        rows.append([_name(window), *cells])
    return aligned(rows)


def _verdict_row(one: Mapping[str, Any]) -> list[str]:
    words = {True: "met", False: "MISSED"}
    return [
        f"{one['distance_s'] * 1000:.0f} ms", str(one["best"]), str(one["smallest"]),
        f"{one['rate']:.2f} of the best", words[one["rate_met"]],
        f"{one['latency']:.2f} of the smallest", words[one["latency_met"]],
    ]  # fmt: skip


def _words(one: Run) -> str:
    width = f", {min(one.widths)} to {max(one.widths)} wide, median {median(one.widths):.0f}" if one.widths else ""
    return (
        f"+{one.distance * 1000:.0f} ms, {_name(one.window)}: {one.rate:,.0f}/s, P50 {one.p50_ms:.1f}, "
        f"P99 {one.p99_ms:.1f} ms{width if one.window is None else ''}"
    )


def _name(window: int | None) -> str:
    return "adaptive" if window is None else str(window)
