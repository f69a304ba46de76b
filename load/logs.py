"""What an event costs on its way out of either log: Kafka's adapter and Nakadi's, in turn.

The adapter alone, its events committed as they come, in rounds of one event type with one partition. Kafka is a real
one, Nakadi the scripted one (`tests.nakadi`), each a process of its own.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from uuid import uuid4

import uvloop
from aiokafka import AIOKafkaProducer

from load import machine
from load.kafka import KafkaView
from load.nakadi import NakadiView
from load.stack import Stack
from load.tables import aligned
from load.terminal import say
from proxy.bridge.event_log import Beginning, EventLog
from proxy.bridge.move import Moved
from proxy.kafka_log import KafkaLog
from proxy.model import Partition, Position
from proxy.nakadi_log import NakadiLog
from proxy.settings import Limits, LogSettings

EVENTS = 200_000
PIECE = 5_000
"""Events written at once."""
BATCHES = (1, 50, 250)
"""Events of one of Nakadi's batches."""
DEFAULT = "nakadi, batches of 50"
GOAL = 0.7
"""Events a second through Nakadi's adapter, as it is set by default, per one through Kafka's."""
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

    def on_passed(self, partition: Partition) -> None:
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


@dataclass(frozen=True)
class Run:
    """One adapter once."""

    log: str
    round: int
    cpu: float
    """Seconds of this process's CPU for 100,000 events."""
    rate: float
    """Events a second, by the clock."""


def measure(stack: Stack, rounds: int, file: Path, events: int = EVENTS) -> int:
    """Read so many events through each adapter in each round, print, write the JSON; return 0 if the goal is met.

    Raises KafkaError or NakadiError when a server fails.
    """
    about, topic = machine.describe(stack), f"cost-{uuid4().hex[:6]}"
    with scripted_nakadi() as url:
        uvloop.run(_written(stack.kafka, url, topic, events))
        runs = list[Run]()
        for number in range(rounds):
            for name, settings in _settings(stack.kafka, url):
                adapter = KafkaLog if settings.nakadi is None else NakadiLog
                runs.append(one := uvloop.run(_one(name, number, adapter(settings, Limits()), topic, events)))
                say(f"round {number + 1}, {name}: {one.cpu:.2f} s of CPU for 100,000 events, {one.rate:,.0f}/s")
    file.parent.mkdir(parents=True, exist_ok=True)
    record = about | {"measured": "logs", "events": events, "goal": GOAL, "runs": [asdict(one) for one in runs]}
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return _told(runs)


def _settings(kafka: str, url: str) -> list[tuple[str, LogSettings]]:
    told: list[tuple[str, dict[str, object]]] = [("kafka", {"hosts": [kafka], "group": uuid4().hex})]
    for batch in BATCHES:
        nakadi = {"url": url, "owning_application": "load", "consumer_group": uuid4().hex, "batch_events": batch}
        told.append((f"nakadi, batches of {batch}", {"nakadi": nakadi}))
    return [(name, LogSettings.model_validate(settings)) for name, settings in told]


def _told(runs: Sequence[Run]) -> int:
    names = dict.fromkeys(one.log for one in runs)
    cpu = {name: median(one.cpu for one in runs if one.log == name) for name in names}
    rate = {name: median(one.rate for one in runs if one.log == name) for name in names}
    rows = [["", "CPU s for 100,000", "of Kafka's", "events/s", "of Kafka's"]]
    for name in names:
        shares = f"{cpu[name] / cpu['kafka']:.2f}", f"{rate[name] / rate['kafka']:.2f}"
        rows.append([name, f"{cpu[name]:.2f}", shares[0], f"{rate[name]:,.0f}", shares[1]])
    print(aligned(rows))
    is_met = rate[DEFAULT] >= GOAL * rate["kafka"]
    print(
        f"{DEFAULT}: {rate[DEFAULT] / rate['kafka']:.2f} of Kafka's rate, goal {GOAL}: {'met' if is_met else 'MISSED'}"
    )
    return 0 if is_met else 1


async def _one(name: str, number: int, log: EventLog, topic: str, events: int) -> Run:
    owner = Owner()
    await log.start(owner)
    await log.subscribe(frozenset({topic}))
    read = uncommitted = 0
    cpu = wall = 0.0
    committing: asyncio.Task[Mapping[Partition, int]] | None = None
    most = events - max(BATCHES)  # a last batch that is not full is waited for, by Nakadi's own rule
    while read < most:
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
    return Run(name, number, cpu / read * 100_000, read / wall)


async def _committed(log: EventLog, positions: Mapping[Partition, Position]) -> Mapping[Partition, int]:
    return await log.commit(positions)


async def _written(kafka: str, url: str, topic: str, events: int) -> None:
    async with KafkaView(kafka) as view:
        await view.create(topic, 1)
    async with NakadiView(url) as nakadi, AIOKafkaProducer(bootstrap_servers=kafka, linger_ms=20) as producer:
        await nakadi.create(topic, 1)
        for start in range(0, events, PIECE):
            some = [body(number) for number in range(start, start + PIECE)]
            await asyncio.gather(*[await producer.send(topic, one, partition=0) for one in some])
            await nakadi.ask("POST", f"/event-types/{topic}/events", b"[" + b",".join(some) + b"]")


@contextmanager
def scripted_nakadi(*arguments: str) -> Iterator[str]:
    """Run the scripted Nakadi as a process, with these arguments; its URL."""
    command = [sys.executable, "-m", "tests.nakadi", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().rsplit(" ", 1)[-1].strip()
        finally:
            server.terminate()
