"""One connection to the broker in memory: what is written arrives later, in order; answers come later still."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from itertools import count
from random import Random
from typing import Protocol

from proxy.bridge.broker import Batch
from proxy.errors import BrokerError
from proxy.model import Event
from proxy.publish_lane.frames import message_id
from proxy.publish_lane.wire import Sent, WireEvents

FRAME_MAX = 131_072
_HELD_BACK = 0.2
"""Share of confirms that come later than those of later messages."""


class Refusal(Exception):  # noqa: N818 -- it is the broker's answer
    """The broker closes the channel over a message."""


class Verdict(Enum):
    """What becomes of a message."""

    ACKED = auto()
    NACKED = auto()
    RETURNED = auto()


class WireBroker(Protocol):
    """What a wire needs of its broker."""

    is_blocked: bool
    chance: Random

    def latency(self) -> float:
        """Return the seconds of one way."""
        ...

    def publish(self, batch: Batch, event: Event) -> Verdict:
        """Route and store one message. Raises `Refusal` if it costs the channel."""
        ...

    def forget(self, wire: "MemoryWire") -> None:
        """Note that the connection was closed."""
        ...


@dataclass(slots=True)
class _Channel:
    """The broker's side of a channel."""

    next_tag: int = 1
    confirmed: int = 0
    """Every tag up to this one has been confirmed."""
    waiting: dict[int, bool] = field(default_factory=dict)
    """Tags decided but not yet confirmed; whether by an ack."""
    returned: dict[int, tuple[bytes, str]] = field(default_factory=dict)
    """Messages no queue took, by tag: id and cause, told right before the confirm."""
    beyond: set[int] = field(default_factory=set)
    """Confirmed tags above `confirmed`."""


class MemoryWire:
    """See `proxy.publish_lane.wire.Wire`."""

    host = "memory"
    frame_max = FRAME_MAX
    writable = True

    def __init__(self, broker: WireBroker, events: WireEvents) -> None:
        self._broker = broker
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._numbers = count(1)
        self._channels: dict[int, _Channel] = {}
        self._incoming: deque[Sequence[Sent]] = deque()
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
        number = next(self._numbers)
        self._channels[number] = _Channel()
        return number

    def write(self, piece: bytes, sent: Sequence[Sent]) -> None:  # noqa: ARG002 -- the events say it all
        """Send events on their way."""
        self._incoming.append(sent)
        self._last_arrival = max(self._loop.time() + self._broker.latency(), self._last_arrival)
        self._loop.call_at(self._last_arrival, self._arrive)
        self._loop.call_soon(self._tell, self._events.on_written)

    async def close(self, *, gracefully: bool) -> None:  # noqa: ARG002 -- nothing here can keep it waiting
        """Close the connection."""
        self._is_open = False
        self._broker.forget(self)

    def lose(self, why: str) -> None:
        """Break the connection: what is under way in either direction is gone."""
        self._loop.call_soon(self._tell, partial(self._events.on_lost, why, refused=False))
        self._incoming.clear()
        self._channels.clear()

    def read_on(self) -> None:
        """Read what arrived while the broker was blocked."""
        while self._arrived and self._incoming and not self._broker.is_blocked:
            self._arrived -= 1
            self._read(self._incoming.popleft())

    def _arrive(self) -> None:
        if self._incoming:
            self._arrived += 1
            self.read_on()

    def _read(self, sent: Sequence[Sent]) -> None:
        for one in sent:
            for event in one.events.events:
                channel = self._channels.get(one.channel)
                if channel is None:
                    break
                self._take(one.channel, channel, one.events.batch, event)

    def _take(self, number: int, channel: _Channel, batch: Batch, event: Event) -> None:
        tag = channel.next_tag
        channel.next_tag += 1
        try:
            verdict = self._broker.publish(batch, event)
        except Refusal as refusal:
            del self._channels[number]
            self._answer(partial(self._events.on_channel_closed, number, str(refusal)))
            return
        if verdict is Verdict.RETURNED:
            channel.returned[tag] = message_id(batch.partition, event), f"NO_ROUTE: {batch.address.exchange!r}"
        channel.waiting[tag] = verdict is not Verdict.NACKED
        self._answer(partial(self._confirm, number, channel))

    def _confirm(self, number: int, channel: _Channel) -> None:
        """Confirm what is decided but for some held back: runs of acks together, the rest singly."""
        if self._channels.get(number) is not channel or not channel.waiting:
            return
        ready = {tag: acked for tag, acked in channel.waiting.items() if self._broker.chance.random() > _HELD_BACK}
        for tag in ready:
            del channel.waiting[tag]
            if tag in channel.returned:
                self._events.on_return(number, *channel.returned.pop(tag))
        if channel.waiting:
            self._answer(partial(self._confirm, number, channel))
        before = channel.confirmed
        while ready.get(channel.confirmed + 1, False) or channel.confirmed + 1 in channel.beyond:
            channel.confirmed += 1
            channel.beyond.discard(channel.confirmed)
            ready.pop(channel.confirmed, None)
        if channel.confirmed > before:
            self._events.on_confirm(number, channel.confirmed, multiple=True, acked=True)
        for tag, acked in ready.items():
            channel.beyond.add(tag)
            self._events.on_confirm(number, tag, multiple=False, acked=acked)

    def _answer(self, say: Callable[[], None]) -> None:
        self._loop.call_later(self._broker.latency(), self._tell, say)

    def _tell(self, say: Callable[[], None]) -> None:
        if self._is_open:
            say()
