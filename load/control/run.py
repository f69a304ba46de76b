"""One run of a scenario under one policy: Tidegate processes between a real Kafka and a real RabbitMQ."""

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from load.control import offer
from load.control.calibration import share_at
from load.control.generator import Generator
from load.control.happenings import Happenings
from load.control.payload import decode
from load.control.record import Record
from load.control.relay import Relay
from load.control.replicas import Replicas
from load.control.services import Services
from load.kafka import KafkaView
from load.metric_tail import records
from load.progress import Glance, Progress
from load.stack import Stack
from load.wire import Wire, WireError
from proxy.simulation import scenario_file
from proxy.simulation.scenario import Queue, Scenario
from proxy.simulation.trace import QueueSample, Trace

SAMPLE = 0.05
"""Seconds between two looks at the queues."""
HEAD_START = 0.3
"""Seconds between the last preparation and the first event."""
ARRANGE_SECONDS = 4.0
"""... where the broker must be told beforehand what to do."""
SHOW_SECONDS = 0.5
MOST_PRIORITIES = 10
TOPICS_AT_ONCE = 50
LEAVE_SECONDS = 10.0


@dataclass(frozen=True)
class Result:
    """What one run left."""

    scenario: Scenario
    """As it happened: a broker takes the time it needs to start."""
    trace: Trace
    worst_lateness: float
    """Seconds by which the generator was late at worst."""
    failed: int
    """Events that Kafka did not take."""
    cpu: float
    """Processor seconds that all Tidegate processes took for a second of the run, their start left out."""
    machine_load: float
    """Load average of the machine when the run ended."""


def arguments(queue: Queue) -> dict[str, Any]:
    """Return what a queue is declared with."""
    told: dict[str, Any] = {}
    if queue.most_messages is not None:
        told |= {"x-max-length": queue.most_messages, "x-overflow": "drop-head" if queue.sheds else "reject-publish"}
    if queue.kind == "quorum":
        told["x-queue-type"] = "quorum"
    if queue.kind == "priority":
        told["x-max-priority"] = MOST_PRIORITIES
    return told


class Run:
    """One run, in a new folder; `prefix` begins the names of all that it makes at the brokers.

    `scales` tells what the consumers of a queue take of an always-full one, as a share of what they were told to.
    """

    def __init__(
        self, stack: Stack, scenario: Scenario, policy: str, folder: Path, prefix: str, scales: Mapping[str, float]
    ) -> None:
        self._stack = stack
        self._scenario = scenario
        self._policy = policy
        self._folder = folder
        self._prefix = prefix
        self._scales = scales
        self._record = Record(scenario)
        self._topics = [topic._replace(name=f"{prefix}.{topic.name}") for topic in offer.topics(scenario)]
        self._queues = {name: f"{prefix}.{name}" for name in scenario.queues}
        self._services: dict[str, Services] = {}
        self._wall_start = 0.0

    async def run(self) -> Result:
        """Do everything. Raises WorkerError, WireError, KafkaError or StackError when something fails."""
        async with AsyncExitStack() as running:
            kafka = await running.enter_async_context(KafkaView(self._stack.kafka))
            self._declare()
            running.callback(self._delete)
            await self._create(kafka)
            generator = Generator(self._stack.kafka, self._topics)
            running.push_async_callback(generator.close)
            await generator.start()
            await generator.open(kafka)
            await generator.preload(offer.preload(self._scenario))
            relay = await self._relay(running)
            await self._serve(running)
            port = self._stack.amqp_port if relay is None else relay.port
            replicas = running.enter_context(
                Replicas(self._stack, self._scenario, self._policy, self._folder, self._prefix, port)
            )
            for reads in self._scenario.replicas:
                replicas.start(reads)
            await replicas.until_owned(sum(topic.partitions for topic in self._topics))
            happenings = Happenings(self._stack, self._scenario, self._services, self._queues, relay, replicas)
            started = replicas.cpu
            await self._live(generator, happenings, replicas)
            machine_load = os.getloadavg()[0]
            await replicas.end_all()
            for services in self._services.values():
                services.close()
            await asyncio.to_thread(self._drain)
            self._account(await kafka.committed(self._prefix), happenings, replicas)
            for topic in self._topics:
                await kafka.delete(topic.name)
        cpu = (replicas.cpu - started) / self._scenario.seconds
        return Result(
            happenings.happened, self._record.trace, generator.worst_lateness, generator.failed, cpu, machine_load
        )

    def _declare(self) -> None:
        with Wire(self._stack.amqp_port) as wire:
            for name, queue in self._scenario.queues.items():
                wire.declare(self._queues[name], arguments(queue))
            for route in self._scenario.routes:
                wire.exchange(f"{self._prefix}.{route}")
                for key, queues in scenario_file.bindings(self._scenario, route).items():
                    for name in queues:
                        wire.bind(self._queues[name], f"{self._prefix}.{route}", key)

    def _delete(self) -> None:
        with Wire(self._stack.amqp_port) as wire:
            for name in self._queues.values():
                wire.delete(name)
            for route in self._scenario.routes:
                wire.delete_exchange(f"{self._prefix}.{route}")

    async def _create(self, kafka: KafkaView) -> None:
        for first in range(0, len(self._topics), TOPICS_AT_ONCE):
            several = self._topics[first : first + TOPICS_AT_ONCE]
            await asyncio.gather(*(kafka.create(topic.name, topic.partitions) for topic in several))

    async def _relay(self, running: AsyncExitStack) -> Relay | None:
        delay = self._scenario.confirm_delay
        if delay or any(event.what == "monitor_lost" for event in self._scenario.events):
            return await running.enter_async_context(Relay(self._stack.amqp_port, delay))
        return None

    async def _serve(self, running: AsyncExitStack) -> None:
        for name, queue in self._scenario.queues.items():
            services = Services(
                self._stack.amqp_port, self._queues[name], queue, seed=self._scenario.seed,
                on_stored=partial(self._record.on_stored, name), on_begun=partial(self._record.on_begun, name),
                cost_of=self._record.cost_of,
            )  # fmt: skip
            running.callback(services.close)
            await services.connect()
            self._services[name] = services

    async def _live(self, generator: Generator, happenings: Happenings, replicas: Replicas) -> None:
        """Let the scenario happen and watch it to its end."""
        start = time.monotonic() + (ARRANGE_SECONDS if happenings.are_arranged else HEAD_START)
        self._wall_start = time.time() + start - time.monotonic()
        self._record.start = happenings.start = start
        await asyncio.to_thread(happenings.arrange)
        laid = generator.lay(offer.backlogs(self._scenario), start, self._record.on_laid)
        offered = generator.run(offer.schedule(self._scenario), start, self._record.on_due)
        works = (laid, offered, self._look(start, happenings), happenings.run())
        beside = [asyncio.create_task(work) for work in works]
        try:
            await self._show(start, beside, replicas)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await asyncio.to_thread(happenings.mend)

    async def _show(self, start: float, beside: list["asyncio.Task[None]"], replicas: Replicas) -> None:
        glance = Glance(self._scenario.classes)
        with Progress(f"{self._scenario.name}, {self._policy}", glance, seconds=self._scenario.seconds) as progress:
            while (passed := time.monotonic() - start) < self._scenario.seconds:
                await asyncio.sleep(min(SHOW_SECONDS, max(0.0, self._scenario.seconds - passed)))
                replicas.check()
                for task in beside:
                    if task.done():
                        task.result()
                for tail in replicas.tails:
                    glance.take(tail.poll())
                for what, counts in self._record.totals().items():
                    glance.count(what, dict.fromkeys(self._scenario.classes, 0) | counts, time.monotonic())
                progress.show(max(0.0, passed))

    async def _look(self, start: float, happenings: Happenings) -> None:
        """Look at every queue each 50 ms; one that can't be asked counts as it was seen last, without consumers."""
        ready = dict.fromkeys(self._queues, 0)
        for tick in range(round(self._scenario.seconds / SAMPLE) + 1):
            await asyncio.sleep(start + tick * SAMPLE - time.monotonic())
            for name, services in self._services.items():
                try:
                    ready[name] = await services.ready()
                    capacity = services.capacity
                except WireError:
                    capacity = 0.0
                foreign = happenings.foreign_rate[name]
                seen = QueueSample(tick * SAMPLE, ready[name], services.held, capacity, foreign, work=ready[name])
                self._record.on_sample(name, seen, services.delivered, happenings.foreign[name])

    def _drain(self) -> None:
        """Take what is left in the queues into account: it was stored, although nobody has worked on it."""
        with Wire(self._stack.amqp_port) as wire:
            for name, queue in self._queues.items():
                # What the consumers held is back in the queue once it knows that they have gone.
                deadline = time.monotonic() + LEAVE_SECONDS
                while wire.count(queue).consumers:
                    if time.monotonic() > deadline:
                        raise WireError(f"{queue} still has consumers after {LEAVE_SECONDS:.0f} s")
                    time.sleep(SAMPLE)
                left = [decode(delivery.body) for delivery in wire.drain(queue, wire.count(queue).ready)]
                self._record.on_left(name, left, self._services[name].given_back)

    def _account(self, committed: Mapping[tuple[str, int], int], happenings: Happenings, replicas: Replicas) -> None:
        record, places = self._record, {topic.name: place for place, topic in enumerate(self._topics)}
        record.account({(places[topic], number): offset for (topic, number), offset in committed.items()})
        record.trace.scalings = happenings.scalings
        record.trace.reads = dict(enumerate(replicas.reads))
        for number in range(len(replicas.reads)):
            record.on_metrics(number, records(replicas.folder_of(number)), self._wall_start)
        for name, services in self._services.items():
            record.weigh(name)
            share = share_at(self._scales.get(name, 1.0), record.mean_cost(name))
            record.scale(name, share * services.luck)
