"""The consumers of one queue on a real broker, cheap enough that thousands of events a second leave them idle.

They share one connection, each with a prefetch of its own; frames are taken apart by hand.
"""

import asyncio
import random
import struct
import time
from collections import deque
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import NamedTuple, cast

from pamqp import base, commands, frame

from load.control.hands import Hand
from load.control.payload import Mark, decode
from load.wire import CHANNEL, Wire, WireError
from proxy.simulation.scenario import Queue

_FRAME = struct.Struct(">BHI")
_SIZE = struct.Struct(">Q")
_METHOD, _HEADER, _BODY = 1, 2, 3
_DELIVER, _DECLARED = b"\x00\x3c\x00\x3c", b"\x00\x32\x00\x0b"
_CLOSES = (b"\x00\x0a\x00\x32", b"\x00\x14\x00\x28")
_ACK = struct.Struct(">BHIHHQBB")


class Work(NamedTuple):
    """One delivery."""

    tag: int
    mark: Mark | None
    """None: published by others."""


class Services(asyncio.Protocol):
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
    ) -> None:
        self._port = port
        self._name = name
        self._queue = queue
        self._seed = seed
        self._on_stored = on_stored
        self._on_begun = on_begun
        self._hands: dict[int, Hand[Work]] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._next = 0
        self._pace = queue.capacity / queue.consumers
        self._wanted = queue.consumers
        self._gone_drawn = self._gone_expected = 0.0
        self._asked: deque[asyncio.Future[int]] = deque()
        self._buffer = b""
        self._delivery: tuple[int, int, bool] | None = None
        self._missing = 0
        self._body: list[bytes] = []
        self._came_back: set[Mark] = set()
        self._transport: asyncio.Transport | None = None
        self.delivered = 0
        """Messages of Tidegate's or of others' that came for the first time."""

    async def connect(self) -> None:
        """Connect and begin to consume. Raises WireError."""
        wire = await asyncio.to_thread(Wire, self._port)
        await asyncio.get_running_loop().create_connection(lambda: self, sock=wire.detach())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to consume."""
        self._transport = cast("asyncio.Transport", transport)
        self._send(commands.Basic.Qos(prefetch_count=self._queue.prefetch_each))
        wanted, self._wanted = self._wanted, 0
        self.set_consumers(wanted)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._transport is not None

    @property
    def capacity(self) -> float:
        """Events a second that all consumers do together on average."""
        return self._pace * self._wanted

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
        """Let the consumers there are do so many events a second together; 0: they stall with what they hold."""
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
            self._send(commands.Basic.Consume(queue=self._name, consumer_tag=str(number), nowait=True))
        while len(self._hands) > count:
            number = max(self._hands)
            self._send(commands.Basic.Cancel(consumer_tag=str(number), nowait=True))
            self._let_go(number, give_back=True)
        self._wanted = count

    @property
    def given_back(self) -> AbstractSet[Mark]:
        """Return what consumers held when they lost their connection or left, and has not come again yet."""
        return self._came_back

    async def ready(self) -> int:
        """Return the messages ready in the queue. Raises WireError where there is no connection."""
        if self._transport is None:
            raise WireError("no connection")
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        self._send(commands.Queue.Declare(queue=self._name, passive=True))
        return await answer

    def close(self) -> None:
        """Leave; what was not finished goes back into the queue."""
        for number in list(self._hands):
            self._let_go(number, give_back=False)
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def connection_lost(self, _exc: Exception | None) -> None:
        """Forget what was held: the broker gives it out again."""
        self._transport, self._buffer, self._delivery = None, b"", None
        for number in list(self._hands):
            self._let_go(number, give_back=False)
        for answer in self._asked:
            if not answer.done():
                answer.set_exception(WireError("connection lost"))
        self._asked.clear()

    def data_received(self, data: bytes) -> None:
        """Take all frames that are whole."""
        buffer, at = (self._buffer + data if self._buffer else data), 0
        whole = len(buffer)
        while whole - at >= 7:
            kind, _, size = _FRAME.unpack_from(buffer, at)
            if whole - at < size + 8:
                break
            self._on_frame(kind, buffer[at + 7 : at + 7 + size])
            at += size + 8
        self._buffer = buffer[at:]

    def _on_frame(self, kind: int, payload: bytes) -> None:
        if kind == _BODY and self._delivery is not None:
            self._body.append(payload)
            self._missing -= len(payload)
            if self._missing <= 0:
                self._on_delivery(b"".join(self._body) if len(self._body) > 1 else payload)
        elif kind == _HEADER:
            (self._missing,) = _SIZE.unpack_from(payload, 4)
            self._body.clear()
            if not self._missing:
                self._on_delivery(b"")
        elif kind == _METHOD:
            self._on_method(payload)

    def _on_method(self, payload: bytes) -> None:
        name = payload[:4]
        if name == _DELIVER:
            end = 5 + payload[4]
            (tag,) = _SIZE.unpack_from(payload, end)
            self._delivery = int(payload[5:end]), tag, bool(payload[end + 8])
        elif name == _DECLARED:
            answer = self._asked.popleft()
            at = 5 + payload[4]
            if not answer.done():
                answer.set_result(int.from_bytes(payload[at : at + 4], "big"))
        elif name in _CLOSES and self._transport is not None:
            self._transport.abort()

    def _on_delivery(self, body: bytes) -> None:
        now = time.monotonic()
        assert self._delivery is not None
        number, tag, redelivered = self._delivery
        self._delivery = None
        work = Work(tag, decode(body))
        if not redelivered and work.mark not in self._came_back:
            self.delivered += 1
            self._on_stored(work.mark)
        elif work.mark is not None:
            self._came_back.discard(work.mark)
        hand = self._hands.get(number)
        if hand is None:  # cancelled while this was on its way
            self._send(commands.Basic.Nack(delivery_tag=tag, requeue=True))
            return
        hand.take(work, now)
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
                self._ack(done.tag)
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
            if give_back and self._transport is not None:
                self._send(commands.Basic.Nack(delivery_tag=work.tag, requeue=True))
            if work.mark is not None:
                self._came_back.add(work.mark)
        self._gone_drawn += hand.drawn
        self._gone_expected += hand.expected

    def _ack(self, tag: int) -> None:
        if self._transport is not None:
            self._transport.write(_ACK.pack(_METHOD, CHANNEL, 13, 60, 80, tag, 0, 0xCE))

    def _send(self, method: base.Frame) -> None:
        if self._transport is not None:
            self._transport.write(frame.marshal(method, CHANNEL))
