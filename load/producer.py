"""Producers: an open-loop generator of realistic events, and a filler that writes bulk events as fast as it can."""

import asyncio
import logging
import random
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import TYPE_CHECKING

from aiokafka import AIOKafkaProducer

from load.events import Bulk, Kind
from load.proof_log import ProofLog
from load.schedule import Schedule

if TYPE_CHECKING:
    from aiokafka.structs import RecordMetadata

BATCH_BYTES = 256 * 1024
"""One batch of one partition at most."""
TICK = 0.005
"""Events due within so many seconds leave together; what they are measured from is their own due instant."""
HEAD_START = 0.25
"""Seconds between fixing the schedule and its first event."""


@dataclass(frozen=True)
class Stream:
    """One kind of event on one schedule."""

    kind: Kind
    schedule: Schedule


@dataclass
class Produced:
    """What a generator has done so far."""

    events: dict[str, int]
    """Kept by Kafka, by event type."""
    ends: dict[tuple[str, int], int]
    """Offset after the last event kept, by topic and partition."""
    worst_lateness: float = 0.0
    """Seconds from due instant to handing over to the client, at worst: large means that the generator fell behind."""
    failed: int = 0
    """Events that Kafka refused or did not acknowledge."""


class OpenLoop:
    """Sends every event of its streams at its due instant, or as soon after as it can, and never leaves one out."""

    def __init__(self, kafka: str, streams: Sequence[Stream], *, seed: int, log: ProofLog | None = None) -> None:
        self._streams = streams
        self._log = log
        self._seed = seed
        self._kafka = kafka
        self._open: set[asyncio.Future[RecordMetadata]] = set()
        self.produced = Produced({stream.kind.name: 0 for stream in streams}, {})

    async def run(self) -> Produced:
        """Send everything and return once Kafka has answered for all of it."""
        producer = producer_for(self._kafka)
        await producer.start()
        try:
            for topic in {stream.kind.topic for stream in self._streams}:
                await producer.partitions_for(topic)  # else the first event waits for it
            await self._follow(producer)
        finally:
            await producer.stop()
        if self._open:
            await asyncio.wait(self._open)
        return self.produced

    async def _follow(self, producer: AIOKafkaProducer) -> None:
        loop = asyncio.get_running_loop()
        start, start_ms = loop.time() + HEAD_START, time.time() * 1000 + HEAD_START * 1000
        chance = random.Random(self._seed)
        numbers = [0] * len(self._streams)
        due = merge(*(self._instants(at) for at in range(len(self._streams))))
        upcoming = next(due, None)
        while upcoming is not None:
            await asyncio.sleep(max(0.0, start + upcoming[0] - loop.time(), TICK))
            batches: dict[tuple[int, int], list[tuple[int, bytes, bytes]]] = {}
            now = loop.time() - start
            self.produced.worst_lateness = max(self.produced.worst_lateness, now - upcoming[0])
            while upcoming is not None and upcoming[0] <= now:
                second, at = upcoming
                kind = self._streams[at].kind
                due_ms = round(start_ms + second * 1000)
                payload = kind.make(numbers[at], due_ms, chance)
                numbers[at] += 1
                place = (at, zlib.crc32(payload.key) % kind.partitions)
                batches.setdefault(place, []).append((due_ms, payload.key, payload.value))
                upcoming = next(due, None)
            for (at, partition), events in batches.items():
                await self._send(producer, self._streams[at].kind, partition, events)

    def _instants(self, at: int) -> Iterator[tuple[float, int]]:
        chance = random.Random(f"{self._seed}:{at}")
        return ((second, at) for second in self._streams[at].schedule.due(chance))

    async def _send(
        self, producer: AIOKafkaProducer, kind: Kind, partition: int, events: list[tuple[int, bytes, bytes]]
    ) -> None:
        while events:
            batch = producer.create_batch()
            taken = 0
            for due_ms, key, value in events:
                if batch.append(timestamp=due_ms, key=key, value=value) is None:
                    break
                taken += 1
            sent, events = events[:taken], events[taken:]
            future = await producer.send_batch(batch, kind.topic, partition=partition)
            self._open.add(future)
            future.add_done_callback(lambda done, sent=sent: self._on_kept(done, kind, sent))

    def _on_kept(
        self, done: "asyncio.Future[RecordMetadata]", kind: Kind, sent: list[tuple[int, bytes, bytes]]
    ) -> None:
        self._open.discard(done)
        if done.cancelled() or done.exception() is not None:
            self.produced.failed += len(sent)
            return
        place = done.result()
        self.produced.events[kind.name] += len(sent)
        self.produced.ends[place.topic, place.partition] = place.offset + len(sent)
        if self._log is not None:
            for offset, (due_ms, _, _) in enumerate(sent, place.offset):
                self._log.produced(kind, f"{place.topic}-{place.partition}-{offset}", due_ms)


async def fill(kafka: str, topic: str, counts: Sequence[int], bulk: Bulk) -> None:
    """Write `counts[p]` bulk events into each partition p, numbered from 0, as fast as Kafka takes them."""
    producer = producer_for(kafka)
    await producer.start()
    try:
        await asyncio.gather(*(_fill_partition(producer, topic, at, count, bulk) for at, count in enumerate(counts)))
    finally:
        await producer.stop()


async def _fill_partition(producer: AIOKafkaProducer, topic: str, partition: int, count: int, bulk: Bulk) -> None:
    number = 0
    while number < count:
        batch = producer.create_batch()
        now_ms = round(time.time() * 1000)
        while number < count:
            if batch.append(timestamp=now_ms, key=b"%d" % partition, value=bulk.value(partition, number)) is None:
                break
            number += 1
        await (await producer.send_batch(batch, topic, partition=partition))


def producer_for(kafka: str) -> AIOKafkaProducer:
    """Return a producer that repeats nothing: what it wrote twice would pass for a duplicate of the bridge."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    return AIOKafkaProducer(
        bootstrap_servers=kafka, enable_idempotence=True, acks="all", linger_ms=0, max_batch_size=BATCH_BYTES
    )
