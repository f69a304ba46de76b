"""The consumers of one queue on a real broker, cheap enough that thousands of events a second leave them idle.

They share one connection, each with a prefetch of its own; frames are taken apart by hand.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pamqp import commands

from load.control.hands import Hand
from load.control.payload import Mark, decode
from load.deliveries import Delivered, Deliveries
from load.wire import Wire, WireError
from proxy.simulation.scenario import Queue

_DECLARED = b"\x00\x32\x00\x0b"


class Work(NamedTuple):
    """One delivery."""

    tag: int
    mark: Mark | None
    """None: published by others."""


class Services(Deliveries):
    """The consumers of one queue. Instants are seconds of the monotonic clock."""

    def __init__(
        self,
        port: int,
        name: str,
        queue: Queue,
        *,
        seed: int,
        on_stored: Callable[[Mark | None], None],
        on_begun: Callable[[float, Mark | None], None],
        cost_of: Callable[[Mark | None], int] = lambda _: 1,
    ) -> None:
        super().__init__()
        self._port = port
        self._name = name
        self._queue = queue
        self._seed = seed
        self._on_stored = on_stored
        self._on_begun = on_begun
        self._cost_of = cost_of
        self._hands: dict[int, Hand[Work]] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._next = 0
        self._pace = queue.capacity / queue.consumers
        self._wanted = queue.consumers
        self._gone_drawn = self._gone_expected = 0.0
        self._asked: deque[asyncio.Future[int]] = deque()
        self._came_back: set[Mark] = set()
        self.delivered = 0
        """Messages of Tidegate's or of others' that came for the first time."""

    async def connect(self) -> None:
        """Connect and begin to consume. Raises WireError."""
        wire = await asyncio.to_thread(Wire, self._port)
        await asyncio.get_running_loop().create_connection(lambda: self, sock=wire.detach())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to consume."""
        super().connection_made(transport)
        self.send(commands.Basic.Qos(prefetch_count=self._queue.prefetch_each))
        wanted, self._wanted = self._wanted, 0
        self.set_consumers(wanted)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self.transport is not None

    @property
    def capacity(self) -> float:
        """Events of cost 1 a second that all consumers do together on average."""
        return self._pace * min(self._wanted, self._queue.knee or self._wanted)

    @property
    def consumers(self) -> int:
        """How many there are."""
        return self._wanted

    @property
    def held(self) -> int:
        """Messages that consumers hold, begun or not."""
        return sum(len(hand.held) + (hand.at_work is not None) for hand in self._hands.values())

    @property
    def drawn(self) -> float:
        """Seconds that all work begun so far takes, as chance had it."""
        return self._gone_drawn + sum(hand.drawn for hand in self._hands.values())

    @property
    def luck(self) -> float:
        """How much quicker chance let the consumers be than they are on average."""
        drawn, hands = self.drawn, self._hands.values()
        return (self._gone_expected + sum(hand.expected for hand in hands)) / drawn if drawn else 1.0

    def set_capacity(self, capacity: float) -> None:
        """Let the consumers there are do so many events of cost 1 a second together; 0: they stall."""
        self._pace = capacity / max(1, self._wanted)
        now = time.monotonic()
        for number, hand in self._hands.items():
            hand.change(1 / self._pace if self._pace else None, now)
            self._move(number, now)

    def set_consumers(self, count: int) -> None:
        """Let consumers come or go; what those that go hold goes back into the queue."""
        while len(self._hands) < count:
            number, self._next = self._next, self._next + 1
            chance = random.Random(f"{self._seed}:{self._name}:{number}")
            hand = Hand[Work](1 / self._pace if self._pace else 1.0, self._queue.service, chance)
            hand.is_stalled = not self._pace
            self._hands[number] = hand
            self.send(commands.Basic.Consume(queue=self._name, consumer_tag=str(number), nowait=True))
        while len(self._hands) > count:
            number = max(self._hands)
            self.send(commands.Basic.Cancel(consumer_tag=str(number), nowait=True))
            self._let_go(number, give_back=True)
        self._wanted = count
        if self._queue.knee is not None:
            self._slow_down()

    def _slow_down(self) -> None:
        """Let each take its share of what stands behind them, once that is full."""
        pace, now = self.capacity / max(1, self._wanted), time.monotonic()
        for number, hand in self._hands.items():
            hand.change(1 / pace if pace else None, now)
            self._move(number, now)

    @property
    def given_back(self) -> AbstractSet[Mark]:
        """Return what consumers held when they lost their connection or left, and has not come again yet."""
        return self._came_back

    async def ready(self) -> int:
        """Return the messages ready in the queue. Raises WireError where there is no connection."""
        if self.transport is None:
            raise WireError("no connection")
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self.send(commands.Queue.Declare(queue=self._name, passive=True))
        return await answer

    def close(self) -> None:
        """Leave; what was not finished goes back into the queue."""
        for number in list(self._hands):
            self._let_go(number, give_back=False)
        if self.transport is not None:
            self.transport.close()
            self.transport = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what was held: the broker gives it out again."""
        super().connection_lost(exc)
        for number in list(self._hands):
            self._let_go(number, give_back=False)
        for answer in self._asked:
            if not answer.done():
                answer.set_exception(WireError("connection lost"))
        self._asked.clear()

    def on_method(self, payload: bytes) -> None:
        """Take the answer to `ready`."""
        if payload[:4] == _DECLARED:
            answer = self._asked.popleft()
            at = 5 + payload[4]
            if not answer.done():
                answer.set_result(int.from_bytes(payload[at : at + 4], "big"))

    def on_delivery(self, delivered: Delivered) -> None:
        """Give a message to the consumer that it is for."""
        now = time.monotonic()
        number, tag, redelivered, body = delivered
        work = Work(tag, decode(body))
        if not redelivered and work.mark not in self._came_back:
            self.delivered += 1
            self._on_stored(work.mark)
        elif work.mark is not None:
            self._came_back.discard(work.mark)
        hand = self._hands.get(number)
        if hand is None:  # cancelled while this was on its way
            self.send(commands.Basic.Nack(delivery_tag=tag, requeue=True))
            return
        hand.take(work, now, self._cost_of(work.mark))
        if hand.at_work is None:
            self._move(number, now)

    def _move(self, number: int, now: float) -> None:
        """Let a consumer finish and begin whatever it has by now; set its timer for the rest."""
        hand = self._hands[number]
        timer = self._timers.pop(number, None)
        if timer is not None:
            timer.cancel()
        while True:
            done = hand.finish(now)
            if done is not None:
                self.ack(done.tag, multiple=False)
            begun = hand.begin()
            if begun is None:
                break
            work, begun_at = begun
            self._on_begun(begun_at, work.mark)
        if hand.at_work is not None and not hand.is_stalled:
            delay = max(0.0, hand.ends_at - now)
            self._timers[number] = asyncio.get_running_loop().call_later(delay, self._on_timer, number)

    def _on_timer(self, number: int) -> None:
        self._timers.pop(number, None)
        self._move(number, time.monotonic())

    def _let_go(self, number: int, *, give_back: bool) -> None:
        hand = self._hands.pop(number)
        timer = self._timers.pop(number, None)
        if timer is not None:
            timer.cancel()
        for work in hand.give_back():
            if give_back and self.transport is not None:
                self.send(commands.Basic.Nack(delivery_tag=work.tag, requeue=True))
            if work.mark is not None:
                self._came_back.add(work.mark)
        self._gone_drawn += hand.drawn
        self._gone_expected += hand.expected
