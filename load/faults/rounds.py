"""One round after another: break something, watch it recover, account for every event."""

import asyncio
import os
import random
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from load import kafka_cluster
from load.faults import causes_rabbitmq
from load.faults.causes import CAUSES
from load.faults.causes_cluster import in_sync
from load.faults.flow import flow_back, name_of
from load.faults.ledger import Counts
from load.faults.link import Link, joined
from load.faults.outages import OUTAGES
from load.faults.plan import Kind
from load.faults.raw_client import RawClient
from load.faults.reckoning import SETTLE_SECONDS, Reckoning
from load.faults.replicas import COUNT, GROUP, PASSWORD, USER, Replicas
from load.faults.sink import Sink
from load.faults.source import Source
from load.faults.streams import DEAD, PARTITIONS, STREAMS, VOLUME
from load.faults.verdicts import Round
from load.faults.world import Span, World, queue_arguments
from load.kafka import KafkaView
from load.stack import Stack
from load.stack.kafka_settings import REPLICATION
from load.terminal import say
from load.wire import Wire
from load.worker import WorkerError

REQUEST_SECONDS = 2.5
"""Of the source's producers, where there are other nodes to ask."""
LEAST_OUTAGE_SECONDS = 12.0
"""A node that is lost stays so, also where nobody misses it: long enough that its session with the cluster ends."""
FLOW_SECONDS = 45.0
"""A flow that is not back so long after a fault's end does not come back unaided."""
CALM_SECONDS = 1.0
"""Between two rounds."""
START_SECONDS = 60.0
LEAST_RATE = 500.0
"""What was poured in comes out with so many events a second at least, once all else is done."""
READY_SECONDS = 0.25


class Rounds:
    """Everything that runs during the rounds; made by `prepared`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.source, self.sink, self.replicas = world.source, world.sink, world.replicas
        self.every: list[Round] = []
        """All rounds so far, the present one included."""
        self.spans: list[tuple[str, Span]] = []
        """When each fault began and ended, with its kind's name."""
        self._reckoning = Reckoning(self.source, self.sink, self.replicas, self.every)
        self._raw = RawClient(world.stack, GROUP)
        self._slowest = ""
        """The partition that was last to flow."""

    @classmethod
    async def prepared(
        cls, stack: Stack, folder: Path, metric_disk: Path | None, seed: int, running: AsyncExitStack
    ) -> "Rounds":
        """Start everything; it ends with `running`."""
        nodes = len(stack.kafka_ports)
        kafka = await running.enter_async_context(KafkaView(stack.kafka, min(nodes, REPLICATION)))
        for stream in STREAMS:
            await kafka.create(stream.name, PARTITIONS)
        await asyncio.to_thread(_declare, stack)
        source = Source(stack.kafka, REQUEST_SECONDS) if nodes > 1 else Source(stack.kafka)
        sink = Sink(stack.amqp_ports, [*(stream.name for stream in STREAMS), DEAD], source.ledgers)
        consuming = asyncio.create_task(sink.run(), name="sink")
        running.push_async_callback(_cancelled, consuming)
        replicas = running.enter_context(Replicas(folder))
        for number in range(COUNT):
            ways = [
                [Link(port, seed=seed + 100 * kind + 10 * number + at) for at, port in enumerate(ports)]
                for kind, ports in enumerate((stack.kafka_ports, stack.amqp_ports))
            ]
            for link in (link for links in ways for link in links):
                await running.enter_async_context(link)
            to_kafka, to_rabbitmq = ways
            joined(to_kafka)
            metrics = metric_disk if number == COUNT - 1 else None
            replicas.start(replicas.add(to_kafka, to_rabbitmq, metrics))
        running.push_async_callback(source.stop)
        await source.start()
        world = World(stack, kafka, source, sink, replicas, metric_disk, random.Random(seed), seed)
        for stream in STREAMS:
            await world.on_created(stream.name)
        self = cls(world)
        if nodes > 1:
            await self._raw.prepare(kafka)
        if await self._flow(time.monotonic(), START_SECONDS) is None or not await self._all_ready(START_SECONDS):
            raise WorkerError(f"nothing flows {START_SECONDS:.0f} s after the start: {self._slowest}")
        return self

    async def pour(self, count: int) -> None:
        """Put so many events into the log at once, beside those that flow all the time."""
        at = STREAMS.index(VOLUME)
        for partition in self.source.of(at):
            await self.source.fill(at, partition, count // PARTITIONS)

    async def run(self, number: int, kind: Kind) -> Round:
        """Let one fault happen and see it through. Raises WorkerError if a replica ends by itself."""
        told = Round(number, kind)
        self.every.append(told)
        world = self.world
        world.chance = random.Random(f"{world.seed}:{number}")
        self._reckoning.begin()
        if kind.is_outage:
            began, mended = await self._outlive(told)
        else:
            began, mended = await CAUSES[kind.name](world)
        told.seconds = mended - began
        self.spans.append((kind.name, (began, mended)))
        if all(replica.worker is not None for replica in self.replicas.every):
            # At the same time: where the source itself has to come back, flow is awaited for longer than it took.
            told.flow, _ = await asyncio.gather(self._flow(mended, FLOW_SECONDS), self._ready(told, mended))
            told.slowest = self._slowest
        else:
            told.flow = await self._flow(mended, FLOW_SECONDS)
            told.slowest = self._slowest
            await self._ready(told, mended)
        if told.recovery is None:
            await self._aid(told)
        await self._reckoning.account(told, mended)
        told.load = os.getloadavg()[0]
        await asyncio.sleep(CALM_SECONDS)
        self.source.check()
        self.replicas.check()
        return told

    async def _outlive(self, told: Round) -> Span:
        """Lose a node and see how events flow without it, beside a plain client; then let it come back."""
        world = self.world
        await asyncio.to_thread(kafka_cluster.elect_preferred, world.stack.kafka_ports[0])
        await in_sync(world)
        await world.all_answer()
        await asyncio.to_thread(self._raw.place_queues)
        printed = self.replicas.said()
        every = (*world.stack.kafka_roles, *world.stack.rabbitmq_roles)
        connected = {role for role in every if world.connected(role)}
        outage = await OUTAGES[told.kind.name](world)
        told.node = outage.role
        try:
            through = asyncio.create_task(self._raw.through(outage.began, FLOW_SECONDS), name="raw client")
            told.during = await self._flow(outage.began, FLOW_SECONDS)
            told.through, told.slowest = await through, self._slowest
            least = outage.began + LEAST_OUTAGE_SECONDS
            await asyncio.sleep(max(0.0, least - time.monotonic()))
            if outage.role in connected:
                told.said = self.replicas.speakers(printed, world.addresses(outage.role))
        finally:
            await outage.mend()
        return outage.began, time.monotonic()

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

    # -- the end ------------------------------------------------------------------------------------------------------

    def so_far(self) -> Counts:
        """Return all counts until now."""
        return self._reckoning.so_far()

    async def end(self) -> Counts:
        """Send no more, wait for what is on its way, end the replicas in order; return all counts.

        What came after all is struck off the rounds' lists, and what is missing now stands on the last one's.
        """
        await self.source.stop()
        poured = sum(ledger.sent for ledger in self.source.of(STREAMS.index(VOLUME)).values())
        left = await self._reckoning.settled(STREAMS, SETTLE_SECONDS + poured / LEAST_RATE, READY_SECONDS)
        for replica in self.replicas.every:
            await self.replicas.terminate(replica)
        for key, numbers in left.items():
            self.every[-1].lost.setdefault(name_of(key), []).extend(numbers)
        for told in self.every:
            for key, ledger in self.source.ledgers.items():
                lost = told.lost.get(name_of(key), [])
                lost[:] = [number for number in lost if not ledger.is_done(number)]
        return self.so_far()


def _declare(stack: Stack) -> None:
    stack.rabbitmqctl("add_user", USER, PASSWORD)
    stack.rabbitmqctl("set_permissions", USER, "", ".*", ".*")
    with Wire(stack.amqp_port) as wire:
        causes_rabbitmq.prepare(wire, queue_arguments(stack))


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
