"""One round after another: break something, watch it recover, account for every event."""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from functools import reduce
from pathlib import Path

from load.faults import causes_rabbitmq
from load.faults.causes import CAUSES
from load.faults.flow import WATCH_SECONDS, Key, flow_back, name_of
from load.faults.ledger import Counts
from load.faults.link import Link
from load.faults.plan import Kind
from load.faults.replicas import COUNT, IN_FLIGHT, PASSWORD, USER, Replicas
from load.faults.sink import Sink
from load.faults.source import Source
from load.faults.streams import DEAD, PARTITIONS, STREAMS
from load.faults.verdicts import Round
from load.faults.world import World
from load.kafka import KafkaView
from load.stack import Stack
from load.terminal import say
from load.wire import Wire
from load.worker import WorkerError

FLOW_SECONDS = 45.0
"""A flow that is not back so long after a fault's end does not come back unaided."""
SETTLE_SECONDS = 30.0
"""... and what has not come so long after the flow is back is counted as nowhere, unless it comes later."""
CALM_SECONDS = 1.0
"""Between two rounds."""
START_SECONDS = 60.0
METRIC_SECONDS = 2.2
"""A replica's metric log tells of an event type within so many seconds."""
READY_SECONDS = 0.25


class Rounds:
    """Everything that runs during the rounds; made by `prepared`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.source, self.sink, self.replicas = world.source, world.sink, world.replicas
        self.every: list[Round] = []
        """All rounds so far, the present one included."""
        self._slowest = ""
        """The partition that was last to flow."""

    @classmethod
    async def prepared(
        cls, stack: Stack, folder: Path, metric_disk: Path | None, seed: int, running: AsyncExitStack
    ) -> "Rounds":
        """Start everything; it ends with `running`."""
        kafka = await running.enter_async_context(KafkaView(stack.kafka))
        for stream in STREAMS:
            await kafka.create(stream.name, PARTITIONS)
        await asyncio.to_thread(_declare, stack)
        source = Source(stack.kafka)
        sink = Sink(stack.amqp_port, [*(stream.name for stream in STREAMS), DEAD], source.ledgers)
        consuming = asyncio.create_task(sink.run(), name="sink")
        running.push_async_callback(_cancelled, consuming)
        replicas = running.enter_context(Replicas(folder))
        kafka_port = int(stack.kafka.rpartition(":")[2])
        for number in range(COUNT):
            to_kafka = await running.enter_async_context(Link(kafka_port, seed=seed + number, is_kafka=True))
            to_rabbitmq = await running.enter_async_context(Link(stack.amqp_port, seed=seed + 100 + number))
            metrics = metric_disk if number == COUNT - 1 else None
            replicas.start(replicas.add(to_kafka, to_rabbitmq, metrics))
        running.push_async_callback(source.stop)
        await source.start()
        world = World(stack, kafka, source, sink, replicas, metric_disk, random.Random(seed))
        self = cls(world)
        if await self._flow(time.monotonic(), START_SECONDS) is None or not await self._all_ready(START_SECONDS):
            raise WorkerError(f"nothing flows {START_SECONDS:.0f} s after the start: {self._slowest}")
        return self

    async def run(self, kind: Kind) -> Round:
        """Let one fault happen and see it through. Raises WorkerError if a replica ends by itself."""
        told = Round(len(self.every) + 1, kind)
        self.every.append(told)
        before, foreign = self._counts(), self.sink.foreign
        for ledger in self.source.ledgers.values():
            ledger.reach = 0
        self.replicas.read_metrics()
        reported = Counter(self.replicas.counted)
        began, mended = await CAUSES[kind.name](self._world)
        told.seconds = mended - began
        told.flow = await self._flow(mended, FLOW_SECONDS)
        told.slowest = self._slowest
        await self._ready(told, mended)
        if told.recovery is None:
            await self._aid(told)
        await self._account(told, mended, before, reported)
        told.foreign = self.sink.foreign - foreign
        told.load = os.getloadavg()[0]
        await asyncio.sleep(CALM_SECONDS)
        self.source.check()
        self.replicas.check()
        return told

    # -- recovery -----------------------------------------------------------------------------------------------------

    async def _flow(self, since: float, seconds: float) -> float | None:
        took, self._slowest = await flow_back(self.source, since, seconds)
        return took

    async def _ready(self, told: Round, mended: float) -> None:
        """Start again what was ended; wait until every replica reads a share."""
        since = mended
        for replica in self.replicas.every:
            if replica.worker is None:
                self.replicas.start(replica)
                since = replica.started
        if await self._all_ready(FLOW_SECONDS):
            told.ready = time.monotonic() - since

    async def _all_ready(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            owned = await self.replicas.owned()
            if all(owned) and len(owned) == COUNT and sum(owned) == len(self.source.ledgers):
                return True
            if time.monotonic() > deadline:
                return False
            self.replicas.check()
            await asyncio.sleep(READY_SECONDS)

    async def _aid(self, told: Round) -> None:
        """Start every replica anew, so that the rounds can go on."""
        told.aided = True
        say("  not recovered; every replica is started anew")
        for replica in self.replicas.every:
            self.replicas.kill(replica)
            self.replicas.start(replica)
        if await self._flow(time.monotonic(), START_SECONDS) is None or not await self._all_ready(START_SECONDS):
            raise WorkerError(f"{told.kind.name}: nothing flows even after a new start: {self._slowest}")

    # -- the reckoning ------------------------------------------------------------------------------------------------

    async def _settled(self) -> dict[Key, list[int]]:
        """Wait until every event sent before now has come; return what has not, after a while.

        What an earlier round has missed is left out.
        """
        ends = {key: ledger.sent for key, ledger in self.source.ledgers.items()}
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            found = {key: self._missing(key, end) for key, end in ends.items()}
            found = {key: numbers for key, numbers in found.items() if numbers}
            if not found or time.monotonic() > deadline:
                return found
            await asyncio.sleep(WATCH_SECONDS)

    def _missing(self, key: Key, end: int) -> list[int]:
        known = {number for told in self.every for number in told.lost.get(name_of(key), ())}
        return [number for number in self.source.ledgers[key].missing(end) if number not in known]

    async def _account(
        self, told: Round, mended: float, before: dict[Key, Counts], reported: Counter[tuple[str, str]]
    ) -> None:
        """Count what the round came to."""
        missing = await self._settled()
        if not missing:
            told.caught_up = time.monotonic() - mended
        if missing and told.kind.name == "queue-deleted":
            missing = self._with_queue(told, missing)
        told.lost = {name_of(key): numbers for key, numbers in missing.items()}
        await asyncio.sleep(METRIC_SECONDS)
        self.replicas.read_metrics()
        counted = self.replicas.counted - reported
        after = self._counts()
        gained = {key: counts.plus(before.get(key, Counts()), -1) for key, counts in after.items()}
        told.counts = sum_of(gained.values())
        told.worst_duplicates = max(counts.duplicates for counts in gained.values())
        for at, stream in enumerate(STREAMS):
            told.late[stream.name] = sum(counts.late for key, counts in gained.items() if key[0] == at)
            told.reach[stream.name] = max(ledger.reach for key, ledger in self.source.ledgers.items() if key[0] == at)
            told.overtaken[stream.name] = counted["overtaken", stream.name]
        if told.kind.name == "log-truncated":
            told.truncated = sum(count for (name, _), count in counted.items() if name == "truncated")

    def _with_queue(self, told: Round, missing: dict[Key, list[int]]) -> dict[Key, list[int]]:
        """Take out what RabbitMQ confirmed into the queue in the instant of its deletion: no more than in flight."""
        count = sum(map(len, missing.values()))
        if count > IN_FLIGHT or len({stream for stream, _ in missing}) > 1:
            return missing
        for key, numbers in missing.items():
            self.source.ledgers[key].excuse(numbers)
        told.with_queue = count
        return {}

    def _counts(self) -> dict[Key, Counts]:
        return {key: ledger.counts for key, ledger in self.source.ledgers.items()}

    async def end(self) -> Counts:
        """Send no more, wait for what is on its way, end the replicas in order; return all counts.

        What came after all is struck off the rounds' lists, and what is missing now stands on the last one's.
        """
        await self.source.stop()
        left = await self._settled()
        for replica in self.replicas.every:
            await self.replicas.terminate(replica)
        for key, numbers in left.items():
            self.every[-1].lost.setdefault(name_of(key), []).extend(numbers)
        for told in self.every:
            for key, ledger in self.source.ledgers.items():
                lost = told.lost.get(name_of(key), [])
                lost[:] = [number for number in lost if not ledger.is_done(number)]
        return sum_of(self._counts().values())


def sum_of(every: Iterable[Counts]) -> Counts:
    """Return all counts added up."""
    return reduce(Counts.plus, every, Counts())


def _declare(stack: Stack) -> None:
    stack.rabbitmqctl("add_user", USER, PASSWORD)
    stack.rabbitmqctl("set_permissions", USER, "", ".*", ".*")
    with Wire(stack.amqp_port) as wire:
        causes_rabbitmq.prepare(wire)


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
