"""One bridge once under an open schedule, seen from outside: when each event was due and when a consumer got it.

A response time counts from the instant at which an event was due to its arrival at a consumer, however late it left.
"""

import asyncio
import random
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
from pamqp import commands

from load import bridge_settings
from load.bridge_settings import Lane
from load.deliveries import Delivered, Deliveries
from load.kafka import KafkaView
from load.measure import cpu_seconds
from load.sender import Record, Sender
from load.stack import Stack
from load.wire import Wire
from load.worker import Worker, WorkerError

PARTITIONS = 4
GATHERED = 0.005
"""Seconds for which a producer gathers, as most do: what it sends at once was due within them."""
WARM_SECONDS = 4.0
START_SECONDS = 30.0
LAST_SECONDS = 1.0
"""What was due may come so long after the end."""
ACK_SECONDS = 0.02
PREFETCH = 2_000
CARRIED = 0.99
"""A rate of which less arrives in time is not carried."""
TELLING = 10
"""A percentile is told if so many samples lie beyond it."""
SEED = 20_240_422
_HEAD = struct.Struct(">dI")
_STEPS = 64


@dataclass(frozen=True)
class Offer:
    """What is sent."""

    rate: int
    """Events a second."""
    size: int
    """Bytes of one value, random."""
    seconds: float
    """Measured, after it has been warm."""


@dataclass(frozen=True)
class Seen:
    """What one contender made of it."""

    cpu: float
    """Share of a core, user and system, of the contender."""
    rabbitmq_cpu: float
    kafka_cpu: float
    switches: float
    """Times a second at which the contender gave up a core by itself: how often it was woken."""
    times_ms: list[float]
    """Response times of what was due within and came, sorted."""
    carried: float
    """Share of what was due within that came at most a second after the end."""
    lost: int
    repeated: int

    @property
    def is_saturated(self) -> bool:
        """Tell whether the rate was more than could be carried: times of what came would say too little."""
        return self.carried < CARRIED

    def percentiles(self, shares: tuple[float, ...]) -> dict[str, float]:
        """Return what is known of the times; a percentile with too few samples beyond it is left out."""
        times = self.times_ms
        told = [share for share in shares if len(times) * (100 - share) / 100 >= TELLING]
        return {f"p{share:g}": round(times[int(len(times) * share / 100)], 2) for share in told}


class Receiver(Deliveries):
    """Consumes one queue and knows when what came was due."""

    def __init__(self, queue: str) -> None:
        super().__init__()
        self._queue = queue
        self._tag = self._acked = 0
        self.arrivals: list[tuple[float, float]] = []
        """Due and come, in seconds of the monotonic clock."""
        self.numbers: set[int] = set()
        self.repeated = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to consume."""
        super().connection_made(transport)
        self.send(commands.Basic.Qos(prefetch_count=PREFETCH))
        self.send(commands.Basic.Consume(queue=self._queue, consumer_tag="0", nowait=True))

    def on_delivery(self, delivered: Delivered) -> None:
        """Take a message."""
        due, number = _HEAD.unpack_from(delivered.body)
        self._tag = delivered.tag
        self.arrivals.append((due, time.monotonic()))
        self.repeated += number in self.numbers
        self.numbers.add(number)

    async def acknowledge(self) -> None:
        """Acknowledge what came, now and then, until cancelled."""
        while True:
            await asyncio.sleep(ACK_SECONDS)
            if self._tag > self._acked:
                self._acked = self._tag
                self.ack(self._tag, multiple=True)


@dataclass
class Field:
    """Where contenders run: all of them on the same brokers."""

    stack: Stack
    folder: Path
    """For their settings and what they print."""


async def observe(field: Field, name: str, group: str, offer: Offer) -> Seen:
    """Run a contender under the offer, through a topic and a queue of their own, both named as the group.

    Raises WorkerError, WireError or KafkaError when the contender or a broker fails.
    """
    stack = field.stack
    async with KafkaView(stack.kafka) as kafka:
        await kafka.create(group, PARTITIONS)
    brokers = [psutil.Process(pid) for pid in (stack.rabbitmq_pid, stack.kafka_pid) if pid is not None]
    wire = Wire(stack.amqp_port)
    wire.declare(group)
    receiver, sent = Receiver(group), [0]
    await asyncio.get_running_loop().create_connection(lambda: receiver, sock=wire.detach())
    with CONTENDERS[name](field, group) as worker:
        async with asyncio.TaskGroup() as tasks:
            acknowledging = tasks.create_task(receiver.acknowledge())
            feeding = tasks.create_task(_feed(stack.kafka, group, offer, worker, sent))
            await _flowing(receiver, worker)
            await asyncio.sleep(WARM_SECONDS)
            before = [worker.cpu_seconds(), *map(cpu_seconds, brokers)]
            woken, began = worker.process.num_ctx_switches().voluntary, time.monotonic()
            await asyncio.sleep(offer.seconds)
            took = time.monotonic() - began
            after = [worker.cpu_seconds(), *map(cpu_seconds, brokers)]
            woken = worker.process.num_ctx_switches().voluntary - woken
            feeding.cancel()
            await asyncio.sleep(LAST_SECONDS)
            acknowledging.cancel()
        worker.stop()
    receiver.cut()
    with Wire(stack.amqp_port) as last:
        last.delete(group)
    async with KafkaView(stack.kafka) as kafka:
        await kafka.delete(group)
    spent = [(now - then) / took for now, then in zip(after, before, strict=True)]
    times = sorted(1000 * (come - due) for due, come in receiver.arrivals if began <= due < began + took)
    return Seen(
        spent[0], spent[1], spent[2], woken / took, times, len(times) / (offer.rate * took),
        lost=sent[0] - len(receiver.numbers), repeated=receiver.repeated,
    )  # fmt: skip


async def _feed(kafka: str, topic: str, offer: Offer, worker: Worker, sent: list[int]) -> None:
    """Write the schedule until cancelled; `sent` is how many events so far."""
    sender = Sender(kafka)
    await sender.start(topic)
    noise = random.Random(SEED).randbytes(offer.size + _STEPS)
    fillers = [noise[step : step + offer.size - _HEAD.size] for step in range(_STEPS)]
    began = time.monotonic()
    try:
        while True:
            await asyncio.sleep(GATHERED)
            worker.check()
            now, wall = time.monotonic(), time.time()
            batches: list[list[Record]] = [[] for _ in range(PARTITIONS)]
            while (due := began + sent[0] / offer.rate) <= now:
                at_ms = round(1000 * (wall - (now - due)))
                value = _HEAD.pack(due, sent[0]) + fillers[sent[0] % _STEPS]
                batches[sent[0] % PARTITIONS].append(Record(at_ms, None, value))
                sent[0] += 1
            for partition, batch in enumerate(batches):
                if batch:
                    await sender.send(topic, partition, batch, lambda *_: None)
    finally:
        await sender.stop()


async def _flowing(receiver: Receiver, worker: Worker) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not receiver.arrivals:
        worker.check()
        if time.monotonic() > deadline:
            raise WorkerError(f"nothing came within {START_SECONDS:.0f} s\n{worker.last_words()}")
        await asyncio.sleep(0.05)


def _tidegate(field: Field, group: str) -> Worker:
    return _bridge(field, group, "class_budget")


def _tidegate_static(field: Field, group: str) -> Worker:
    return _bridge(field, group, "static")


def _bridge(field: Field, group: str, policy: str) -> Worker:
    file = field.folder / f"{group}.yaml"
    bridge_settings.write(file, field.stack, group, [Lane("bulk", group, group)], in_flight=None, policy=policy)
    return Worker("proxy", "run", "-c", str(file), output=field.folder / f"{group}.txt")


def _mq_bridge(field: Field, group: str) -> Worker:
    return Worker(
        "load.contenders.mq_bridge",
        *("--kafka", field.stack.kafka, "--amqp", field.stack.amqp, "--topic", group),
        *("--group", group, "--queue", group),
        output=field.folder / f"{group}.txt",
    )


CONTENDERS: Mapping[str, Callable[[Field, str], Worker]] = {
    "tidegate": _tidegate,
    "static": _tidegate_static,
    "mq-bridge": _mq_bridge,
}
"""How each is started."""
