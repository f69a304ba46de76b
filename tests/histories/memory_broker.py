"""RabbitMQ in memory: exchanges, bounded queues, confirms, returns, closed channels, blocking, lost connections.

The production lane runs on it unchanged (`MemoryWire` stands in for the connection). Time is the loop's, chance the
`Random` it is given, so that a seed is one history.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from proxy.bridge.broker import Address, Batch, Finding, Found, QueueKind, QueueState
from proxy.errors import BrokerError, RefusedLoginError
from proxy.model import Event, Partition
from proxy.publish_lane import PublishLane
from proxy.publish_lane.message_ids import message_id
from proxy.publish_lane.wire import Sent, WireEvents
from proxy.settings import Limits, Route
from proxy.simulation.virtual_time import PROCESS
from tests.histories.memory_wire import MemoryWire, Refusal, Trouble, Verdict, key_of


@dataclass(frozen=True, slots=True)
class Message:
    """One stored message."""

    id: str
    routing_key: str
    partition: Partition
    event: Event
    address: Address


@dataclass(slots=True)
class MemoryQueue:
    """A durable queue; with a bound it refuses what comes beyond it (`reject-publish`)."""

    bound: int | None = None
    messages: deque[Message] = field(default_factory=deque)
    consumers: int = 0
    """What a monitor is told; taking messages is up to whoever plays the consumer."""

    @property
    def is_full(self) -> bool:
        """Whether the next message is refused."""
        return self.bound is not None and len(self.messages) >= self.bound

    def take(self, count: int) -> list[Message]:
        """Consume up to `count` messages, the oldest first."""
        return [self.messages.popleft() for _ in range(min(count, len(self.messages)))]


class MemoryBroker:
    """One broker. `latency` is the seconds of one way over a connection, asked for each piece and each confirm."""

    def __init__(self, chance: Random, *, latency: Callable[[], float] | None = None) -> None:
        self.queues: dict[str, MemoryQueue] = {}
        self.is_up = True
        self.is_blocked = False
        """A memory or disk alarm: nothing published is read."""
        self.refuses_login = False
        self.forbidden: set[str] = set()
        """Exchanges that this login may not publish to."""
        self.nacks = 0.0
        """Share of messages that are nacked."""
        self.trouble = Trouble()
        self.on_write: Callable[[MemoryWire, Sequence[Sent]], None] = lambda *_: None
        """Called with everything that a connection is handed, before it is on its way."""
        self.on_published: Callable[[Batch, Event, Verdict | None], None] = lambda *_: None
        """Called with every message that arrives; None if it costs the channel."""
        self.refuses: Callable[[Address, Event], bool] = lambda *_: False
        """Whether a message costs the channel."""
        self.max_message_bytes = 16 * 1024**2
        self.latency = latency or (lambda: chance.uniform(0.0002, 0.002))
        self.chance = chance
        self.away: set[str] = set()
        """Queues on a node that is down: what is for them comes back."""
        self.disputed: set[str] = set()
        """Those of which whoever is asked says that they are there all the same."""
        self._bindings: dict[str, list[tuple[str, str]]] = {}
        self._wires: dict[MemoryWire, str] = {}
        """... and the simulated process that each belongs to."""

    def declare_queue(self, name: str, *, bound: int | None = None) -> MemoryQueue:
        """Make a queue, reachable through the default exchange under its name."""
        return self.queues.setdefault(name, MemoryQueue(bound))

    def declare_exchange(self, name: str) -> None:
        """Make an exchange."""
        self._bindings.setdefault(name, [])

    def bind(self, exchange: str, queue: str, key: str = "#") -> None:
        """Lead a routing key of an exchange to a queue, or `#` every one."""
        self._bindings[exchange].append((key, queue))

    def unbind(self, exchange: str) -> None:
        """Take all bindings of an exchange away."""
        self._bindings[exchange].clear()

    def lane(
        self, name: str, route: Route, limits: Limits, *, backoff: float = 0.2, backoff_limit: float = 2.0
    ) -> PublishLane:
        """Return a lane over a connection of its own; the pauses before it connects are as by default."""
        return PublishLane(
            name,
            _MemoryConnector(self, name),
            window_events=route.most_in_flight,
            window_bytes=route.in_flight_bytes,
            adapts=route.adapts,
            limits=limits,
            backoff=backoff,
            backoff_limit=backoff_limit,
        )

    def monitor(self) -> "MemoryMonitor":
        """Return a monitor."""
        return MemoryMonitor(self)

    def finder(self) -> "MemoryFinder":
        """Return a finder."""
        return MemoryFinder(self)

    # What befalls it

    def block(self) -> None:
        """Raise an alarm."""
        self.is_blocked = True

    def unblock(self) -> None:
        """End the alarm; what was written meanwhile is read now."""
        self.is_blocked = False
        self._read_on()

    def fall_silent(self) -> None:
        """Let nothing through on any connection, and tell nobody."""
        self.trouble.is_silent = True

    def speak(self) -> None:
        """Let everything through again, what was sent meanwhile first."""
        self.trouble.is_silent = False
        self._read_on()

    def drop_connections(self, process: str | None = None) -> None:
        """Lose every connection, or every one of a process, with what is under way on it."""
        for wire, owner in list(self._wires.items()):
            if process in {None, owner}:
                wire.lose("connection reset")
                del self._wires[wire]

    def sever(self, process: str) -> None:
        """Be left by a process that died: what it has sent still arrives, but it hears nothing and sends no more."""
        for wire, owner in list(self._wires.items()):
            if owner == process:
                wire.sever()

    def stop(self) -> None:
        """Go down; durable queues keep their messages."""
        self.is_up = False
        self.drop_connections()

    def start(self) -> None:
        """Come back."""
        self.is_up = True

    # What its wires ask

    async def accept(self, events: WireEvents, lane: str) -> MemoryWire:
        """Log a lane in."""
        await asyncio.sleep(2 * self.latency())
        if self.trouble.is_silent:
            await asyncio.get_running_loop().create_future()
        if not self.is_up:
            raise BrokerError("memory: connection refused")
        if self.refuses_login:
            raise RefusedLoginError("memory refuses broker.username 'guest' with this broker.password")
        wire = MemoryWire(self, events, lane)
        self._wires[wire] = PROCESS.get()
        return wire

    def forget(self, wire: MemoryWire) -> None:
        """Note that a connection was closed."""
        self._wires.pop(wire, None)

    def publish(self, batch: Batch, event: Event) -> Verdict:
        """Route and store one message. Raises `Refusal` if it costs the channel."""
        try:
            verdict = self._judge(batch, event)
        except Refusal:
            self.on_published(batch, event, None)
            raise
        self.on_published(batch, event, verdict)
        return verdict

    def _read_on(self) -> None:
        for wire in list(self._wires):
            wire.read_on()

    def _judge(self, batch: Batch, event: Event) -> Verdict:
        exchange = batch.address.exchange
        if exchange and exchange not in self._bindings:
            raise Refusal(f"NOT_FOUND - no exchange '{exchange}' in vhost '/'")
        if exchange in self.forbidden:
            raise Refusal(f"ACCESS_REFUSED - write access to exchange '{exchange}' refused")
        if self.refuses(batch.address, event):
            raise Refusal("PRECONDITION_FAILED - not this one")
        if len(event.value or b"") > self.max_message_bytes:
            raise Refusal(f"PRECONDITION_FAILED - message size {len(event.value or b'')} is larger than allowed")
        key = key_of(batch.address, event)
        reached = self._reached(exchange, key)
        queues = [self.queues[name] for name in reached if name not in self.away]
        if not queues:
            return Verdict.AWAY if reached else Verdict.RETURNED
        if self.nacks and self.chance.random() < self.nacks:
            return Verdict.NACKED
        # As in RabbitMQ, one full queue makes a nack although the others keep the message.
        free = [queue for queue in queues if not queue.is_full]
        for queue in free:
            name = message_id(batch.address, batch.partition, event).decode()
            queue.messages.append(Message(name, key, batch.partition, event, batch.address))
        return Verdict.ACKED if len(free) == len(queues) else Verdict.NACKED

    def _reached(self, exchange: str, key: str) -> Collection[str]:
        if not exchange:
            return [key] if key in self.queues else []
        return dict.fromkeys(queue for bound, queue in self._bindings[exchange] if bound in {key, "#"})


class MemoryMonitor:
    """See `proxy.bridge.broker.DepthMonitor`."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    def why(self, queue: str) -> str:
        """Return that its node is down, if it is away."""
        return "its node is down" if queue in self._broker.away else ""

    async def poll(self, queues: Collection[str]) -> Mapping[str, QueueState | None]:
        """Tell the state of every queue."""
        await asyncio.sleep(2 * self._broker.latency())
        if not self._broker.is_up or self._broker.trouble.is_silent:
            raise BrokerError("memory: no answer")
        known = {name: queue for name, queue in self._broker.queues.items() if name not in self._broker.away}
        return {
            name: QueueState(len(known[name].messages), known[name].consumers, QueueKind.CLASSIC)
            if name in known
            else None
            for name in queues
        }

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""


class MemoryFinder:
    """See `proxy.bridge.broker.QueueFinder`: one question at a time, so that some are left out."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    async def find(self, queues: Sequence[str], host: str) -> Mapping[str, Finding]:
        """Tell of some of the queues, of the first one at least."""
        del host  # there is one
        broker = self._broker
        await asyncio.sleep(2 * broker.latency())
        if not broker.is_up or broker.trouble.is_silent:
            raise BrokerError("memory: no answer")
        return {queue: self._finding(queue) for queue in queues[: broker.chance.randint(1, 4)]}

    def _finding(self, queue: str) -> Finding:
        if queue in self._broker.away - self._broker.disputed:
            return Finding(Found.AWAY, "its node is down")
        return Finding(Found.THERE if queue in self._broker.queues else Found.GONE)

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""


@dataclass(frozen=True, slots=True)
class _MemoryConnector:
    broker: MemoryBroker
    lane: str

    @property
    def home(self) -> str:
        return MemoryWire.host

    async def connect(self, events: WireEvents, host: str | None = None) -> MemoryWire:
        del host
        return await self.broker.accept(events, self.lane)

    def silence(self, seconds: float) -> str:
        """Return what to say of the one host."""
        return f"no answer within {seconds:g} s"

    def doubt(self, host: str) -> None:
        """Do nothing: there is no other host."""

    def trust(self, host: str) -> None:
        """Do nothing."""
