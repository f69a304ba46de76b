"""Nakadi, RabbitMQ and the network between them and the replicas; a replica is the production app with its clients."""

import asyncio
import json
from collections.abc import Mapping
from contextvars import copy_context
from random import Random
from typing import Any

from proxy.app import App
from proxy.nakadi_log import NakadiLog
from proxy.nakadi_log.offsets import place
from proxy.rabbitmq import RabbitBroker
from proxy.simulation.virtual_time import PROCESS
from tests.histories.nakadi.judge import Judge
from tests.histories.nakadi.plan import NakadiPlan
from tests.histories.plan import DEAD_QUEUE, TOPICS
from tests.nakadi.stream import Stream
from tests.nakadi.subscription import Subscription
from tests.nakadi.views import moment
from tests.wire.loop import WireLoop
from tests.wire.nakadi import NakadiPeer
from tests.wire.rabbit.cluster import RabbitCluster

STOP_DEADLINE = 30.0
"""Virtual seconds that an orderly stop may take."""
TAKES = 25


class World:
    """Made inside a `WireLoop`."""

    def __init__(self, plan: NakadiPlan) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WireLoop)
        assert plan.wire is not None
        self.loop = loop
        self.plan = plan
        self.chance = Random(f"{plan.seed} world")
        self.judge = Judge(plan, loop.time)
        self.network = loop.network
        self.network.latency, self.network.splits = plan.latency, plan.wire.splits
        self.nakadi = NakadiPeer(Random(f"{plan.seed} nakadi"), plan.manners)
        bus = self.nakadi.bus
        bus.on_append = lambda kind, number, events: self.judge.on_appended((kind.name, str(number)), list(events))
        bus.on_subscribed = self._on_subscribed
        self.broker = RabbitCluster(self.network, Random(f"{plan.seed} broker"), plan.settings.broker.hosts)
        self.broker.frame_max, self.broker.confirm_seconds = plan.wire.frame_max, plan.wire.confirm_seconds
        self.broker.on_published = self.judge.on_published
        self.broker.on_wrong = lambda process, text: self.judge.accuse(f"{process} breaks the protocol: {text}")
        self.queues = {
            name: self.broker.declare_queue(name, bound=plan.queue_bound)
            for route in plan.settings.routes.values()
            for name in route.queue_names
        }
        for queue in self.queues.values():
            queue.consumers = 1
        self.letters = self.broker.declare_queue(DEAD_QUEUE)
        for route in plan.settings.routes.values():
            self.broker.declare_exchange(route.exchange)
            for name in route.queue_names:
                self.broker.bind(route.exchange, name)
        for topic in TOPICS:
            bus.create(topic, plan.partitions, created_at=self.nakadi.wall())
        self.replicas: list[Replica] = []
        self._made = 0
        self._started = 0

    def produce(self) -> None:
        """Publish one event to each partition."""
        for event_type in list(self.nakadi.bus.event_types.values()):
            for number in range(len(event_type.partitions)):
                self._made += 1
                body = {
                    "metadata": {"eid": f"e-{self._made}", "occurred_at": moment(self.nakadi.wall())},
                    "n": self._made,
                    "text": "x" * self.chance.randrange(40),
                }
                kept = json.dumps(body, separators=(",", ":")).encode()
                self.nakadi.bus.append(event_type.name, number, [kept], self.nakadi.wall())

    def consume(self) -> None:
        """Take what has come."""
        for queue in (*self.queues.values(), self.letters):
            queue.take(TAKES)

    def start(self) -> "Replica":
        """Start a replica."""
        self._started += 1
        name = f"replica-{self._started}"
        self.judge.note(f"{name} starts")
        self.judge.interruptions.update(TOPICS)
        self.replicas.append(Replica(self, name))
        return self.replicas[-1]

    def unfinished(self) -> str | None:
        """Return what has not gone its way yet."""
        for (name, number), line in self.judge.lines.items():
            if line.next < len(line.events):
                return f"{name}/{number} {line.next} of {len(line.events)} has not arrived"
            committed = [
                part.committed
                for each in self.nakadi.bus.subscriptions.values()
                if (part := each.parts.get((name, number))) is not None
            ]
            if committed != [len(line.events)]:
                return f"{name}/{number} is committed up to {committed} of {len(line.events)}"
        return None

    def on_record(self, record: Mapping[str, Any]) -> None:
        """Judge what a metric log would say of positions."""
        if record["kind"] == "committed":
            for told in record["ranges"]:
                self.judge.on_range((record["topic"], str(told["partition"])), range(told["first"], told["end"]))
        elif record["kind"] == "incident" and record["name"] == "truncated":
            key = record["topic"], str(record["partition"])
            log = self.nakadi.bus.event_type(key[0]).partition(key[1])
            places = {place(log.offset(index)): index for index in range(log.first, log.end)}
            # Of a gap within a batch nobody can tell where it is.
            near = range(record["first"], min(record["end"] + self.plan.batch_events, max(places) + 1))
            there = [places[at] for at in range(record["first"], record["end"]) if at in places]
            self.judge.on_told_dropped(key, there if all(at in places for at in near) else [])

    async def close(self) -> None:
        """End what the world itself does."""
        await self.nakadi.close()
        self.broker.stop()
        self.network.calm()

    def _on_subscribed(self, found: Subscription) -> None:
        found.on_commit = self.judge.on_committed
        found.on_open = self._on_open
        found.on_move = self.judge.on_moved

    def _on_open(self, found: Subscription, stream: Stream) -> None:
        for name in found.event_types:
            self.judge.interruptions[name] += 1
            self.judge.note(f"a stream of {name} opens: {stream.id}")


class Replica:
    """Starts when it is made."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self.is_stopping = False
        self.app: App | None = None
        self._world = world
        context = copy_context()
        context.run(PROCESS.set, name)
        self.task = world.loop.create_task(self._live(), name=name, context=context)

    async def stop(self) -> None:
        """End it as SIGTERM does."""
        self.is_stopping = True
        world = self._world
        world.judge.note(f"{self.name} is asked to stop")
        await asyncio.sleep(0)
        if self.app is not None:
            self.app.stop()
        _, late = await asyncio.wait([self.task], timeout=STOP_DEADLINE)
        if late:
            world.judge.accuse(f"{self.name} does not stop within {STOP_DEADLINE:g} s")
            await self.crash()
        if self in world.replicas:
            world.replicas.remove(self)
        world.judge.note(f"{self.name} has stopped")

    async def crash(self) -> None:
        """End it as SIGKILL does."""
        self.is_stopping = True
        world = self._world
        world.judge.note(f"{self.name} crashes")
        world.network.die(self.name)
        self.task.cancel()
        world.loop.resume_process(self.name)
        await asyncio.wait([self.task])
        if self in world.replicas:
            world.replicas.remove(self)

    async def _live(self) -> None:
        world = self._world
        settings, chance = world.plan.settings, Random(f"{world.plan.seed} {self.name} hosts")
        broker = RabbitBroker(settings.broker, settings.routes, settings.limits, chance=chance)
        self.app = App(
            settings,
            NakadiLog(settings.log, settings.limits),
            {name: broker.lane(name) for name in settings.routes},
            broker.dead_letter_lane(),
            broker.monitor(),
            write=world.on_record,
            wall=world.nakadi.wall,
            instance=self.name,
        )
        if self.is_stopping:
            return
        try:
            await self.app.run()
        except Exception as error:  # noqa: BLE001 -- whatever it is, it ends the history as a violation
            if not self.is_stopping:
                world.judge.accuse(f"{self.name} ends with {_causes(error)}")


def _causes(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_causes(one) for one in error.exceptions)
    return f"{type(error).__name__}: {error}"
