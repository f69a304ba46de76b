"""Sends numbered events into every partition all the time, whatever happens to Kafka, and writes down what it has."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from aiokafka.errors import KafkaError

from load.faults.ledger import Ledger
from load.faults.streams import PARTITIONS, PAYLOAD, STREAMS, place
from load.sender import Record, Sender

TICK = 0.02
MOST_AT_ONCE = 100
"""Events of a partition at one tick: what was due while Kafka was away is not made up for."""
FILLED_AT_ONCE = 1_000
METADATA_SECONDS = 0.5
RETRY_SECONDS = 0.2
KEPT_AGO = 60.0
"""Seconds for which the instants of Kafka's answers are remembered."""
QUIET_SECONDS = 20.0
STUCK_SECONDS = 10.0
"""A producer that Kafka has taken nothing from for so long is replaced; at once where one of its partitions is stuck,
which the others hide.
"""
REQUEST_SECONDS = 40.0
"""After which a producer asks another node; aiokafka's default."""


class Source:
    """One producer a stream, one task a partition. Instants are seconds of the monotonic clock."""

    def __init__(self, kafka: str, request_seconds: float = REQUEST_SECONDS) -> None:
        self._kafka = kafka
        self._request_ms = round(request_seconds * 1000)
        self.skew_ms: Counter[int] = Counter()
        """By how much a stream's producer's clock is ahead, by its place."""
        self.ledgers: dict[tuple[int, int], Ledger] = {}
        """By stream's place and partition."""
        self.kept_at: dict[tuple[int, int], dict[int, float]] = {}
        """When Kafka said that it has the first event of a batch, by its number; the last batches."""
        self._tasks: dict[tuple[int, int], asyncio.Task[None]] = {}
        self._held: set[int] = set()
        self._senders: dict[int, Sender] = {}
        self._renewal = asyncio.Lock()
        self._taken_at: dict[int, float] = {}
        """When Kafka took something from a stream's producer last, or that was new."""

    async def start(self) -> None:
        """Connect and begin to send."""
        for stream in range(len(STREAMS)):
            self._senders[stream] = await self._connect()
            self._taken_at[stream] = time.monotonic()
            for partition in range(PARTITIONS):
                self.add(stream, partition)

    def add(self, stream: int, partition: int) -> None:
        """Begin to send into one more partition."""
        key = stream, partition
        self.ledgers[key] = Ledger()
        self.kept_at[key] = {}
        self._tasks[key] = asyncio.create_task(self._feed(stream, partition), name=f"source-{stream}-{partition}")

    def check(self) -> None:
        """Raise what ended a task, if something did."""
        for task in self._tasks.values():
            if task.done():
                task.result()

    @asynccontextmanager
    async def held(self, stream: int) -> AsyncIterator[None]:
        """Send nothing to a stream meanwhile, and have an answer for everything sent."""
        self._held.add(stream)
        try:
            await self._senders[stream].answered(QUIET_SECONDS)
            yield
        finally:
            self._held.discard(stream)
            self._taken_at[stream] = time.monotonic()

    async def begin_anew(self, stream: int) -> None:
        """Take another producer for a stream that is held: one that knows nothing of a topic that is gone."""
        old, self._senders[stream] = self._senders[stream], await self._connect()
        await old.stop()

    async def stop(self) -> None:
        """Send no more; return when Kafka has answered for everything, or given up."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for sender in self._senders.values():
            await sender.stop()

    def of(self, stream: int) -> dict[int, Ledger]:
        """Return the ledgers of a stream by partition."""
        return {partition: ledger for (of, partition), ledger in self.ledgers.items() if of == stream}

    async def fill(self, stream: int, partition: int, count: int) -> None:
        """Send so many events into a partition at once."""
        while count:
            count -= await self._send(stream, partition, count)

    def _is_stuck(self, stream: int) -> bool:
        return self._senders[stream].is_stuck or time.monotonic() - self._taken_at[stream] > STUCK_SECONDS

    async def _renew(self, stream: int) -> None:
        """Take another producer for a stream whose own is stuck, once that has ended; if Kafka lets one in."""
        async with self._renewal:
            if not self._is_stuck(stream):
                return
            self._taken_at[stream] = time.monotonic()  # not again at once
            with suppress(KafkaError):
                sender = await self._connect()
                with suppress(TimeoutError):
                    async with asyncio.timeout(QUIET_SECONDS):
                        await self._senders[stream].stop()
                self._senders[stream] = sender
                self._taken_at[stream] = time.monotonic()

    async def _connect(self) -> Sender:
        sender = Sender(
            self._kafka, metadata_max_age_ms=round(METADATA_SECONDS * 1000), request_timeout_ms=self._request_ms
        )
        await sender.start()
        return sender

    async def _feed(self, stream: int, partition: int) -> None:
        owed, then = 0.0, time.monotonic()
        while True:
            await asyncio.sleep(TICK)
            now = time.monotonic()
            owed = min(owed + STREAMS[stream].rate / len(self.of(stream)) * (now - then), MOST_AT_ONCE)
            then = now
            if stream in self._held:
                continue
            if self._is_stuck(stream):
                await self._renew(stream)
            if owed >= 1:
                owed -= await self._send(stream, partition, int(owed))

    async def _send(self, stream: int, partition: int, most: int) -> int:
        """Send some events; return how many, 0 where the partition is not there yet."""
        topic, ledger = STREAMS[stream].name, self.ledgers[stream, partition]
        sender = self._senders[stream]
        if not sender.knows(topic, partition):
            await asyncio.sleep(RETRY_SECONDS)
            return 0
        count, now_ms = min(most, FILLED_AT_ONCE), round(time.time() * 1000) + self.skew_ms[stream]
        numbers = range(ledger.sent, ledger.sent + count)
        values = (PAYLOAD.value(place(stream, partition), number) for number in numbers)
        records = [Record(now_ms, b"%d" % partition, value) for value in values]
        first = ledger.send(count)
        with suppress(KafkaError):  # then they stay unacknowledged
            await sender.send(topic, partition, records, partial(self._on_answer, (stream, partition), first))
        return count

    def _on_answer(self, at: tuple[int, int], sent: int, first: int, count: int, offset: int | None) -> None:
        if offset is None:
            return  # nobody knows whether Kafka has them; they may arrive, and need not
        self._taken_at[at[0]] = time.monotonic()
        self.ledgers[at].keep(sent + first, count, offset)
        now, kept = time.monotonic(), self.kept_at[at]
        kept[sent + first] = now
        while kept and next(iter(kept.values())) < now - KEPT_AGO:
            del kept[next(iter(kept))]
