"""One connection to the broker in memory: what is written arrives later, in order; answers come later still."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from itertools import count
from random import Random
from typing import Protocol

from proxy.bridge.broker import Address, Batch
from proxy.errors import BrokerError
from proxy.model import Event
from proxy.publish_lane.headers import UnfitError, routing_key
from proxy.publish_lane.message_ids import message_id
from proxy.publish_lane.wire import Sent, WireEvents

FRAME_MAX = 131_072
_BROKER_SIDE = Context()
"""In which the broker's end of every connection runs: it belongs to no simulated process."""
_HELD_BACK = 0.2
"""Share of confirms that come later than those of later messages."""


class Refusal(Exception):  # noqa: N818 -- it is the broker's answer
    """The broker closes the channel over a message."""


class Verdict(Enum):
    """What becomes of a message."""

    ACKED = auto()
    NACKED = auto()
    RETURNED = auto()
    AWAY = auto()
    """It is returned, too: its queue is on a node that is down."""


@dataclass(slots=True)
class Trouble:
    """What goes wrong on all connections for as long as it is set."""

    loses_confirms: float = 0.0
    """Share of confirms that never come."""
    late_confirms: float = 0.0
    """Share of confirms that come `late_seconds` too late."""
    late_seconds: float = 0.0
    is_silent: bool = False
    """Nothing arrives in either direction, and nobody is told; what is written meanwhile arrives afterwards."""


class WireBroker(Protocol):
    """What a wire needs of its broker."""

    is_blocked: bool
    chance: Random
    trouble: Trouble
    on_write: Callable[["MemoryWire", Sequence[Sent]], None]

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
    """Messages no queue took, by tag in its order: id and cause, told before their confirm and those of later ones."""
    beyond: set[int] = field(default_factory=set)
    """Confirmed tags above `confirmed`."""


class MemoryWire:
    """See `proxy.publish_lane.wire.Wire`."""

    host = "memory"
    frame_max = FRAME_MAX
    writable = True
    heartbeat = 0.0
    heard = 0.0
    unsent = 0

    def __init__(self, broker: WireBroker, events: WireEvents, lane: str) -> None:
        self.lane = lane
        """Whose connection it is."""
        self._broker = broker
        self._client_side = copy_context()
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._numbers = count(1)
        self._channels: dict[int, _Channel] = {}
        self._incoming: deque[Sequence[Sent]] = deque()
        self._arrived = 0
        self._last_arrival = 0.0
        self._untold: deque[Callable[[], object]] = deque()

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

    async def close_channel(self, number: int) -> None:
        """Close a channel on which nothing is open."""
        await asyncio.sleep(2 * self._broker.latency())
        self._channels.pop(number, None)

    def write(self, piece: bytes, sent: Sequence[Sent]) -> bool:  # noqa: ARG002 -- the events say it all
        """Send events on their way."""
        if not self._is_open:
            return False  # the process is dead, whatever its last callbacks still write
        self._broker.on_write(self, sent)
        self._incoming.append(sent)
        self._last_arrival = max(self._loop.time() + self._broker.latency(), self._last_arrival)
        self._loop.call_at(self._last_arrival, self._arrive, context=_BROKER_SIDE)
        self._loop.call_soon(self._deliver, self._events.on_written)
        return False

    async def close(self, *, gracefully: bool) -> None:  # noqa: ARG002 -- nothing here can keep it waiting
        """Close the connection."""
        self.sever()

    def sever(self) -> None:
        """End the client's side, as the death of its process does: what is under way still arrives."""
        self._is_open = False
        self._broker.forget(self)

    def lose(self, why: str) -> None:
        """Break the connection: what is under way in either direction is gone."""
        self._loop.call_soon(
            self._deliver, partial(self._events.on_lost, why, refused=False), context=self._client_side
        )
        self._incoming.clear()
        self._channels.clear()
        self._untold.clear()

    def read_on(self) -> None:
        """Read what arrived while the broker was blocked, tell what came while the connection was silent."""
        while self._untold and not self._broker.trouble.is_silent:
            self._loop.call_soon(self._tell, self._untold.popleft(), context=self._client_side)
        while self._arrived and self._incoming and not self._broker.is_blocked and not self._broker.trouble.is_silent:
            self._arrived -= 1
            self._read(self._incoming.popleft())

    def _arrive(self) -> None:
        if self._incoming:
            self._arrived += 1
            self.read_on()

    def _read(self, sent: Sequence[Sent]) -> None:
        for one in sent:
            channel = self._channels.get(one.channel)
            if channel is None:
                continue
            for event in one.events.events:
                if self._channels.get(one.channel) is not channel:
                    break
                self._take(one.channel, channel, one.events.batch, event)
            self._answer(partial(self._confirm, one.channel, channel))

    def _take(self, number: int, channel: _Channel, batch: Batch, event: Event) -> None:
        tag = channel.next_tag
        channel.next_tag += 1
        try:
            verdict = self._broker.publish(batch, event)
        except Refusal as refusal:
            del self._channels[number]
            self._answer(partial(self._events.on_channel_closed, number, str(refusal)))
            return
        if verdict in {Verdict.RETURNED, Verdict.AWAY}:
            address = batch.address
            why = f"NO_ROUTE: exchange {address.exchange!r}, routing key {key_of(address, event)!r}"
            channel.returned[tag] = message_id(address, batch.partition, event), why
        if self._broker.trouble.loses_confirms and self._broker.chance.random() < self._broker.trouble.loses_confirms:
            return
        channel.waiting[tag] = verdict is not Verdict.NACKED

    def _confirm(self, number: int, channel: _Channel) -> None:
        """Confirm what is decided but for some held back: runs of acks together, the rest singly."""
        if self._channels.get(number) is not channel or not channel.waiting:
            return
        ready = {tag: acked for tag, acked in channel.waiting.items() if self._broker.chance.random() > _HELD_BACK}
        for tag in ready:
            del channel.waiting[tag]
        due = max((tag for tag in ready if tag in channel.returned), default=0)
        for tag in [tag for tag in channel.returned if tag <= due]:  # in the order of publishing, as RabbitMQ does
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

    def _answer(self, say: Callable[[], object]) -> None:
        trouble, seconds = self._broker.trouble, self._broker.latency()
        if trouble.late_confirms and self._broker.chance.random() < trouble.late_confirms:
            seconds += trouble.late_seconds
        self._loop.call_later(seconds, self._tell, say, context=self._client_side)

    def _tell(self, say: Callable[[], object]) -> None:
        if not self._is_open:
            return
        if self._broker.trouble.is_silent or self._untold:
            self._untold.append(say)
        else:
            say()

    def _deliver(self, say: Callable[[], object]) -> None:
        if self._is_open:
            say()


def key_of(address: Address, event: Event) -> str:
    """Return what an event is routed by; empty if it has nothing that fits."""
    try:
        return routing_key(address.routing_key, event)[1:].decode()
    except UnfitError:
        return ""
