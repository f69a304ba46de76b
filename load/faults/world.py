"""All that a cause of a fault can lay hands on."""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from load import kafka_cluster
from load.faults.link import Link
from load.faults.replicas import SESSION_SECONDS, Replica, Replicas
from load.faults.sink import Sink
from load.faults.source import Source
from load.faults.streams import EXCHANGE, FLOWING, Stream
from load.kafka import KafkaView
from load.stack import Stack, StackError
from load.wire import Wire

Span = tuple[float, float]
"""When a fault began and when it ended, on the monotonic clock."""
SHORTEST, LONGEST = 1.0, 8.0
"""Seconds that a fault lasts."""
MOST_BEYOND_SESSION = 3.0
ANSWER_SECONDS = 60.0
"""Within so long, a node that others could not reach answers again."""
LOOK_SECONDS = 0.25
SURVIVOR = 0
"""The replica that is never ended, so that one lives through everything."""


def queue_arguments(stack: Stack) -> dict[str, str]:
    """Return how queues are declared: those of a cluster on all its nodes."""
    return {"x-queue-type": "quorum"} if len(stack.amqp_ports) > 1 else {}


@dataclass
class World:
    """The stack and everything around it."""

    stack: Stack
    kafka: KafkaView
    source: Source
    sink: Sink
    replicas: Replicas
    metric_disk: Path | None
    """A small file system below the metric log of the last replica; None where none can be mounted."""
    chance: random.Random
    """Of this round alone, so that a round is the same whatever came before it."""
    seed: int
    topic_ids: dict[str, list[str]] = field(default_factory=dict)
    """Of each topic, one for each of its lives."""

    async def on_created(self, topic: str) -> None:
        """Write down the id of a topic that was just made. Raises StackError if Kafka does not tell it."""
        ids = self.topic_ids.setdefault(topic, [])
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            with suppress(StackError):  # it may not be there yet
                found = await asyncio.to_thread(kafka_cluster.topic_id, self.stack.kafka_ports[0], topic)
                if found not in ids:  # a node may still know the one that was deleted
                    ids.append(found)
                    return
            if time.monotonic() > deadline:
                raise StackError(f"Kafka does not tell the id of {topic}")
            await asyncio.sleep(LOOK_SECONDS)

    def seconds(self) -> float:
        """Draw how long a fault lasts."""
        return self.chance.uniform(SHORTEST, LONGEST)

    def beyond_session(self) -> float:
        """Draw how long a replica falls silent so that others get its partitions."""
        return SESSION_SECONDS + self.chance.uniform(1.0, MOST_BEYOND_SESSION)

    def stream(self) -> tuple[int, Stream]:
        """Draw one of the event types that flow; with its place."""
        at = self.chance.randrange(len(FLOWING))
        return at, FLOWING[at]

    def replica(self) -> Replica:
        """Draw one of the replicas."""
        return self.chance.choice(self.replicas.every)

    def mortal(self) -> Replica:
        """Draw one of the replicas that may be ended."""
        return self.chance.choice([one for one in self.replicas.every if one.number != SURVIVOR])

    def kafka_links(self) -> list[Link]:
        """Return all links to Kafka."""
        return [link for one in self.replicas.every for link in one.kafka]

    def rabbitmq_links(self) -> list[Link]:
        """Return all links to RabbitMQ."""
        return [link for one in self.replicas.every for link in one.rabbitmq]

    def link(self, replica: Replica, role: str) -> Link:
        """Return a replica's link to a node."""
        if role in self.stack.kafka_roles:
            return replica.kafka[self.stack.kafka_roles.index(role)]
        return replica.rabbitmq[self.stack.rabbitmq_roles.index(role)]

    def connected(self, role: str) -> list[Replica]:
        """Return the replicas that are connected with a node: others can't tell whether it is silent."""
        return [replica for replica in self.replicas.every if self.link(replica, role).count]

    def addresses(self, role: str) -> list[str]:
        """Return by which address each replica knows a node."""
        return [f"127.0.0.1:{self.link(replica, role).port}" for replica in self.replicas.every]

    def avoid(self, role: str) -> None:
        """Have the services behind RabbitMQ keep away from a node that is about to fall silent."""
        if role in self.stack.rabbitmq_roles:
            self.sink.avoid(self._amqp_port(role))

    def return_to(self, role: str) -> None:
        """Let them go there again."""
        if role in self.stack.rabbitmq_roles:
            self.sink.return_to(self._amqp_port(role))

    def _amqp_port(self, role: str) -> int:
        return self.stack.amqp_ports[self.stack.rabbitmq_roles.index(role)]

    async def all_answer(self) -> None:
        """Wait until every node answers. Raises StackError if one does not."""
        deadline = time.monotonic() + ANSWER_SECONDS
        while not all((await asyncio.to_thread(self.stack.answers)).values()):
            if time.monotonic() > deadline:
                raise StackError(f"a node does not answer after {ANSWER_SECONDS:.0f} s")
            await asyncio.sleep(LOOK_SECONDS)

    async def away(self, stop: Callable[[], None], start: Callable[[], None]) -> Span:
        """Stop a broker, start it again after a while."""
        began = time.monotonic()
        await asyncio.to_thread(stop)
        await asyncio.sleep(self.seconds())
        await asyncio.to_thread(start)
        return began, time.monotonic()

    async def erlang(self, code: str) -> float:
        """Run Erlang in RabbitMQ; return when it had run, in seconds of the monotonic clock: rabbitmqctl is slow."""
        text = await asyncio.to_thread(self.stack.rabbitmqctl, "eval", f"{code}, erlang:system_time(millisecond).")
        return int(text.strip()) / 1000 - time.time() + time.monotonic()

    async def declare(self, stream: Stream) -> None:
        """Declare a queue and bind it."""

        def work() -> None:
            with Wire(self.stack.amqp_port) as wire:
                wire.declare(stream.name, queue_arguments(self.stack))
                wire.bind(stream.name, EXCHANGE, stream.name)

        await asyncio.to_thread(work)
        self.sink.consume(stream.name)
