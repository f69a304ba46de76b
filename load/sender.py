"""What every generator writes with: events into partitions, batch by batch, and what Kafka answers to them."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from aiokafka import AIOKafkaProducer
from aiokafka.errors import OutOfOrderSequenceNumber

if TYPE_CHECKING:
    from aiokafka.structs import RecordMetadata

BATCH_BYTES = 256 * 1024
"""One batch of one partition at most."""


class Record(NamedTuple):
    """One event to be written."""

    at_ms: int
    """Milliseconds since 1970."""
    key: bytes | None
    value: bytes


Answered = Callable[[int, int, int | None], None]
"""Told of each batch: the place of its first event among those handed over, how many, and the offset of the first.

Without an offset nobody knows whether Kafka has them.
"""


class EventSender(Protocol):
    """What a generator writes with, whatever the log."""

    async def start(self, *topics: str) -> None:
        """Connect."""

    async def stop(self) -> None:
        """Wait for all answers and disconnect."""

    async def send(self, topic: str, partition: int, records: Sequence[Record], on_answer: Answered) -> None:
        """Hand over all, in order; return before the log has answered."""


class Sender:
    """A producer that repeats nothing: what it wrote twice would pass for a duplicate of the bridge.

    `settings` are further ones of aiokafka's.
    """

    def __init__(self, kafka: str, **settings: Any) -> None:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        self._kafka = kafka
        self._settings = settings
        self._producer: AIOKafkaProducer
        self._open: set[asyncio.Future[RecordMetadata]] = set()
        self.is_stuck = False
        """Kafka will take nothing more from it: aiokafka has given up a batch and goes on with the next number."""

    async def start(self, *topics: str) -> None:
        """Connect, and learn where the topics are: else the first event of each would wait for it."""
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self._kafka, enable_idempotence=True, acks="all", linger_ms=0,
            max_batch_size=BATCH_BYTES, **self._settings,
        )  # fmt: skip
        await self._producer.start()
        await self._producer.client.set_topics(topics)  # all in one question, not each in its own
        await self.learn(*topics)

    async def learn(self, *topics: str) -> None:
        """Ask where these topics are, unless it is known. Raises `KafkaError` if one is not there for long."""
        for topic in topics:
            await self._producer.partitions_for(topic)

    def knows(self, topic: str, partition: int) -> bool:
        """Return whether the partition is there, as far as is known by now; asks for the next time."""
        known = partition in (self._producer.client.cluster.partitions_for_topic(topic) or ())
        if not known:
            self._producer.client.add_topic(topic)
        return known

    async def send(self, topic: str, partition: int, records: Sequence[Record], on_answer: Answered) -> None:
        """Hand over all, in order; return before Kafka has answered.

        Raises `KafkaError`, and ValueError if one is too large.
        """
        at = 0
        while at < len(records):
            batch, first = self._producer.create_batch(), at
            while at < len(records):
                one = records[at]
                if batch.append(timestamp=one.at_ms, key=one.key, value=one.value) is None:
                    break
                at += 1
            if at == first:
                raise ValueError(f"an event of {len(records[at].value)} B does not fit into a batch")
            future = await self._producer.send_batch(batch, topic, partition=partition)
            self._open.add(future)
            future.add_done_callback(partial(self._on_done, on_answer, first, at - first))

    async def answered(self, seconds: float | None = None) -> None:
        """Return once Kafka has answered for everything, or after so many seconds."""
        if self._open:
            await asyncio.wait(self._open, timeout=seconds)

    async def stop(self) -> None:
        """Return once Kafka has answered for everything, or the producer has given up; disconnect."""
        await self._producer.stop()
        await self.answered()

    def _on_done(self, on_answer: Answered, first: int, count: int, done: "asyncio.Future[RecordMetadata]") -> None:
        self._open.discard(done)
        if not done.cancelled() and isinstance(done.exception(), OutOfOrderSequenceNumber):
            self.is_stuck = True
        is_kept = not done.cancelled() and done.exception() is None
        on_answer(first, count, done.result().offset if is_kept else None)
