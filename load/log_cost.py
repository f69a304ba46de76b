"""What an event costs on its way out of the log: `python -m load.log_cost kafka|nakadi [events]`.

The adapter alone, its events committed as they come: CPU seconds of this process for 100,000 events of some 330 bytes,
in rounds of one event type with one partition. Kafka is a real one, Nakadi the scripted one, each a process of its own.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from uuid import uuid4

import uvloop
from aiokafka import AIOKafkaProducer

from load.kafka import KafkaView
from load.nakadi import NakadiView
from load.stack import Stack
from proxy.bridge.event_log import Beginning, EventLog
from proxy.bridge.move import Moved
from proxy.kafka_log import KafkaLog
from proxy.model import Partition, Position
from proxy.nakadi_log import NakadiLog
from proxy.settings import Limits, LogSettings

EVENTS = 200_000
ROUNDS = 3
BATCHES = (1, 50, 250)
COMMIT_EVERY = 2_000
"""Events: what an inbox holds; fewer where no more comes before that."""


class Owner:
    """Takes everything and has it done with at once."""

    def __init__(self) -> None:
        self.done: dict[Partition, Position] = {}

    def on_assigned(self, partitions: Collection[Partition]) -> Collection[Partition]:
        """Pause nothing."""
        del partitions
        return ()

    async def on_revoked(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        """Have all that came committed."""
        return {at: self.done[at] for at in partitions if at in self.done}

    on_moving = on_revoked

    def on_begun(self, partition: Partition, beginning: Beginning) -> None:
        """Note nothing."""

    def on_renewed(self, partition: Partition, taken: int) -> None:
        """Note nothing."""

    def on_moved(self, moved: Moved) -> None:
        """Note nothing."""

    def on_ended(self, taken: Mapping[Partition, int]) -> None:
        """Note nothing."""

    def on_truncated(self, partition: Partition, at_most: int, first: int) -> None:
        """Note nothing."""


def body(number: int) -> bytes:
    """Return an event as Nakadi's business events are."""
    metadata = {
        "eid": str(uuid4()),
        "occurred_at": "2026-01-31T12:00:00.123Z",
        "event_type": "cost",
        "partition": "0",
        "flow_id": "abcdefgh",
        "partition_compaction_key": f"k{number}",
    }
    return json.dumps({"metadata": metadata, "order": number, "note": "x" * 100}).encode()


async def cost(log: EventLog, topic: str, events: int) -> tuple[float, float]:
    """Return CPU and wall seconds for 100,000 of so many events."""
    owner = Owner()
    await log.start(owner)
    await log.subscribe(frozenset({topic}))
    read = uncommitted = 0
    cpu = wall = 0.0
    committing: asyncio.Task[Mapping[Partition, int]] | None = None
    while read < events:
        fetched = await log.poll(0.005)
        for at, found in fetched.items():
            if not read:
                cpu, wall = time.process_time(), time.monotonic()
            read += len(found)
            uncommitted += len(found)
            owner.done[at] = found[-1].position
        is_due = uncommitted >= COMMIT_EVERY or (uncommitted and not fetched)
        if is_due and (committing is None or committing.done()):
            uncommitted = 0
            committing = asyncio.create_task(_committed(log, dict(owner.done)))
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    if committing is not None:
        await committing
    await log.stop()
    return cpu / events * 100_000, wall / events * 100_000


async def _committed(log: EventLog, positions: Mapping[Partition, Position]) -> Mapping[Partition, int]:
    return await log.commit(positions)


async def of_kafka(host: str, events: int) -> None:
    """Measure Kafka's adapter."""
    topic = f"cost-{uuid4().hex[:6]}"
    async with KafkaView(host) as view:
        await view.create(topic, 1)
    async with AIOKafkaProducer(bootstrap_servers=host, linger_ms=20) as producer:
        for start in range(0, events, 5_000):
            await asyncio.gather(
                *[await producer.send(topic, body(n), partition=0) for n in range(start, start + 5_000)]
            )
    for _ in range(ROUNDS):
        settings = LogSettings.model_validate({"hosts": [host], "group": uuid4().hex})
        _say("kafka", *await cost(KafkaLog(settings, Limits()), topic, events))


async def of_nakadi(url: str, events: int) -> None:
    """Measure Nakadi's adapter, by size of batch."""
    topic = f"cost-{uuid4().hex[:6]}"
    async with NakadiView(url) as view:
        await view.create(topic, 1)
        for start in range(0, events, 5_000):
            some = b"[" + b",".join(map(body, range(start, start + 5_000))) + b"]"
            await view.ask("POST", f"/event-types/{topic}/events", some)
    for batch in BATCHES:
        for _ in range(ROUNDS):
            nakadi = {"url": url, "owning_application": "load", "consumer_group": uuid4().hex, "batch_events": batch}
            log = NakadiLog(LogSettings.model_validate({"nakadi": nakadi}), Limits())
            _say(f"nakadi, batches of {batch}", *await cost(log, topic, events))


def _say(what: str, cpu: float, wall: float) -> None:
    print(f"{what}: {cpu:.2f} s of CPU, {wall:.2f} s for 100,000 events", flush=True)


def main() -> None:
    """Measure one of them."""
    parser = argparse.ArgumentParser(prog="python -m load.log_cost", description=__doc__)
    parser.add_argument("log", choices=("kafka", "nakadi"), help="whose adapter")
    parser.add_argument("events", type=int, nargs="?", default=EVENTS, help=f"in each round ({EVENTS})")
    asked = parser.parse_args()
    events = asked.events
    if asked.log == "kafka":
        with Stack.up() as stack:
            uvloop.run(of_kafka(stack.kafka, events))
        return
    command = [sys.executable, "-m", "tests.nakadi"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            uvloop.run(of_nakadi(server.stdout.readline().rsplit(" ", 1)[-1].strip(), events))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
