"""What a bridge costs at everyday rates, and how long an event takes: an open schedule, contenders in turn.

A response time counts from the instant at which an event was due to its arrival at a consumer, however late it left.
"""

import asyncio
import json
import struct
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import psutil
from pamqp import commands

from load import bridge_settings, machine
from load.bridge_settings import Lane
from load.deliveries import Delivered, Deliveries
from load.kafka import KafkaView
from load.measure import cpu_seconds
from load.sender import Record, Sender
from load.stack import Stack
from load.tables import aligned
from load.terminal import run, say
from load.wire import Wire
from load.worker import Worker, WorkerError

RATES = (200, 2_000, 8_000)
"""Events a second."""
SIZE = 256
PARTITIONS = 4
GATHERED = 0.005
"""Seconds for which a producer gathers, as most do: what it sends at once was due within them."""
WARM_SECONDS, SECONDS = 4.0, 12.0
START_SECONDS = 30.0
ACK_SECONDS = 0.02
PREFETCH = 2_000
TELLING = 10
"""A percentile is told if so many samples lie beyond it."""
PERCENTILES = (50.0, 99.0, 99.9)
_KEYS = tuple(f"p{share:g}" for share in PERCENTILES)
_HEAD = struct.Struct(">dI")


@dataclass(frozen=True)
class Run:
    """One contender once at one rate."""

    contender: str
    rate: int
    round: int
    cpu: float
    """Share of a core, user and system, of the contender."""
    rabbitmq_cpu: float
    kafka_cpu: float
    response_ms: Mapping[str, float]
    """Percentiles, due instant to consumer."""
    switches: float
    """Times a second at which the contender gave up a core by itself: how often it was woken."""
    lost: int
    repeated: int


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
class Costs:
    """What all runs share, and what they found."""

    stack: Stack
    folder: Path
    runs: list[Run] = field(default_factory=list)


def measure(stack: Stack, rounds: int, file: Path, rates: tuple[int, ...] = RATES) -> int:
    """Run all, print the table, write the JSON; return 0 if nothing was lost or repeated, else 1.

    Raises WorkerError, WireError or KafkaError when a contender or a broker fails.
    """
    about = machine.describe(stack)
    names = [name for name in CONTENDERS if name != "mq-bridge" or find_spec("mq_bridge")]
    with tempfile.TemporaryDirectory(prefix="tidegate-cost-") as folder:
        costs = Costs(stack, Path(folder))
        for number in range(rounds):
            turn = number % len(names)
            for rate in rates:
                for name in names[turn:] + names[:turn]:
                    costs.runs.append(one := run(_one(costs, name, rate, number)))
                    say(f"round {number + 1}, {rate}/s, {name}: {one.cpu:.1%} of a core, {dict(one.response_ms)} ms")
    file.parent.mkdir(parents=True, exist_ok=True)
    record = about | {"measured": "cost", "size": SIZE, "runs": [asdict(one) for one in costs.runs]}
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(_table(costs.runs))
    return 1 if any(one.lost or one.repeated for one in costs.runs) else 0


async def _one(costs: Costs, name: str, rate: int, number: int) -> Run:
    stack, group = costs.stack, f"cost.{name}.{rate}.{number}"
    async with KafkaView(stack.kafka) as kafka:
        await kafka.create(group, PARTITIONS)
    brokers = [psutil.Process(pid) for pid in (stack.rabbitmq_pid, stack.kafka_pid) if pid is not None]
    wire = Wire(stack.amqp_port)
    wire.declare(group)
    receiver, sent = Receiver(group), [0]
    await asyncio.get_running_loop().create_connection(lambda: receiver, sock=wire.detach())
    with CONTENDERS[name](costs, group) as worker:
        async with asyncio.TaskGroup() as tasks:
            acknowledging = tasks.create_task(receiver.acknowledge())
            feeding = tasks.create_task(_feed(stack.kafka, group, rate, worker, sent))
            await _flowing(receiver, worker)
            await asyncio.sleep(WARM_SECONDS)
            before = [worker.cpu_seconds(), *map(cpu_seconds, brokers)]
            woken, began = worker.process.num_ctx_switches().voluntary, time.monotonic()
            await asyncio.sleep(SECONDS)
            took = time.monotonic() - began
            after = [worker.cpu_seconds(), *map(cpu_seconds, brokers)]
            woken = worker.process.num_ctx_switches().voluntary - woken
            feeding.cancel()
            await asyncio.sleep(1.0)
            acknowledging.cancel()
        worker.stop()
    receiver.cut()
    with Wire(stack.amqp_port) as last:
        last.delete(group)
    spent = [(now - then) / took for now, then in zip(after, before, strict=True)]
    times = sorted(1000 * (come - due) for due, come in receiver.arrivals if began <= due < began + took)
    return Run(
        name, rate, number, spent[0], spent[1], spent[2], _percentiles(times), woken / took,
        lost=sent[0] - len(receiver.numbers), repeated=receiver.repeated,
    )  # fmt: skip


async def _feed(kafka: str, topic: str, rate: int, worker: Worker, sent: list[int]) -> None:
    """Write the schedule until cancelled; `sent` is how many events so far."""
    sender = Sender(kafka)
    await sender.start(topic)
    filler = bytes(SIZE - _HEAD.size)
    began = time.monotonic()
    try:
        while True:
            await asyncio.sleep(GATHERED)
            worker.check()
            now, wall = time.monotonic(), time.time()
            batches: list[list[Record]] = [[] for _ in range(PARTITIONS)]
            while (due := began + sent[0] / rate) <= now:
                at_ms = round(1000 * (wall - (now - due)))
                batches[sent[0] % PARTITIONS].append(Record(at_ms, None, _HEAD.pack(due, sent[0]) + filler))
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


def _percentiles(times: list[float]) -> dict[str, float]:
    """Return what is known of a sorted list; a percentile with too few samples beyond it is left out."""
    told = [share for share in PERCENTILES if len(times) * (100 - share) / 100 >= TELLING]
    return {f"p{share:g}": round(times[int(len(times) * share / 100)], 2) for share in told}


def _tidegate(costs: Costs, group: str) -> Worker:
    file = costs.folder / f"{group}.yaml"
    bridge_settings.write(file, costs.stack, group, [Lane("bulk", group, group)], in_flight=None, policy="class_budget")
    return Worker("proxy", "run", "-c", str(file), output=costs.folder / f"{group}.txt")


def _tidegate_static(costs: Costs, group: str) -> Worker:
    file = costs.folder / f"{group}.yaml"
    bridge_settings.write(file, costs.stack, group, [Lane("bulk", group, group)], in_flight=None)
    return Worker("proxy", "run", "-c", str(file), output=costs.folder / f"{group}.txt")


def _mq_bridge(costs: Costs, group: str) -> Worker:
    return Worker(
        "load.contenders.mq_bridge",
        *("--kafka", costs.stack.kafka, "--amqp", costs.stack.amqp, "--topic", group),
        *("--group", group, "--queue", group),
        output=costs.folder / f"{group}.txt",
    )


CONTENDERS: Mapping[str, Callable[[Costs, str], Worker]] = {
    "tidegate": _tidegate,
    "static": _tidegate_static,
    "mq-bridge": _mq_bridge,
}
"""How each is started."""


def _table(runs: list[Run]) -> str:
    rows = [["", "of a core", "RabbitMQ", "Kafka", "woken/s", *(f"P{share:g} ms" for share in PERCENTILES)]]
    for rate in dict.fromkeys(one.rate for one in runs):
        for name in dict.fromkeys(one.contender for one in runs):
            of = [one for one in runs if (one.contender, one.rate) == (name, rate)]
            shares = [median(getattr(one, part) for one in of) for part in ("cpu", "rabbitmq_cpu", "kafka_cpu")]
            woken = median(one.switches for one in of)
            told = [[one.response_ms[key] for one in of if key in one.response_ms] for key in _KEYS]
            times = [f"{median(one):.1f}" if one else "-" for one in told]
            rows.append([f"{name} {rate}/s", *(f"{share:.1%}" for share in shares), f"{woken:,.0f}", *times])
    return aligned(rows)
