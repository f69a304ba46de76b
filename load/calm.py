"""Hours in which nothing happens: `python -m load.calm`. One connection, no fault, and nothing may grow.

What renews connections hides what piles up on one; a leak of 1.8 GB a day was seen on a calm day only. So one Tidegate
moves a steady stream of three event types, policy and all, and its memory, blocks, tasks and descriptors are drawn.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import aio_pika
from aio_pika.abc import AbstractIncomingMessage

from load import admin_view, machine
from load.bridge_settings import Lane, write
from load.events import Kind, brand_alert, marketing, order_confirmation
from load.faults.session import guarded
from load.growth import Sample, draw, steadiness
from load.kafka import KafkaView
from load.producer import OpenLoop, Stream
from load.schedule import constant
from load.stack import Stack, ports
from load.terminal import command_line, run, say
from load.wire import Wire
from load.worker import Worker, WorkerError

QUEUE = "calm"
PARTITIONS = 3
SAMPLE_SECONDS = 2.0
SAY_SECONDS = 60.0
READY_SECONDS = 300.0
"""Tidegate may take so long to own every partition, and at the end to move what is left: machines are busy."""
KINDS = (
    Kind("calm-orders", "P1", "calm.orders", PARTITIONS, order_confirmation),
    Kind("calm-alerts", "P2", "calm.alerts", PARTITIONS, brand_alert),
    Kind("calm-teasers", "P3", "calm.teasers", PARTITIONS, marketing),
)

EXAMPLES = """\
The first ten minutes, or a sixth of the time if that is less, are warm-up. After it the memory may rise by 1 MB an
hour, the blocks that Python holds by half a percent, and there may be no more tasks and descriptors than before.

examples:
  python -m load.calm --minutes 60 --json out/calm.json                an hour at 2,000 events a second
  python -m load.calm --minutes 10 --rate 200 --json out/calm.json     shorter: the verdict means little

exit codes: 0 nothing grew and everything arrived; 1 not so, or it could not be ended; 2 the machine lacks something
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run for as long as is said and return the exit code."""
    options = _parser().parse_args(arguments)
    return guarded(lambda: _calm(options))


def _calm(options: argparse.Namespace) -> int:
    file: Path = options.json
    file.parent.mkdir(parents=True, exist_ok=True)
    with Stack.up(rabbitmq_sbin=options.rabbitmq_sbin) as stack:
        about = machine.describe(stack) | {"measured": "calm", "minutes": options.minutes, "rate": options.rate}
        calm = _Calm(stack, file.with_suffix(""), options.rate, options.minutes * 60)
        run(calm.run())
    found = steadiness(calm.samples, 0)
    record = about | {"sent": calm.sent, "arrived": calm.arrived, "samples": calm.samples, "growth": found._asdict()}
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    draw(calm.samples, file.with_suffix(".png"))
    say(f"everything is in {file}, the picture in {file.with_suffix('.png')}")
    print(f"{calm.sent:,} events sent, {calm.arrived:,} arrived.")
    print(found.words)
    return 1 if found.is_broken or calm.arrived != calm.sent else 0


class _Calm:
    """One run."""

    def __init__(self, stack: Stack, folder: Path, rate: float, seconds: float) -> None:
        self.samples: list[Sample] = []
        self.sent = 0
        self.arrived = 0
        self._stack = stack
        self._folder = folder
        self._seconds = seconds
        self._streams = [Stream(kind, constant(rate / len(KINDS), seconds)) for kind in KINDS]

    async def run(self) -> None:
        """Send, take, look. Raises WorkerError if Tidegate does not move everything."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with Wire(self._stack.amqp_port) as wire:
            wire.declare(QUEUE)
        async with AsyncExitStack() as running:
            kafka = await running.enter_async_context(KafkaView(self._stack.kafka))
            for kind in KINDS:
                await kafka.create(kind.topic, kind.partitions)
            consumer = await running.enter_async_context(await aio_pika.connect(self._stack.amqp))
            queue = await (await consumer.channel()).get_queue(QUEUE)
            await queue.consume(self._take, no_ack=True)
            admin = ports.choose(["admin"])["admin"]
            settings = write(
                self._folder / "tidegate.yaml", self._stack, "calm",
                [Lane(kind.name, kind.topic, QUEUE, priority=kind.priority) for kind in KINDS],
                in_flight=None, admin_port=admin, policy="class_budget",
            )  # fmt: skip
            tidegate = Worker("proxy", "run", "-c", str(settings), output=self._folder / "tidegate.txt")
            running.enter_context(tidegate)
            await self._until(lambda: admin_view.owned(admin) == PARTITIONS * len(KINDS), tidegate)
            generator = OpenLoop(self._stack.kafka, self._streams, seed=1)
            sending = asyncio.create_task(generator.run())
            looking = asyncio.create_task(self._look(tidegate, admin))
            try:
                await asyncio.wait([sending, looking], return_when=asyncio.FIRST_COMPLETED)
            finally:
                looking.cancel()
                sending.cancel()
                await asyncio.wait([sending, looking])
            if looking.done() and not looking.cancelled():
                looking.result()
            self.sent = sum(sending.result().events.values())
            await self._until(lambda: self.arrived >= self.sent, tidegate)
            await asyncio.to_thread(tidegate.stop)

    async def _take(self, _message: AbstractIncomingMessage) -> None:
        self.arrived += 1

    async def _look(self, tidegate: Worker, admin: int) -> None:
        began = said = time.monotonic()
        while True:
            tidegate.check()
            await asyncio.sleep(SAMPLE_SECONDS)
            told = await asyncio.to_thread(admin_view.held, admin)
            process = tidegate.process
            with process.oneshot():
                memory, files, threads = process.memory_info().rss, process.num_fds(), process.num_threads()
            at = round(time.monotonic() - began, 1)
            self.samples.append(Sample(at, 0, process.pid, memory, files, threads, told.tasks, told.blocks))
            if time.monotonic() - said >= SAY_SECONDS:
                said = time.monotonic()
                say(f"{at / 60:.0f} of {self._seconds / 60:g} min: {memory / 1e6:.1f} MB, {self.arrived:,} arrived")

    async def _until(self, condition: Callable[[], bool], tidegate: Worker) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not await asyncio.to_thread(condition):
            tidegate.check()
            if time.monotonic() > deadline:
                raise WorkerError(
                    f"not so after {READY_SECONDS:g} s: {self.arrived:,} arrived\n{tidegate.last_words()}"
                )
            await asyncio.sleep(0.1)


def _parser() -> argparse.ArgumentParser:
    parser = command_line(
        "load.calm",
        "Watches the memory of a Tidegate to which nothing happens.",
        EXAMPLES,
    )
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="where every figure goes")
    parser.add_argument("--minutes", type=float, default=60.0, metavar="M", help="how long (default: 60)")
    parser.add_argument("--rate", type=float, default=2000.0, metavar="R", help="events a second (default: 2,000)")
    parser.add_argument("--rabbitmq-sbin", type=Path, metavar="DIR", help="scripts of another RabbitMQ")
    return parser


if __name__ == "__main__":
    sys.exit(main())
