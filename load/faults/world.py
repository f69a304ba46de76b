"""All that a cause of a fault can lay hands on."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from load.faults.link import Link
from load.faults.replicas import SESSION_SECONDS, Replica, Replicas
from load.faults.sink import Sink
from load.faults.source import Source
from load.faults.streams import EXCHANGE, STREAMS, Stream
from load.kafka import KafkaView
from load.stack import Stack
from load.wire import Wire

Span = tuple[float, float]
"""When a fault began and when it ended, on the monotonic clock."""
SHORTEST, LONGEST = 1.0, 8.0
"""Seconds that a fault lasts."""
MOST_BEYOND_SESSION = 3.0
SURVIVOR = 0
"""The replica that is never ended, so that one lives through everything."""


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

    def seconds(self) -> float:
        """Draw how long a fault lasts."""
        return self.chance.uniform(SHORTEST, LONGEST)

    def beyond_session(self) -> float:
        """Draw how long a replica falls silent so that others get its partitions."""
        return SESSION_SECONDS + self.chance.uniform(1.0, MOST_BEYOND_SESSION)

    def stream(self) -> tuple[int, Stream]:
        """Draw one of the event types; with its place."""
        at = self.chance.randrange(len(STREAMS))
        return at, STREAMS[at]

    def replica(self) -> Replica:
        """Draw one of the replicas."""
        return self.chance.choice(self.replicas.every)

    def mortal(self) -> Replica:
        """Draw one of the replicas that may be ended."""
        return self.chance.choice([one for one in self.replicas.every if one.number != SURVIVOR])

    def kafka_links(self) -> list[Link]:
        """Return all links to Kafka."""
        return [one.kafka for one in self.replicas.every]

    def rabbitmq_links(self) -> list[Link]:
        """Return all links to RabbitMQ."""
        return [one.rabbitmq for one in self.replicas.every]

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
                wire.declare(stream.name)
                wire.bind(stream.name, EXCHANGE, stream.name)

        await asyncio.to_thread(work)
        self.sink.consume(stream.name)
