"""Writes what a scenario offers into Kafka: what is endless beforehand, what is old at once, the rest when due."""

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from load.control.offer import Due, Old, Place, Topic
from load.control.payload import FIRST, encode, filler
from load.kafka import KafkaView
from load.producer import TICK
from load.sender import Record, Sender

NEVER = math.nan
"""Due instant of what is endless."""
PARTITIONS_AT_ONCE = 50
OPENING_BYTES = 4 * 1024
"""Kafka's `index.interval.bytes`: behind so many the next batch is entered into the indexes."""
OLD_AT_ONCE = 1_000
"""Old events of a partition between which others have their turn."""


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
    _sender: Sender = field(init=False)

    def __post_init__(self) -> None:
        """Make the producer."""
        self._sender = Sender(self.kafka)

    async def start(self) -> None:
        """Connect."""
        await self._sender.start(*(topic.name for topic in self.topics))

    async def open(self, kafka: KafkaView) -> None:
        """Let Kafka write what it writes once to a young partition, before the run and not in its midst.

        With the first event it syncs the leader's epoch, behind the first 4 KiB it writes to its indexes, which are
        mapped: each may take the disk's time, and a hundred partitions at once kept it from answering for three
        seconds. The events that bring it about are forgotten at once. Raises `KafkaError`.
        """
        every = [(topic.name, number) for topic in self.topics for number in range(topic.partitions)]
        event = Record(round(time.time() * 1000), None, bytes(OPENING_BYTES))
        for _ in range(FIRST):
            for first in range(0, len(every), PARTITIONS_AT_ONCE):
                several = every[first : first + PARTITIONS_AT_ONCE]
                await asyncio.gather(*(self._sender.send(*place, [event], self._on_answer) for place in several))
            await self._sender.answered()
        for topic in self.topics:
            await kafka.truncate(topic.name, dict.fromkeys(range(topic.partitions), FIRST))

    async def preload(self, counts: Mapping[Place, int]) -> None:
        """Write so many events into each partition."""
        places = list(counts.items())
        for first in range(0, len(places), PARTITIONS_AT_ONCE):
            several = places[first : first + PARTITIONS_AT_ONCE]
            await asyncio.gather(*(self._send(*place, [NEVER] * count, 0.0) for place, count in several))

    async def lay(self, backlogs: Mapping[Place, Old], start: float, on_laid: Callable[[Place, Old], None]) -> None:
        """Write what is old by `start`, of the monotonic clock, at that instant: before it nothing of it is sent."""
        wall_ahead = time.time() - time.monotonic()
        await asyncio.sleep(start - time.monotonic())
        for place, old in backlogs.items():
            on_laid(place, old)
            for first in range(0, old.events, OLD_AT_ONCE):
                instants = [start + second for second in old.instants(first, first + OLD_AT_ONCE)]
                await self._send(*place, instants, wall_ahead)
                await asyncio.sleep(0)

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
        await self._sender.stop()

    async def _send(self, topic: int, partition: int, instants: list[float], wall_ahead: float) -> None:
        known = self.topics[topic]
        rest = filler(known.size)
        number = self._numbers.get((topic, partition), FIRST)
        self._numbers[topic, partition] = number + len(instants)
        now = time.time()
        records = [
            Record(
                round((now if math.isnan(due) else due + wall_ahead) * 1000),
                None,
                encode(topic, partition, at, due, rest),
            )
            for at, due in enumerate(instants, number)
        ]
        await self._sender.send(known.name, partition, records, self._on_answer)

    def _on_answer(self, _first: int, count: int, offset: int | None) -> None:
        if offset is None:
            self.failed += count
