"""The services downstream: each works on one event at a time and takes the time that such work takes."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aio_pika import connect
from aio_pika.abc import AbstractIncomingMessage

from load.events import Kind
from load.proof_log import ProofLog

ORIGIN = "tidegate-topic"
"""Header of messages under `origin: full`; the message id of others has the record's instant, too."""
PREFETCHED = 0.1
"""Seconds of capacity that all services together may hold unworked: what stands there can't be overtaken any more."""


@dataclass(frozen=True)
class Capacity:
    """What the services can do together."""

    rate: float
    """Events a second."""
    services: int
    """How many work side by side."""

    @property
    def seconds(self) -> float:
        """Return how long one service works on one event on average."""
        return self.services / self.rate

    @property
    def prefetch(self) -> int:
        """Return how many events the broker may hand to one service ahead, the one it works on included."""
        return max(1, int(self.rate * PREFETCHED / self.services))


class Downstream:
    """Services on one queue: service time uniform +-50 %, acknowledged when the work is done. A context manager."""

    def __init__(
        self, amqp: str, queue: str, capacity: Capacity, kinds: Mapping[str, Kind], *, seed: int, log: ProofLog
    ) -> None:
        self._amqp = amqp
        self._queue = queue
        self._capacity = capacity
        self._kinds = kinds
        """By topic."""
        self._seed = seed
        self._log = log
        self._hands: list[asyncio.Queue[AbstractIncomingMessage]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._at_work = 0
        self.consumed: dict[tuple[str, int], list[int]] = {}
        """Offsets worked on, in that order, by topic and partition; repeated ones stand there twice."""
        self.done: Counter[str] = Counter()
        """Events worked on, by class."""

    async def __aenter__(self) -> Self:
        """Connect and begin to work."""
        self._connection = await connect(self._amqp)
        for number in range(self._capacity.services):
            channel = await self._connection.channel()
            await channel.set_qos(prefetch_count=self._capacity.prefetch)
            queue = await channel.get_queue(self._queue, ensure=False)
            hand: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue(self._capacity.prefetch)
            self._hands.append(hand)
            self._tasks.append(asyncio.create_task(self._serve(hand, random.Random(self._seed + number))))
            await queue.consume(hand.put)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop at once; what was not finished goes back to the queue."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._connection.close()

    @property
    def is_idle(self) -> bool:
        """Whether no service has an event at hand, begun or not."""
        return not self._at_work and all(hand.empty() for hand in self._hands)

    async def _serve(self, hand: asyncio.Queue[AbstractIncomingMessage], chance: random.Random) -> None:
        loop = asyncio.get_running_loop()
        free_at = 0.0
        while True:
            has_waited = hand.empty()
            message = await hand.get()
            # With work at hand it goes on from when it was free: a timer that fires late must not lower the capacity.
            begun = max(free_at, loop.time()) if has_waited else free_at
            free_at = begun + self._capacity.seconds * chance.uniform(0.5, 1.5)
            self._at_work += 1
            await asyncio.sleep(free_at - loop.time())
            self._note(message)
            await message.ack()
            self._at_work -= 1

    def _note(self, message: AbstractIncomingMessage) -> None:
        event_id = message.message_id or ""
        if ORIGIN not in message.headers:
            event_id = event_id.rpartition("-")[0]  # `origin: id`: the record's instant stands last
        topic, partition, offset = event_id.rsplit("-", 2)
        kind = self._kinds[topic]
        self.consumed.setdefault((topic, int(partition)), []).append(int(offset))
        self.done[kind.priority] += 1
        self._log.consumed(kind, event_id, int(json.loads(message.body)["event_ms"]), round(time.time() * 1000))
