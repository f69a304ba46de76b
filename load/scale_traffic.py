"""What flows through a Tidegate with thousands of event types: an open schedule over their partitions, and consumers.

Every event says when it was due, its partition and its number there, so that one lost, repeated or late is seen.
"""

import asyncio
import struct
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial

from pamqp import commands

from load.deliveries import Delivered, Deliveries
from load.many_types import Place
from load.sender import Record, Sender
from load.wire import Wire

SIZE = 256
"""Bytes of a value."""
GATHERED = 0.005
"""Seconds for which a producer gathers, as most do: what it sends at once was due within them."""
ACK_SECONDS = 0.02
SAVED_SECONDS = 0.1
"""So much of its pace may a consumer make up for."""
PREFETCH = 2_000
AT_ONCE = 100
"""Partitions that are opened in one step."""
HEAD = struct.Struct(">dIII")


class Feed:
    """Writes a schedule into partitions, each in its turn. Instants are seconds of the monotonic clock."""

    def __init__(self, kafka: str, rate: float) -> None:
        self.places: Sequence[Place] = ()
        """Where it writes now."""
        self.sent = 0
        self.refused = 0
        """Events that Kafka did not acknowledge."""
        self.answers: list[tuple[float, float]] = []
        """Due instant, and when Kafka had acknowledged: what no bridge can be quicker than."""
        self._numbers: Counter[Place] = Counter()
        self._ids: dict[Place, int] = {}
        self.rate = rate
        """Events a second."""
        self._is_halted = False
        self._sender = Sender(kafka)

    async def start(self, places: Sequence[Place]) -> None:
        """Connect, and learn where these are."""
        await self._sender.start(*dict.fromkeys(place.topic for place in places))

    async def learn(self, places: Sequence[Place]) -> None:
        """Learn where further ones are."""
        await self._sender.learn(*dict.fromkeys(place.topic for place in places))

    async def open(self, places: Sequence[Place]) -> dict[tuple[str, int], int]:
        """Let Kafka write what it writes once to a young partition, before the run: with the first event, its epoch.

        Return where each of them ends then. They are not truncated: Kafka would begin every one of them anew, in the
        midst of the run.
        """
        event = Record(round(time.time() * 1000), None, b"")
        for first in range(0, len(places), AT_ONCE):
            for place in places[first : first + AT_ONCE]:
                await self._sender.send(*place, [event], lambda *_: None)
            await self._sender.answered()
        return {(place.topic, place.partition): 1 for place in places}

    async def run(self, places: Sequence[Place]) -> None:
        """Write at the rate until halted; cancelled, it may have counted what it never handed over."""
        self.places, began, count = places, time.monotonic(), 0
        self._is_halted = False
        while not self._is_halted:
            await asyncio.sleep(GATHERED)
            now, wall = time.monotonic(), time.time()
            batches: dict[Place, list[Record]] = {}
            dues: dict[Place, float] = {}
            while (due := began + count / self.rate) <= now:
                place = self.places[count % len(self.places)]
                batches.setdefault(place, []).append(self._event(place, due, round(1000 * (wall - (now - due)))))
                dues.setdefault(place, due)
                count += 1
            for place, batch in batches.items():
                await self._sender.send(*place, batch, partial(self._on_answer, dues[place]))

    def halt(self) -> None:
        """Let `run` end once it has handed over what is due."""
        self._is_halted = True

    async def stop(self) -> None:
        """Wait for Kafka's answers and disconnect."""
        await self._sender.stop()

    def _event(self, place: Place, due: float, at_ms: int) -> Record:
        number, known = self._numbers[place], self._ids.setdefault(place, len(self._ids))
        self._numbers[place] += 1
        self.sent += 1
        return Record(at_ms, None, HEAD.pack(due, known, number, self.sent) + bytes(SIZE - HEAD.size))

    def _on_answer(self, due: float, _first: int, count: int, offset: int | None) -> None:
        if offset is None:
            self.refused += count
        else:
            self.answers.append((due, time.monotonic()))


class Seen:
    """What came, over all queues."""

    def __init__(self) -> None:
        self.events: set[int] = set()
        self.repeated = 0
        self.late = 0
        """Behind a later event of the same partition."""
        self._last: dict[int, int] = {}

    def take(self, place: int, number: int, event: int) -> None:
        """Take an event: its partition, its number there, and its number of all."""
        if event in self.events:
            self.repeated += 1
            return
        self.events.add(event)
        self.late += number < self._last.get(place, -1)
        self._last[place] = max(number, self._last.get(place, -1))


class Sink(Deliveries):
    """Consumes one queue, as quick as it comes or at a pace."""

    def __init__(self, queue: str, seen: Seen) -> None:
        super().__init__()
        self.arrivals: list[tuple[float, float]] = []
        """Due and come, in seconds of the monotonic clock."""
        self.pace: float | None = None
        """Events a second; None: all that come."""
        self._queue = queue
        self._seen = seen
        self._came = self._acked = 0

    async def consume(self, amqp_port: int) -> None:
        """Begin, over a connection of its own."""
        connected = Wire(amqp_port).detach()
        await asyncio.get_running_loop().create_connection(lambda: self, sock=connected)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to consume."""
        super().connection_made(transport)
        self.send(commands.Basic.Qos(prefetch_count=PREFETCH))
        self.send(commands.Basic.Consume(queue=self._queue, consumer_tag="0", nowait=True))

    def on_delivery(self, delivered: Delivered) -> None:
        """Take a message."""
        due, place, number, event = HEAD.unpack_from(delivered.body)
        self._came = delivered.tag
        self.arrivals.append((due, time.monotonic()))
        self._seen.take(place, number, event)

    async def acknowledge(self) -> None:
        """Acknowledge what came, now and then, until cancelled."""
        then, allowed = time.monotonic(), 0.0
        while True:
            await asyncio.sleep(ACK_SECONDS)
            now, waiting = time.monotonic(), self._came - self._acked
            if self.pace is None:
                count = waiting
            else:
                allowed = min(allowed + (now - then) * self.pace, self.pace * SAVED_SECONDS)
                count = min(waiting, int(allowed))
                allowed -= count
            then = now
            if count:
                self._acked += count
                self.ack(self._acked, multiple=True)
