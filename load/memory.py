"""How much memory a backlog takes: `python -m load.bench memory`. Every type is congested, events are large and small.

Kafka's answers are compressed (zstd), so that what comes is more than what was asked for. The peak stands beside what
the settings bound, and beside what the objects of events take, which no setting in bytes counts.
"""

import asyncio
import json
import random
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from aiokafka import AIOKafkaProducer

from load import admin_view, machine
from load.kafka import KafkaView
from load.many_types import CLASSES, ManyTypes
from load.scale_traffic import HEAD, Seen, Sink
from load.stack import Stack, ports
from load.tables import aligned
from load.terminal import run, say
from load.wire import Wire
from load.worker import Worker
from proxy import config

TYPES, PARTITIONS = 300, 1
SMALL, LARGE = 200, 1_000_000
"""Bytes of a value."""
SMALL_OF_ONE_LARGE = 1_000
BATCH_BYTES = 1_040_000
"""One batch of Kafka's at most, not yet compressed: a large event, or 5,000 small ones."""
POOL_BYTES = 4_000_000
"""Of hexadecimal digits that values are cut from: half of it is chance, so that zstd halves them."""
PACE = 20.0
"""Events a second that each of the three queues' consumers take while types are congested."""
CONGESTED_SECONDS = 20.0
"""From when all is written."""
DEADLINE = 300.0
MB = 1e6


@dataclass
class Found:
    """Bytes resident."""

    base: float = 0.0
    """With nothing to do."""
    congested: float = 0.0
    """The most while consumers held everything back."""
    drained: float = 0.0
    """The most at all."""
    sent: int = 0
    sent_bytes: int = 0


def measure(stack: Stack, gigabytes: float, file: Path) -> int:
    """Run it, print the table, write the JSON; return 1 if something was lost, repeated or beyond the bound, else 0.

    Raises WorkerError, WireError or KafkaError when Tidegate or a broker fails.
    """
    about = machine.describe(stack)
    types, seen, found = ManyTypes(TYPES, PARTITIONS, "memory"), Seen(), Found()
    with tempfile.TemporaryDirectory(prefix="tidegate-memory-") as folder:
        admin = ports.choose(["admin"])["admin"]
        settings = types.write(Path(folder) / "tidegate.yaml", stack, admin)
        bound = _bound(settings)
        run(_run(stack, types, settings, admin, gigabytes, seen, found))
    rows = {"nothing to do": found.base, **bound, "bound": found.base + sum(bound.values())}
    faults = {"lost": found.sent - len(seen.events), "repeated": seen.repeated, "disordered": seen.late}
    record = about | {
        "measured": "memory", "types": TYPES, "partitions": PARTITIONS, "small": SMALL, "large": LARGE,
        "command": f"python -m load.bench memory --gigabytes {gigabytes:g}", "sent": found.sent,
        "sent_mb": found.sent_bytes / MB, "bound_mb": {name: value / MB for name, value in rows.items()},
        "congested_mb": found.congested / MB, "peak_mb": found.drained / MB, **faults,
    }  # fmt: skip
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    measured = {"measured, all held back": found.congested, "measured, at most": found.drained}
    print(aligned([["", "MB"], *([name, f"{value / MB:,.0f}"] for name, value in (rows | measured).items())]))
    print(f"{found.sent:,} events of {found.sent_bytes / MB:,.0f} MB in {TYPES} types, {faults}")
    return 1 if any(faults.values()) or found.drained > rows["bound"] else 0


def _bound(file: Path) -> dict[str, float]:
    """Return what the settings let lie in memory, in bytes (docs/design/0012-what-lies-in-memory.md)."""
    settings = config.load(file, {})
    return {
        "all inboxes (limits.inboxes_bytes)": settings.limits.inboxes_bytes,
        "an answer of one broker (log.fetch_bytes)": settings.log.fetch_bytes,
        "batches opened, open and kept (3 x log.batch_bytes)": 3 * settings.log.batch_bytes,
        "in flight (routes.*.in_flight_bytes)": sum(one.in_flight_bytes for one in settings.routes.values()),
    }


async def _run(
    stack: Stack, types: ManyTypes, settings: Path, admin: int, gigabytes: float, seen: Seen, found: Found
) -> None:
    sinks = [Sink(types.queue(one), seen) for one in CLASSES]
    async with AsyncExitStack() as running:
        kafka = await running.enter_async_context(KafkaView(stack.kafka))
        await kafka.create_all(types.topics, types.partitions, {})
        with Wire(stack.amqp_port) as wire:
            for one in CLASSES:
                wire.declare(types.queue(one))
        for sink in sinks:
            sink.pace = PACE
            await sink.consume(stack.amqp_port)
            running.callback(asyncio.create_task(sink.acknowledge()).cancel)
        worker = Worker("proxy", "run", "-c", str(settings), output=settings.with_suffix(".txt"))
        running.enter_context(worker)
        await worker.until(lambda: asyncio.to_thread(_is_ready, admin, len(types.places)), DEADLINE)
        found.base = worker.peak_rss()
        say(f"ready with {found.base / MB:.0f} MB; the backlog is written")
        await _fill(stack, types, gigabytes * 1e9, found)
        say(f"{found.sent:,} events written")
        await asyncio.sleep(CONGESTED_SECONDS)
        found.congested = worker.peak_rss()
        say(f"held back: {found.congested / MB:.0f} MB, {len(seen.events):,} came")
        for sink in sinks:
            sink.pace = None
        await worker.until(partial(_all_came, seen, found), DEADLINE)
        found.drained = worker.peak_rss()
        await asyncio.to_thread(worker.stop)


async def _fill(stack: Stack, types: ManyTypes, most: float, found: Found) -> None:
    """Write to all types in turn, a large event and then small ones in each turn."""
    chance = random.Random(1)
    pool = chance.randbytes(POOL_BYTES // 2).hex().encode()
    producer = AIOKafkaProducer(
        bootstrap_servers=stack.kafka, compression_type="zstd", acks="all", enable_idempotence=True,
        max_batch_size=BATCH_BYTES, max_request_size=4 * BATCH_BYTES,
    )  # fmt: skip
    await producer.start()
    numbers = [0] * len(types.places)
    try:
        while found.sent_bytes < most:
            for known, place in enumerate(types.places):
                for size, count in ((LARGE, 1), (SMALL, SMALL_OF_ONE_LARGE)):
                    batch = producer.create_batch()
                    for _ in range(count):
                        at, found.sent = chance.randrange(POOL_BYTES - size), found.sent + 1
                        head = HEAD.pack(time.monotonic(), known, numbers[known], found.sent)
                        now = round(time.time() * 1000)
                        batch.append(timestamp=now, key=None, value=head + pool[at : at + size - HEAD.size])
                        numbers[known] += 1
                        found.sent_bytes += size
                    await producer.send_batch(batch, place.topic, partition=place.partition)
    finally:
        await producer.stop()


def _is_ready(admin: int, partitions: int) -> bool:
    return admin_view.owned(admin) == partitions


async def _all_came(seen: Seen, found: Found) -> bool:
    return len(seen.events) >= found.sent
