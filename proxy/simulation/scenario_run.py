"""Runs a scenario: production bridges under virtual time, a log in memory, the broker model, and what befalls them."""

import asyncio
import gc
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from functools import cache, partial
from random import Random
from typing import Any

from proxy.app import App
from proxy.model import Partition
from proxy.simulation import rivals, scenario_file, virtual_time
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog
from proxy.simulation.model_broker import ModelBroker
from proxy.simulation.model_queue import Message, ModelQueue
from proxy.simulation.offers import Offers
from proxy.simulation.scenario import Autoscale, Happening, Scenario
from proxy.simulation.trace import QueueSample, Told, Trace

EPOCH = 1_700_000_000
"""Wall time, in seconds since 1970, at which every run begins."""
SAMPLE = 0.05
"""Seconds between two looks at the queues."""
FOREIGN_TICK = 0.01
_GC_THRESHOLDS = (100_000, 50, 100)
"""As in production: what piles up are tuples without cycles."""
_TOPIC_BYTES = 6
_PARTITION_BYTES = 44
"""What Kafka's answer about committed offsets takes for a topic beside its name, and for each partition: number,
offset, error, and as metadata the topic's id."""
SETTLE = 0.5
"""Seconds before the first event, in which replicas connect and join; they are in no figure."""


def simulate(scenario: Scenario, policy: str, on_record: Callable[[Mapping[str, Any]], None] = lambda _: None) -> Trace:
    """Run the scenario once. Raises `SettingsError` if the policy or the settings can't be used.

    `on_record` gets every metric record of every replica, as the metric log would have it.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        return virtual_time.run(_Run(scenario, policy, on_record).live())
    finally:
        gc.set_threshold(*thresholds)


@dataclass(slots=True)
class _Replica:
    app: App
    log: MemoryLog
    task: asyncio.Task[None]


class _Run:
    """One run; made outside, lived inside the virtual loop."""

    def __init__(self, scenario: Scenario, policy: str, on_record: Callable[[Mapping[str, Any]], None]) -> None:
        self._scenario = scenario
        self._policy = policy
        self._tell = on_record
        self._chance = Random(scenario.seed)  # noqa: S311 -- repeatable is what it must be
        self.trace = Trace(scenario.seconds)
        self._settings = cache(lambda reads: scenario_file.settings(scenario, policy, reads=reads))
        """By the classes that a replica reads."""
        self._replicas: list[_Replica | None] = []
        """In the order of their starts; None once gone."""
        self._cluster: MemoryCluster
        self._broker: ModelBroker

    async def live(self) -> Trace:
        """Let everything happen; return what was seen."""
        scenario, loop = self._scenario, asyncio.get_running_loop()
        self._cluster = MemoryCluster(self._chance)
        self._cluster.on_asked = self._on_asked
        self._broker = ModelBroker(self._chance, self.trace, begins=SETTLE, epoch=EPOCH, delay=scenario.confirm_delay)
        self._declare()
        offers = Offers(scenario, self._cluster, self.trace)
        async with asyncio.TaskGroup() as tasks:
            for number, reads in enumerate(scenario.replicas):
                self._start(tasks, number, reads)
            await asyncio.sleep(SETTLE - loop.time())
            side: list[Coroutine[Any, Any, None]] = [
                offers.run(self._broker.seen, epoch=EPOCH),
                self._sample(),
                *(self._happen(event, tasks) for event in scenario.events),
                *(
                    self._autoscale(name, queue.autoscale)
                    for name, queue in scenario.queues.items()
                    if queue.autoscale is not None
                ),
            ]
            beside = [tasks.create_task(work) for work in side]
            await asyncio.sleep(scenario.seconds)
            for task in beside:
                task.cancel()
            self._broker.set_reading()
            if not self._broker.is_up:
                self._broker.start()
            for replica in self._replicas:
                if replica is not None:
                    replica.app.stop()
        self._account()
        return self.trace

    def _declare(self) -> None:
        scenario, broker = self._scenario, self._broker
        for name, queue in scenario.queues.items():
            broker.queues[name] = ModelQueue(queue, self._chance, self._begun(name))
        for name in scenario.routes:
            for key, queues in scenario_file.bindings(scenario, name).items():
                broker.leads[name, key] = tuple((queue, broker.queues[queue]) for queue in queues)
        for name, stream in scenario.streams.items():
            broker.costs[name] = stream.cost
            for place in scenario.places(name):
                broker.streams[Partition(*place)] = name

    def _start(self, tasks: asyncio.TaskGroup, number: int, reads: tuple[str, ...]) -> None:
        """Start a replica."""
        settings = self._settings(reads)
        name = f"replica-{number}"
        log = MemoryLog(self._cluster, settings.log, settings.limits, name=name)
        loop = asyncio.get_running_loop()
        first = next(iter(settings.routes.values()))
        app = App(
            settings,
            log,
            {route: self._broker.lane(route, its, settings.limits) for route, its in settings.routes.items()},
            self._broker.lane("dead letters", first, settings.limits),
            self._broker.monitor(),
            write=partial(self._on_record, number),
            wall=lambda: EPOCH - SETTLE + loop.time(),
            instance=name,
            insights=self._broker.insights(),
            judging=rivals.judging(self._scenario, self._policy),
        )
        self.trace.reads[number] = reads
        self._replicas.append(_Replica(app, log, tasks.create_task(app.run(), name=name)))

    # -- what is seen -------------------------------------------------------------------------------------------------

    def _begun(self, queue: str) -> Callable[[float, Message], None]:
        """Return what notes the begin of a consumer's work on a message of the queue."""
        worked, consumed = self.trace.worked[queue], self.trace.consumed

        def note(now: float, message: Message) -> None:
            at = now - SETTLE
            worked.add(at, message.cost)
            if message.stream:
                consumed[message.stream].add(at, at - message.due)

        return note

    def _on_record(self, replica: int, record: Mapping[str, Any]) -> None:
        self._tell(record)
        at = max(0.0, record["at_ms"] / 1000 - EPOCH)
        if record["kind"] == "class":
            self.trace.confirmed[replica].add(at, record["confirmed"])
            if record["bridge_us"]:
                buckets = {int(index): count for index, count in record["bridge_us"].items()}
                self.trace.bridged[record["class"]].append((at, buckets))
        elif record["kind"] == "incident" and record["name"] == "truncated":
            self.trace.truncated += record["count"]
        elif record["kind"] == "verdict":
            self.trace.told.append(Told(at, record["route"], record["congested"], record["cause"]))

    def _on_asked(self, told: Collection[Partition]) -> None:
        at = max(0.0, asyncio.get_running_loop().time() - SETTLE)
        self.trace.group_requests.add(at)
        topics = {partition.topic for partition in told}
        size = _PARTITION_BYTES * len(told) + sum(_TOPIC_BYTES + len(topic) for topic in topics)
        self.trace.group_bytes.add(at, size)

    async def _sample(self) -> None:
        loop = asyncio.get_running_loop()
        for tick in range(round(self._scenario.seconds / SAMPLE) + 1):
            at = tick * SAMPLE
            await asyncio.sleep(SETTLE + at - loop.time())
            for name, queue in self._broker.queues.items():
                queue.advance(loop.time())
                consumers = queue.consumers
                self.trace.queues[name].append(
                    QueueSample(at, queue.ready, consumers.held, consumers.capacity, queue.foreign, work=queue.work)
                )

    def _account(self) -> None:
        """Compare what was committed with what the queues took."""
        committed = self._cluster.group(self._scenario.name).committed
        for partition, (offset, *_) in committed.items():
            seen = self._broker.seen.get(partition)
            self.trace.lost += offset if seen is None else seen.missing(offset)
            self.trace.duplicates += 0 if seen is None else seen.again

    # -- what happens -------------------------------------------------------------------------------------------------

    async def _happen(self, event: Happening, tasks: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(SETTLE + event.at - loop.time())
        match event.what:
            case "replica_joins":
                self._start(tasks, len(self._replicas), event.reads)
            case "replica_leaves":
                self._take_replica(event).app.stop()
            case "replica_killed":
                replica = self._take_replica(event)
                await replica.log.sever()
                replica.task.cancel()
            case "foreign":
                await self._foreign(self._broker.queues[self._scenario.queue_of(event)], event)
            case _:
                undo = self._befall(event)
                if event.seconds is not None:
                    await asyncio.sleep(event.seconds)
                    undo()

    def _take_replica(self, event: Happening) -> _Replica:
        assert event.replica is not None
        replica, self._replicas[event.replica] = self._replicas[event.replica], None
        assert replica is not None
        return replica

    def _befall(self, event: Happening) -> Callable[[], object]:
        """Let it begin; return what ends it."""
        broker = self._broker
        if event.what in {"capacity", "consumers"}:
            return self._change(broker.queues[self._scenario.queue_of(event)], event)
        befalls: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "alarm": (partial(broker.set_reading, blocked=True), broker.set_reading),
            "paging_stall": (partial(broker.set_reading, stalled=True), broker.set_reading),
            "broker_restart": (broker.stop, broker.start),
            "monitor_lost": (partial(broker.set_monitored, on=False), partial(broker.set_monitored, on=True)),
            "management_lost": (partial(broker.set_managed, on=False), partial(broker.set_managed, on=True)),
            "log_lost": (self._cluster.go_down, self._cluster.come_up),
        }
        begin, end = befalls[event.what]
        begin()
        return end

    def _change(self, queue: ModelQueue, event: Happening) -> Callable[[], object]:
        """Set a queue's capacity or consumers; return what sets them back."""
        now = asyncio.get_running_loop().time
        assert event.to is not None
        if event.what == "capacity":
            capacity = queue.consumers.capacity
            queue.set_capacity(event.to, now())
            return lambda: queue.set_capacity(capacity, now())
        count = queue.consumers.count
        queue.set_consumers(int(event.to), now())
        return lambda: queue.set_consumers(count, now())

    async def _foreign(self, queue: ModelQueue, event: Happening) -> None:
        """Publish into a queue past Tidegate; what it refuses is gone."""
        assert event.to is not None
        loop = asyncio.get_running_loop()
        queue.foreign = event.to
        owed = 0.0
        end = self._scenario.seconds if event.seconds is None else event.at + event.seconds
        for tick in range(1, round((end - event.at) / FOREIGN_TICK) + 1):
            await asyncio.sleep(SETTLE + event.at + tick * FOREIGN_TICK - loop.time())
            queue.advance(loop.time())
            owed += event.to * FOREIGN_TICK
            while owed >= 1:
                owed -= 1
                if not queue.refuses():
                    queue.put(Message(loop.time(), "", 0), loop.time())
        queue.foreign = 0.0

    async def _autoscale(self, name: str, rule: Autoscale) -> None:
        """Want consumers by the rule; get them after the delay, lose them as late."""
        queue, loop = self._broker.queues[name], asyncio.get_running_loop()
        while True:
            await asyncio.sleep(rule.interval)
            queue.advance(loop.time())
            wanted = self._wanted(name, queue, rule)
            if wanted is not None:
                count = min(max(wanted, queue.consumers.begun_with), rule.most)
                loop.call_later(rule.delay, self._scale, name, count)

    def _wanted(self, name: str, queue: ModelQueue, rule: Autoscale) -> int | None:
        """Return how many consumers the rule wants; None if it knows nothing."""
        if rule.by == "wanted":
            route = self._scenario.route_to(name)
            told = [
                demand.queues.get(name, demand).wanted.consumers
                for replica in self._replicas
                if replica is not None and (demand := replica.app.steering.wanted.last.get(route)) is not None
            ]
            return max((count for count in told if count is not None), default=None)
        waiting = queue.ready if rule.by == "ready" else self._cluster.lag(self._scenario.name)
        return -(-waiting // rule.per_consumer)

    def _scale(self, name: str, count: int) -> None:
        queue, now = self._broker.queues[name], asyncio.get_running_loop().time()
        if queue.consumers.count not in {0, count}:
            queue.set_consumers(count, now)
            self.trace.scalings[name].append((now - SETTLE, count))
