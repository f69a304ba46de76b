"""One connection to the broker of a scenario: pieces arrive later, in order, and are confirmed as ranges of tags.

All the latency lies on the way there: that a piece has left, is stored and confirmed is told in one step, where a real
connection would wake the lane three times.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, groupby
from typing import Protocol

from proxy.bridge.broker import Batch
from proxy.errors import BrokerError
from proxy.model import Event
from proxy.publish_lane.wire import Sent, WireEvents

FRAME_MAX = 131_072


class StoringBroker(Protocol):
    """What a wire needs of its broker."""

    is_blocked: bool
    is_stalled: bool
    delay: float
    """Seconds that every confirm takes beside the latency."""

    def latency(self) -> float:
        """Return the seconds of one way."""
        ...

    def store(self, batch: Batch, events: Sequence[Event], now: float) -> list[bool]:
        """Store events; return which were taken."""
        ...

    def forget(self, wire: "ModelWire") -> None:
        """Note that the connection was closed."""
        ...


class ModelWire:
    """See `proxy.publish_lane.wire.Wire`."""

    host = "model"
    frame_max = FRAME_MAX
    writable = True
    heartbeat = 0.0
    heard = 0.0
    unsent = 0

    def __init__(self, broker: StoringBroker, events: WireEvents) -> None:
        self._broker = broker
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._numbers = count(1)
        self._incoming: deque[Sequence[Sent]] = deque()
        self._confirms: deque[tuple[int, int, bool]] = deque()
        self._arrived = 0
        self._last_arrival = 0.0

    def is_blocked(self) -> bool:
        """Return whether the broker reads nothing; like RabbitMQ it says so to those only that publish."""
        return self._broker.is_blocked and self._arrived > 0

    async def open_channel(self) -> int:
        """Open a channel; hangs while blocked."""
        await asyncio.sleep(2 * self._broker.latency())
        while self.is_blocked():  # noqa: ASYNC110 -- chance decides when it looks
            await asyncio.sleep(2 * self._broker.latency())
        if not self._is_open:
            raise BrokerError(f"{self.host}: connection closed")
        return next(self._numbers)

    async def close_channel(self, number: int) -> None:  # noqa: ARG002 -- it keeps nothing of a channel
        """Close a channel on which nothing is open."""
        await asyncio.sleep(2 * self._broker.latency())

    def write(self, piece: bytes, sent: Sequence[Sent]) -> bool:  # noqa: ARG002 -- the events say it all
        """Send events on their way."""
        self._incoming.append(sent)
        self._last_arrival = max(self._loop.time() + 2 * self._broker.latency(), self._last_arrival)
        self._loop.call_at(self._last_arrival, self._arrive)
        return False

    async def close(self, *, gracefully: bool) -> None:  # noqa: ARG002 -- nothing here can keep it waiting
        """Close the connection."""
        self._is_open = False
        self._broker.forget(self)

    def lose(self, why: str) -> None:
        """Break the connection: what is under way in either direction is gone."""
        self._loop.call_soon(self._tell, partial(self._events.on_lost, why, refused=False))
        self._incoming.clear()
        self._confirms.clear()
        self._arrived = 0

    def read_on(self) -> None:
        """Read what arrived while the broker did not read."""
        while self._arrived and self._incoming and not (self._broker.is_blocked or self._broker.is_stalled):
            self._arrived -= 1
            for one in self._incoming.popleft():
                self._read(one)

    def _arrive(self) -> None:
        """Take what arrived first; a queue, as timers of one instant fire in no order."""
        if self._incoming and self._is_open:
            self._events.on_written()
            self._arrived += 1
            self.read_on()

    def _read(self, one: Sent) -> None:
        """Store a slice and confirm its runs; nothing earlier is open, so that `multiple` means just the run."""
        piece = one.events
        events = piece.batch.events
        if piece.end - piece.start < len(events):
            events = events[piece.start : piece.end]
        last = piece.first_tag - 1
        for taken, run in groupby(self._broker.store(piece.batch, events, self._loop.time())):
            last += sum(1 for _ in run)
            if self._broker.delay:
                self._confirms.append((one.channel, last, taken))
                self._loop.call_later(self._broker.delay, self._confirm)
            else:
                self._events.on_confirm(one.channel, last, multiple=True, acked=taken)

    def _confirm(self) -> None:
        """Tell the confirm that is due first; a queue, as timers of one instant fire in no order."""
        if self._confirms:
            channel, last, taken = self._confirms.popleft()
            self._tell(partial(self._events.on_confirm, channel, last, multiple=True, acked=taken))

    def _tell(self, say: Callable[[], None]) -> None:
        if self._is_open:
            say()
