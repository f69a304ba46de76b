"""Writes what a scenario offers into Kafka: what is endless beforehand, the rest on its open schedule."""

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaProducer

from load.control.offer import Due
from load.control.payload import encode, filler
from load.producer import TICK, producer_for

NEVER = math.nan
"""Due instant of what is endless."""
TOPICS_AT_ONCE = 50


@dataclass(frozen=True)
class Topic:
    """One topic of a run."""

    name: str
    partitions: int
    size: int
    """Bytes of each value."""


@dataclass
class Generator:
    """Writes events into topics, numbered by partition: in a topic of this run alone a number is an offset."""

    kafka: str
    topics: Sequence[Topic]
    worst_lateness: float = 0.0
    """Seconds from due instant to handing over to the client, at worst."""
    failed: int = 0
    """Events that Kafka refused or did not acknowledge."""
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    _open: set["asyncio.Future[Any]"] = field(default_factory=set)
    _producer: AIOKafkaProducer | None = None

    async def start(self) -> None:
        """Connect, and learn where every topic is: else its first event would wait for it."""
        self._producer = producer_for(self.kafka)
        await self._producer.start()
        for topic in self.topics:
            await self._producer.partitions_for(topic.name)

    async def preload(self, counts: dict[int, int]) -> None:
        """Write so many events into each partition of the topics at these places."""
        places = [(topic, part) for topic in counts for part in range(self.topics[topic].partitions)]
        for first in range(0, len(places), TOPICS_AT_ONCE):
            several = places[first : first + TOPICS_AT_ONCE]
            await asyncio.gather(*(self._fill(topic, part, counts[topic]) for topic, part in several))

    async def run(self, due: Iterator[Due], start: float, on_due: Callable[[Due], None]) -> None:
        """Send every event at its due instant, or as soon after as can be; `start` is of the monotonic clock."""
        wall_ahead = time.time() - time.monotonic()
        upcoming = next(due, None)
        while upcoming is not None:
            await asyncio.sleep(max(start + upcoming.at - time.monotonic(), TICK))
            now = time.monotonic() - start
            self.worst_lateness = max(self.worst_lateness, now - upcoming.at)
            batches: dict[tuple[int, int], list[float]] = {}
            while upcoming is not None and upcoming.at <= now:
                batches.setdefault((upcoming.topic, upcoming.partition), []).append(start + upcoming.at)
                on_due(upcoming)
                upcoming = next(due, None)
            for place, instants in batches.items():
                await self._send(*place, instants, wall_ahead)

    async def close(self) -> None:
        """Wait for Kafka's answers and disconnect."""
        if self._producer is not None:
            await self._producer.stop()
            if self._open:
                await asyncio.wait(self._open)

    async def _fill(self, topic: int, partition: int, count: int) -> None:
        await self._send(topic, partition, [NEVER] * count, 0.0)

    async def _send(self, topic: int, partition: int, instants: list[float], wall_ahead: float) -> None:
        assert self._producer is not None
        known = self.topics[topic]
        rest = filler(known.size)
        number = self._numbers.get((topic, partition), 0)
        at = 0
        while at < len(instants):
            batch = self._producer.create_batch()
            taken = 0
            while at < len(instants):
                due = instants[at]
                when = round((time.time() if math.isnan(due) else due + wall_ahead) * 1000)
                value = encode(topic, partition, number, due, rest)
                if batch.append(timestamp=when, key=None, value=value) is None:
                    break
                at, number, taken = at + 1, number + 1, taken + 1
            if not taken:
                raise ValueError(f"an event of {known.size} B does not fit into a batch")
            self._numbers[topic, partition] = number
            future = await self._producer.send_batch(batch, known.name, partition=partition)
            self._open.add(future)
            future.add_done_callback(lambda done, sent=taken: self._on_answer(done, sent))

    def _on_answer(self, done: "asyncio.Future[Any]", sent: int) -> None:
        self._open.discard(done)
        if done.cancelled() or done.exception() is not None:
            self.failed += sent
