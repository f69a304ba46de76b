"""One run of the demo: the shop's schedule, Tidegate under one policy, services that can't keep up with a campaign."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from load import shop
from load.admin_view import owned
from load.checker import Whereabouts, whereabouts
from load.consumer import Downstream
from load.demo_log import DemoLog, KafkaOfDemo
from load.metric_tail import MetricTail
from load.producer import OpenLoop, Produced
from load.progress import Glance, Progress
from load.proof_log import ProofLog
from load.stack import Stack, ports
from load.wire import Wire
from load.worker import Worker, WorkerError

SETTINGS = Path(__file__).parent.parent / "config" / "demo.yaml"
READY_SECONDS = 30.0
"""Tidegate may take so long to own every partition."""
EMPTY_SECONDS = 15.0
"""The services may take so long to finish what is in the queue at the end: a second of work."""
LAG_SECONDS = 10.0
"""Kafka may leave the lag of an interval unanswered; so many intervals in a row it may not."""
POLL_SECONDS = 0.1
SHOW_SECONDS = 0.5


@dataclass(frozen=True)
class RunResult:
    """What one run left."""

    policy: str
    folder: Path
    """Holds Tidegate's metric log and the proof log of generator and services."""
    produced: Produced
    classes: dict[str, Whereabouts]
    """Where the events of each class are, by the checker's own count."""
    peak_depth: int
    """Most messages ready in the queue at any record."""


class DemoRun:
    """One run, in a new folder."""

    def __init__(self, stack: Stack, policy: str, folder: Path, log: DemoLog | None = None) -> None:
        folder.mkdir(parents=True)
        self._stack = stack
        self._log = log or KafkaOfDemo(stack.kafka)
        self._policy = policy
        self._folder = folder
        self._kinds = shop.kinds(policy)
        self._glance = Glance(shop.CLASSES)
        self._tail = MetricTail(folder)

    async def run(self) -> RunResult:
        """Do everything and return what it left. Raises WorkerError, WireError or KafkaError when something fails."""
        self._declare()
        async with AsyncExitStack() as running:
            view = await running.enter_async_context(self._log.view())
            for kind in self._kinds.values():
                await view.create(kind.topic, kind.partitions)
            tidegate = await self._start(running)
            log = running.enter_context(ProofLog(self._folder))
            services = await running.enter_async_context(
                Downstream(self._stack.amqp, shop.QUEUE, shop.CAPACITY, self._kinds, seed=shop.SEED, log=log)
            )
            generator = OpenLoop(self._log.sender(), shop.streams(self._policy), seed=shop.SEED, log=log)
            await self._watch(generator, services, tidegate)
            await self._last_lag(tidegate)
            await asyncio.to_thread(tidegate.stop)
            await self._empty(services)
            committed = await view.committed(f"demo-{self._policy}")
        return RunResult(
            self._policy,
            self._folder,
            generator.produced,
            self._whereabouts(generator.produced, services, committed),
            self._glance.peak_depth,
        )

    def _declare(self) -> None:
        with Wire(self._stack.amqp_port) as wire:
            wire.exchange(shop.EXCHANGE)
            wire.declare(shop.QUEUE, {"x-max-length": shop.BOUND, "x-overflow": "reject-publish"})
            wire.bind(shop.QUEUE, shop.EXCHANGE, "#")

    async def _start(self, running: AsyncExitStack) -> Worker:
        """Start Tidegate and wait until it owns every partition."""
        port = ports.choose(["admin"])["admin"]
        environment = {
            "DEMO_RABBITMQ": f"127.0.0.1:{self._stack.amqp_port}",
            "DEMO_EXCHANGE": shop.EXCHANGE,
            "DEMO_QUEUE": shop.QUEUE,
            "DEMO_POLICY": self._policy,
            "DEMO_METRICS": str(self._folder),
            "DEMO_ADMIN_PORT": str(port),
        }
        output = self._folder / "tidegate.txt"
        settings = self._log.settings(SETTINGS, self._folder)
        environment |= self._log.environment
        worker = Worker("proxy", "run", "-c", str(settings), output=output, environment=os.environ | environment)
        running.enter_context(worker)
        partitions = sum(kind.partitions for kind in self._kinds.values())
        await _until(lambda: owned(port) == partitions, worker, "Tidegate owns no partitions", READY_SECONDS)
        return worker

    async def _watch(self, generator: OpenLoop, services: Downstream, tidegate: Worker) -> None:
        """Show the run until its schedule has ended."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        sending = asyncio.create_task(generator.run())
        try:
            with Progress(self._policy, self._glance, seconds=shop.SECONDS) as progress:
                while not sending.done():
                    await asyncio.wait([sending], timeout=SHOW_SECONDS)
                    tidegate.check()
                    self._look(generator, services, loop.time())
                    progress.show(loop.time() - began)
            await sending
        finally:
            sending.cancel()

    async def _last_lag(self, tidegate: Worker) -> None:
        """Wait until a lag that counts every event has been recorded, or the report would call some of them lost."""
        ended_ms = time.time() * 1000

        def is_recorded() -> bool:
            self._glance.take(self._tail.poll())
            last = [self._glance.of_class.get(name, {}) for name in shop.CLASSES]
            return all(record.get("at_ms", 0) > ended_ms and record["lag"] is not None for record in last)

        await _until(is_recorded, tidegate, "Tidegate records no lag", LAG_SECONDS)

    def _look(self, generator: OpenLoop, services: Downstream, now: float) -> None:
        produced = Counter[str]()
        for kind in self._kinds.values():
            produced[kind.priority] += generator.produced.events[kind.name]
        self._glance.take(self._tail.poll())
        self._glance.count("produced", produced, now)
        self._glance.count("consumed", Counter({name: services.done[name] for name in shop.CLASSES}), now)

    async def _empty(self, services: Downstream) -> None:
        """Wait until the services have finished all that the queue has taken."""
        with Wire(self._stack.amqp_port) as wire:
            await _until(
                lambda: wire.count(shop.QUEUE).ready == 0 and services.is_idle,
                None,
                "the services have not finished the queue",
                EMPTY_SECONDS,
            )

    def _whereabouts(
        self, produced: Produced, services: Downstream, committed: dict[tuple[str, int], int]
    ) -> dict[str, Whereabouts]:
        classes = dict.fromkeys(shop.CLASSES, Whereabouts())
        for at, end in produced.ends.items():
            found = whereabouts(end, committed.get(at, 0), services.consumed.get(at, []))
            classes[self._kinds[at[0]].priority] += found
        return classes


async def _until(condition: Callable[[], bool], worker: Worker | None, trouble: str, seconds: float) -> None:
    """Wait for the condition. Raises WorkerError if the worker ends before, or with `trouble` after `seconds`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition():
        if worker is not None:
            worker.check()
        if loop.time() > deadline:
            words = "" if worker is None else f"\n{worker.last_words()}"
            raise WorkerError(f"{trouble} after {seconds:.0f} s{words}")
        await asyncio.sleep(POLL_SECONDS)
