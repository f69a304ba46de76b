"""When a cluster serves again: plain clients of both brokers, each made for one attempt, none of the bridge's code.

Every half second a fresh client tries, whatever has become of the one before: a client that happens to ask a silent
node first waits for it, and would measure its own patience. Counted is the first success for each node's share.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import aio_pika
from aio_pika.exceptions import AMQPError
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from load.kafka import KafkaView
from load.stack import Stack
from load.stack.reach import amqp_url
from load.wire import Wire

TOPIC = "raw"
EVERY_SECONDS = 0.5
ATTEMPT_SECONDS = 3.0
REQUEST_MS = 1500
"""What a plain client waits for one answer: longer is what others set, and would only blur the instant."""
OFFSETS_PARTITIONS = 4
"""Of the topic in which coordinators keep offsets, as the local stack sets it."""


class RawClient:
    """Measures, in seconds from a given instant, when everything passes for a plain client."""

    def __init__(self, stack: Stack, group: str) -> None:
        self._stack = stack
        self._group = _same_coordinator(group)
        self._chance = random.Random(group)
        # What is cut short leaves aiokafka's own tasks with errors that nobody asks for.
        for client in ("aiokafka", "aiormq", "asyncio"):
            logging.getLogger(client).setLevel(logging.CRITICAL)

    async def prepare(self, kafka: KafkaView) -> None:
        """Make a topic of which each node leads a partition."""
        await kafka.create(TOPIC, len(self._stack.kafka_ports))

    def place_queues(self) -> None:
        """Make a queue on each node anew, which leads it then. Raises WireError."""
        for port, queue in zip(self._stack.amqp_ports, self._queues, strict=True):
            with Wire(port) as wire:
                wire.declare(queue, {"x-queue-type": "quorum", "x-max-length": 1000})

    async def through(self, since: float, seconds: float) -> float | None:
        """Return after how many seconds the last share passed; None if it did not within `seconds`."""
        attempts: list[Callable[[], Awaitable[None]]] = [self._commit]
        attempts += [partial(self._pass_kafka, at) for at in range(len(self._stack.kafka_ports))]
        attempts += [partial(self._pass_rabbitmq, queue) for queue in self._queues]
        try:
            async with asyncio.timeout(seconds):
                return max(await asyncio.gather(*map(_first_success, attempts))) - since
        except TimeoutError:
            return None

    @property
    def _queues(self) -> Sequence[str]:
        return [f"raw.{role}" for role in self._stack.rabbitmq_roles]

    async def _pass_kafka(self, partition: int) -> None:
        """Produce an event and read it."""
        async with AIOKafkaProducer(
            bootstrap_servers=self._stack.kafka, acks="all", request_timeout_ms=REQUEST_MS
        ) as producer:
            kept = await producer.send_and_wait(TOPIC, b"raw", partition=partition)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._stack.kafka, request_timeout_ms=REQUEST_MS, enable_auto_commit=False
        )
        async with consumer:
            consumer.assign([TopicPartition(TOPIC, partition)])
            consumer.seek(TopicPartition(TOPIC, partition), kept.offset)
            await consumer.getone()

    async def _commit(self) -> None:
        """Commit for a group of the same coordinator."""
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._stack.kafka, group_id=self._group, request_timeout_ms=REQUEST_MS,
            enable_auto_commit=False,
        )  # fmt: skip
        async with consumer:
            at = TopicPartition(TOPIC, 0)
            consumer.assign([at])
            await consumer.commit({at: 0})

    async def _pass_rabbitmq(self, queue: str) -> None:
        """Publish a message by any node and have it confirmed."""
        port = self._chance.choice(self._stack.amqp_ports)
        async with await aio_pika.connect(amqp_url(port), timeout=REQUEST_MS / 1000) as connection:
            channel = await connection.channel()
            await channel.default_exchange.publish(aio_pika.Message(b"raw"), routing_key=queue, timeout=ATTEMPT_SECONDS)


async def _first_success(attempt: Callable[[], Awaitable[None]]) -> float:
    """Try every half second, without waiting for what was tried before; return when one first came through."""
    succeeded: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def once() -> None:
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                await attempt()
        except (KafkaError, AMQPError, OSError, TimeoutError, RuntimeError):
            return  # RuntimeError: aiormq's for a channel that closed meanwhile
        if not succeeded.done():
            succeeded.set_result(time.monotonic())

    tried: set[asyncio.Task[None]] = set()
    try:
        while not succeeded.done():
            task = asyncio.create_task(once())
            tried.add(task)
            task.add_done_callback(tried.discard)
            await asyncio.wait([succeeded], timeout=EVERY_SECONDS)
        return succeeded.result()
    finally:
        for task in tried:
            task.cancel()


def _same_coordinator(group: str) -> str:
    """Return another group's name that the same node coordinates."""
    return next(
        name
        for name in (f"raw-{number}" for number in range(1000))
        if java_hash(name) % OFFSETS_PARTITIONS == java_hash(group) % OFFSETS_PARTITIONS
    )


def java_hash(text: str) -> int:
    """Return what Java's `hashCode` makes of a text, without its sign, as Kafka chooses the partition by it."""
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF
