"""What one history plays in: log, broker, replicas, their judge, and what the hands do to them."""

import asyncio
from random import Random
from typing import Any

from proxy.simulation.memory_cluster import MemoryCluster
from tests.histories.memory_broker import MemoryBroker
from tests.histories.plan import (
    DEAD_QUEUE,
    EXCHANGE,
    HEADER,
    LONGEST,
    MOST_HEADERS,
    POISON,
    QUEUE,
    TOPICS,
    Plan,
)
from tests.histories.replica import Replica
from tests.histories.watched import WatchedLog
from tests.histories.watched_kafka import WatchedKafkaLog
from tests.histories.witness import Witness

EPOCH = 1_700_000_000
"""Wall time, in seconds since 1970, at which every history begins."""
_GAPS = 0.03
"""Share of events before which, and behind which, offsets are left out."""


class World:
    """Made inside the virtual loop."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.slowness = 0.0
        """Seconds that every way over a broker's connection takes longer."""
        self.idle = 0.0
        """Not 0 while nobody consumes."""
        self.is_calm = False
        """The faults are over."""
        self.replicas: list[Replica] = []
        """Those that run."""
        self.retired: list[Replica] = []
        self.chance = Random(f"{plan.seed} world")
        self._jumped = 0.0
        self._count = 0
        self.cluster = self.new_cluster()
        self.witness = Witness(plan.settings, self.cluster, self.wall)
        self.broker: Any = self._make_broker()
        self.group = self.cluster.group(plan.settings.log.group)
        self.queue = self.broker.declare_queue(QUEUE, bound=plan.queue_bound)
        self.queue.consumers = 1
        self.letters = self.broker.declare_queue(DEAD_QUEUE)
        self.broker.declare_exchange(EXCHANGE)
        self.broker.bind(EXCHANGE, QUEUE, QUEUE)
        self.cluster.on_commit = self.witness.on_commit
        for topic in TOPICS:
            self.create(topic)

    def new_cluster(self) -> MemoryCluster:
        """Return the log of this world."""
        return MemoryCluster(self.chance, fetch_events=self.plan.fetch_events)

    def new_log(self, name: str) -> WatchedLog | WatchedKafkaLog:
        """Return a replica's view of it."""
        settings = self.plan.settings
        return WatchedLog(self.cluster, settings.log, settings.limits, name=name, witness=self.witness)

    async def close(self) -> None:
        """End what the world itself does."""

    def start(self) -> None:
        """Start a replica."""
        self._count += 1
        name = f"replica-{self._count}"
        self.witness.note(f"{name} starts")
        self.replicas.append(self._make_replica(name))

    def retire(self, replica: Replica) -> None:
        """Note that a replica has ended."""
        if replica in self.replicas:
            self.replicas.remove(replica)
            self.retired.append(replica)

    def is_of_dead(self, task: asyncio.Task[Any]) -> bool:  # noqa: ARG002 -- here nothing outlives a crash
        """Tell whether a task is what is left of a process that was killed: how it is cleared away is no matter."""
        return False

    def wall(self) -> float:
        """Return the wall time."""
        return EPOCH + asyncio.get_running_loop().time() + self._jumped

    def jump(self, seconds: float) -> None:
        """Let the wall clock jump."""
        before = self.wall()
        self._jumped += seconds
        self.witness.newest_wall = max(self.witness.newest_wall, before, self.wall())

    def create(self, topic: str) -> None:
        """Make a topic."""
        self.cluster.create_topic(topic, self.plan.partitions)

    def produce(self, topic: str) -> None:
        """Append one event to each partition of a topic; sometimes offsets are used up by what is no event."""
        for partition in self.cluster.partitions({topic}):
            fits, value, headers = self._event(topic)
            if self.chance.random() < _GAPS:
                self.cluster.leave_gap(topic, partition.number, self.chance.randint(1, 3))
            key, timestamp_ms = self._key(), int(self.wall() * 1000)
            self.cluster.produce(
                topic, partition.number, value=value, key=key, headers=headers, timestamp_ms=timestamp_ms
            )
            track = self.cluster.tracks[partition]
            self.witness.facts.produce(partition, track.topic_id, track.events[-1], fits=fits)
            if self.chance.random() < _GAPS:
                self.cluster.leave_gap(topic, partition.number, 1)

    def _key(self) -> bytes | None:
        return None

    def _make_broker(self) -> Any:
        chance, most = self.chance, self.plan.latency
        broker = MemoryBroker(chance, latency=lambda: chance.uniform(most / 10, most) + self.slowness)
        broker.refuses = lambda address, event: address.exchange == EXCHANGE and (POISON, b"") in event.headers
        broker.on_write, broker.on_published = self.witness.on_write, self.witness.on_published
        return broker

    def _make_replica(self, name: str) -> Replica:
        return Replica(name, self.plan, self.new_log(name), self.broker, self.witness, self.wall)

    def _event(self, topic: str) -> tuple[bool, bytes, list[tuple[str, bytes | None]]]:
        kind = self.plan.settings.event_types[topic]
        value = b"%d." % len(self.witness.facts.all) + b"x" * self.chance.randrange(40)
        headers: list[tuple[str, bytes | None]] = [] if kind.routing_key.constant else [(HEADER, QUEUE.encode())]
        if kind.dead_letter is None or self.chance.random() >= self.plan.odd:
            return True, value, headers
        match self.chance.randrange(6):
            case 0:
                value += b"x" * LONGEST
            case 1:
                headers += [("x", b"")] * (MOST_HEADERS + 1)
            case 2 if headers:
                headers = [(HEADER, b"nowhere")]
            case 3 if headers:
                headers = []
            case 4 | 5:
                headers.append((POISON, b""))
            case _:
                return True, value, headers
        return False, value, headers
