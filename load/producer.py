"""Producers: an open-loop generator of realistic events, and a filler that writes bulk events as fast as it can."""

import asyncio
import random
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge

from load.events import Bulk, Kind
from load.proof_log import ProofLog
from load.schedule import Schedule
from load.sender import EventSender, Record, Sender

FILLED_AT_ONCE = 1_000
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
    """Sends every event of its streams at its due instant, or as soon after as it can, and never leaves one out.

    `kafka` is an address, or what sends to another log.
    """

    def __init__(
        self, kafka: str | EventSender, streams: Sequence[Stream], *, seed: int, log: ProofLog | None = None
    ) -> None:
        self._streams = streams
        self._log = log
        self._seed = seed
        self._sender = Sender(kafka) if isinstance(kafka, str) else kafka
        self.produced = Produced({stream.kind.name: 0 for stream in streams}, {})

    async def run(self) -> Produced:
        """Send everything and return once Kafka has answered for all of it."""
        await self._sender.start(*{stream.kind.topic for stream in self._streams})
        try:
            await self._follow()
        finally:
            await self._sender.stop()
        return self.produced

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        start, start_ms = loop.time() + HEAD_START, time.time() * 1000 + HEAD_START * 1000
        chance = random.Random(self._seed)
        numbers = [0] * len(self._streams)
        due = merge(*(self._instants(at) for at in range(len(self._streams))))
        upcoming = next(due, None)
        while upcoming is not None:
            await asyncio.sleep(max(0.0, start + upcoming[0] - loop.time(), TICK))
            batches: dict[tuple[int, int], list[Record]] = {}
            now = loop.time() - start
            self.produced.worst_lateness = max(self.produced.worst_lateness, now - upcoming[0])
            while upcoming is not None and upcoming[0] <= now:
                second, at = upcoming
                kind = self._streams[at].kind
                due_ms = round(start_ms + second * 1000)
                payload = kind.make(numbers[at], due_ms, chance)
                numbers[at] += 1
                place = (at, zlib.crc32(payload.key) % kind.partitions)
                batches.setdefault(place, []).append(Record(due_ms, payload.key, payload.value))
                upcoming = next(due, None)
            for (at, partition), events in batches.items():
                await self._send(self._streams[at].kind, partition, events)

    def _instants(self, at: int) -> Iterator[tuple[float, int]]:
        chance = random.Random(f"{self._seed}:{at}")
        return ((second, at) for second in self._streams[at].schedule.due(chance))

    async def _send(self, kind: Kind, partition: int, records: list[Record]) -> None:
        def on_answer(first: int, count: int, offset: int | None) -> None:
            if offset is None:
                self.produced.failed += count
                return
            self.produced.events[kind.name] += count
            self.produced.ends[kind.topic, partition] = offset + count
            if self._log is not None:
                for at, record in enumerate(records[first : first + count], offset):
                    self._log.produced(kind, f"{kind.topic}-{partition}-{at}", record.at_ms)

        await self._sender.send(kind.topic, partition, records, on_answer)


async def fill(kafka: str, topic: str, counts: Sequence[int], bulk: Bulk) -> None:
    """Write `counts[p]` bulk events into each partition p, numbered from 0, as fast as Kafka takes them.

    Raises `RuntimeError` if Kafka does not take all of them.
    """
    sender = Sender(kafka)
    await sender.start(topic)
    try:
        await asyncio.gather(*(_fill_partition(sender, topic, at, count, bulk) for at, count in enumerate(counts)))
    finally:
        await sender.stop()


async def _fill_partition(sender: Sender, topic: str, partition: int, count: int, bulk: Bulk) -> None:
    kept = 0

    def on_answer(_first: int, taken: int, offset: int | None) -> None:
        nonlocal kept
        kept += 0 if offset is None else taken

    for first in range(0, count, FILLED_AT_ONCE):
        now_ms, last = round(time.time() * 1000), min(count, first + FILLED_AT_ONCE)
        values = (bulk.value(partition, number) for number in range(first, last))
        await sender.send(topic, partition, [Record(now_ms, b"%d" % partition, value) for value in values], on_answer)
        await sender.answered()
    if kept < count:
        raise RuntimeError(f"Kafka took {kept:,} of {count:,} events of {topic}-{partition}")
