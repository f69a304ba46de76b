"""A million events through two replicas while brokers are restarted and a replica is killed; then the reckoning."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from load import bridge_settings
from load.admin_view import owned
from load.bridge_settings import Lane
from load.checker import Promise, Tally, broken, tally
from load.events import Bulk
from load.flow_back import At, Fault, FlowBack, Sighting, flow_back
from load.kafka import KafkaError, KafkaView
from load.metric_tail import records
from load.producer import fill
from load.stack import Stack, ports
from load.terminal import say
from load.wire import Wire, WireError
from load.worker import Worker, WorkerError
from proxy.model import Order

GROUP = "endurance"
REPLICAS = ("one", "two")
"""The last one is killed."""
SIZE = 256
SEED = 20_240_422
PARTITIONS = 4
"""Of each event type."""
IN_FLIGHT = 200
UNCOMMITTED = 5_000
"""Both are Tidegate's defaults, written into its settings so that the checker and the bridge mean the same."""
LOOK_SECONDS = 0.2
ANSWER_SECONDS = 2.0
"""A look gives up on a broker that does not answer for so long."""
FLOW_SECONDS = 900.0
"""All events must have arrived so long after the first replica's start."""
STOP_SECONDS = 40.0


@dataclass(frozen=True)
class Kind:
    """One event type of the test."""

    order: Order
    priority: str
    share: float
    """Of all events."""

    @property
    def name(self) -> str:
        """Return the name of type, topic and queue."""
        return f"endurance.{self.order.value}"


KINDS = (
    # One unresolved event per partition: each waits for its confirm, so this type gets the fewest events.
    Kind(Order.STRICT, "P1", 0.06),
    Kind(Order.PARTITION, "P2", 0.60),
    Kind(Order.NONE, "P3", 0.34),
)
FAULTS = (("RabbitMQ restarted", 0.15), ("Kafka restarted", 0.40), ("replica killed", 0.65))
"""Each when that share of all events is committed, and the flow is back from the one before."""


@dataclass(frozen=True)
class TypeResult:
    """What became of one event type."""

    kind: Kind
    partitions: list[Tally]
    promise: Promise
    reported: Mapping[str, int]
    """What the bridges counted themselves."""

    @property
    def whole(self) -> Tally:
        """Return all partitions together."""
        return sum(self.partitions, Tally())

    @property
    def broken(self) -> list[str]:
        """Return every promise that does not hold, in words."""
        return broken(self.partitions, self.promise)


@dataclass(frozen=True)
class Result:
    """What the whole test found."""

    types: list[TypeResult]
    faults: list[tuple[Fault, FlowBack]]
    seconds: float
    """From the replicas' start to the last commit."""


@dataclass
class Endurance:
    """The test on one stack; `events` in all."""

    stack: Stack
    events: int
    folder: Path
    sightings: list[Sighting] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    replicas: dict[str, Worker] = field(default_factory=dict)
    _admin_ports: dict[str, int] = field(default_factory=dict)
    _running: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def counts(self) -> dict[Kind, int]:
        """Return the events of one partition of each type."""
        return {kind: round(self.events * kind.share / PARTITIONS) for kind in KINDS}

    @property
    def ends(self) -> dict[At, int]:
        """Return the offset after the last event of each partition."""
        return {(kind.name, at): count for kind, count in self.counts.items() for at in range(PARTITIONS)}

    async def run(self) -> Result:
        """Do everything. Raises WorkerError, WireError, KafkaError or StackError when the test itself fails."""
        await self._prepare()
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with self._running:
            for name in REPLICAS:
                self._start(name)
            try:
                async with asyncio.timeout(FLOW_SECONDS):
                    await self._flow()
            except TimeoutError:
                raise WorkerError(f"out of time after {FLOW_SECONDS:.0f} s; {self._left()}") from None
            seconds = loop.time() - began
            for name, replica in self.replicas.items():
                say(f"stopping replica {name}")
                await asyncio.to_thread(replica.stop, STOP_SECONDS)
        say("reading every queue to its end")
        types = [self._reckon(kind) for kind in KINDS]
        backs = [(fault, flow_back(fault, self.sightings, self.ends)) for fault in self.faults]
        return Result(types, backs, seconds)

    async def _prepare(self) -> None:
        say(f"producing {sum(self.ends.values()):,} events of {SIZE} B into {len(self.ends)} partitions")
        async with KafkaView(self.stack.kafka) as kafka:
            for kind in KINDS:
                await kafka.create(kind.name, PARTITIONS)
        for kind, count in self.counts.items():
            await fill(self.stack.kafka, kind.name, [count] * PARTITIONS, _bulk(kind))
        with Wire(self.stack.amqp_port) as wire:
            for kind in KINDS:
                wire.declare(kind.name)

    def _start(self, name: str) -> None:
        lanes = [Lane(kind.name, kind.name, kind.name, kind.order, kind.priority) for kind in KINDS]
        limits = {"uncommitted_events": UNCOMMITTED}
        file = self.folder / f"{name}.yaml"
        port = self._admin_ports[name] = ports.choose(["admin"])["admin"]
        bridge_settings.write(file, self.stack, GROUP, lanes, in_flight=IN_FLIGHT, admin_port=port, limits=limits)
        self.replicas[name] = self._running.enter_context(
            Worker("proxy", "run", "-c", str(file), output=self.folder / f"{name}.txt")
        )

    # -- the flow and its faults --------------------------------------------------------------------------------------

    async def _flow(self) -> None:
        """Look all the time, break something at its share, return when everything is committed."""
        looking = asyncio.create_task(self._look())
        total = sum(self.ends.values())
        try:
            for (name, share), cause in zip(FAULTS, (self._rabbitmq, self._kafka, self._kill), strict=True):
                await self._until(looking, partial(self._is_committed, share * total))
                if self._is_committed(total):
                    raise WorkerError(f"everything had arrived before the fault {name!r}: take more events")
                await self._break(name, cause)
                await self._until(looking, self._flows_again)
                say(f"{name}: every partition flows again")
            await self._until(looking, partial(self._is_committed, total))
            await self._until(looking, self._all_own)  # also the one that was killed: it has come back for good
        finally:
            looking.cancel()

    async def _until(self, looking: asyncio.Task[None], condition: Callable[[], bool]) -> None:
        while not condition():
            for replica in self.replicas.values():
                replica.check()
            if looking.done():
                looking.result()
            await asyncio.sleep(LOOK_SECONDS)

    async def _break(self, name: str, cause: Callable[[], Awaitable[None]]) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        say(f"{name}, {self._committed():,} events committed")
        await cause()
        self.faults.append(Fault(name, began, clock()))

    async def _rabbitmq(self) -> None:
        await asyncio.to_thread(self.stack.stop_rabbitmq)
        await asyncio.to_thread(self.stack.start_rabbitmq)

    async def _kafka(self) -> None:
        await asyncio.to_thread(self.stack.stop_kafka)
        await asyncio.to_thread(self.stack.start_kafka)

    async def _kill(self) -> None:
        self.replicas[REPLICAS[-1]].kill()
        self._start(REPLICAS[-1])

    # -- looking ------------------------------------------------------------------------------------------------------

    def _is_committed(self, events: float) -> bool:
        return self._committed() >= events

    def _all_own(self) -> bool:
        return all(owned(port) for port in self._admin_ports.values())

    def _flows_again(self) -> bool:
        return flow_back(self.faults[-1], self.sightings, self.ends).everywhere is not None

    def _committed(self) -> int:
        return sum(self._last_committed().values())

    def _last_committed(self) -> Mapping[At, int]:
        """Return what was committed at the last look that told."""
        return next((seen.committed for seen in reversed(self.sightings) if seen.committed is not None), {})

    def _left(self) -> str:
        """Return what is missing, and what the replicas said last."""
        committed = self._last_committed()
        missing = {
            f"{topic}-{number}": end - committed.get((topic, number), 0) for (topic, number), end in self.ends.items()
        }
        words = "\n".join(f"{name}: {replica.last_words()}" for name, replica in self.replicas.items())
        return f"not committed: { ({at: count for at, count in missing.items() if count}) }\n{words}"

    async def _look(self) -> None:
        """Take sightings for ever."""
        clock = asyncio.get_running_loop().time
        wire: Wire | None = None
        async with KafkaView(self.stack.kafka) as kafka:
            while True:
                wire, queued = self._queued(wire)
                committed: dict[At, int] | None = None
                with suppress(KafkaError, TimeoutError, OSError):
                    async with asyncio.timeout(ANSWER_SECONDS):
                        committed = await kafka.committed(GROUP)
                self.sightings.append(Sighting(clock(), queued, committed))
                await asyncio.sleep(LOOK_SECONDS)

    def _queued(self, wire: Wire | None) -> tuple[Wire | None, int | None]:
        try:
            wire = wire or Wire(self.stack.amqp_port)
            return wire, sum(wire.count(kind.name).ready for kind in KINDS)
        except WireError:
            if wire is not None:
                wire.close()
            return None, None

    # -- the reckoning ------------------------------------------------------------------------------------------------

    def _reckon(self, kind: Kind) -> TypeResult:
        bulk = _bulk(kind)
        arrivals: list[list[int]] = [[] for _ in range(PARTITIONS)]
        with Wire(self.stack.amqp_port) as wire:
            for delivery in wire.drain(kind.name, wire.count(kind.name).ready):
                partition, number = bulk.read(delivery.body)
                arrivals[partition].append(number)
        reported = _reported(self.folder, kind.priority)
        promise = Promise(kind.order, IN_FLIGHT, UNCOMMITTED * len(FAULTS), reported["overtaken"])
        return TypeResult(kind, [tally(self.counts[kind], one) for one in arrivals], promise, reported)


def _bulk(kind: Kind) -> Bulk:
    return Bulk(SIZE, seed=SEED + list(Order).index(kind.order))


def _reported(folder: Path, priority: str) -> dict[str, int]:
    """Return what all replicas recorded of one class, added up; of a killed one the last second is missing."""
    sums = dict.fromkeys(("confirmed", "nacked", "unknown", "resent", "resent_unknown", "overtaken"), 0)
    for replica in REPLICAS:
        for record in records(folder / replica):
            if record["kind"] == "class" and record["class"] == priority:
                for name in sums:
                    sums[name] += record[name]
    return sums
