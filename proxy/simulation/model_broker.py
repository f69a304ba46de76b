"""The broker of a scenario: exchanges that lead to queues with consumers, confirms by the batch, outages.

It differs from `memory_broker` in purpose: that one is for faults and oddities, event by event; this one for hours of
traffic, calibrated on what was measured. A confirm comes after routing, in the order of the tags, and its latency knows
nothing of depth.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from proxy.bridge.broker import Batch, QueueInsight, QueueKind, QueueState
from proxy.errors import BrokerError
from proxy.model import Event, Partition
from proxy.publish_lane import PublishLane
from proxy.publish_lane.wire import WireEvents
from proxy.settings import BrokerSettings, Limits, Route
from proxy.simulation.memory_cluster import offset_of
from proxy.simulation.model_queue import Message, ModelQueue
from proxy.simulation.model_wire import ModelWire
from proxy.simulation.trace import Trace

ONE_WAY = (0.0001, 0.0004)
"""Seconds over a connection; twice that is the measured P50 of a confirm, 0.5 ms."""
STATISTICS = 5.0
"""Seconds between two refreshments of the statistics."""
SELDOM_SLOW = 0.01
SLOW = 0.004
"""One in a hundred pieces takes the measured P99."""


class Seen:
    """Which offsets of a partition the queues took."""

    def __init__(self) -> None:
        self.next = 0
        """Every offset below was taken."""
        self.again = 0
        """How many were taken more than once."""
        self._beyond: set[int] = set()

    def add_all(self, positions: Sequence[object]) -> None:
        """Note those taken, in the order of their offsets."""
        if not positions:
            return
        first, last = offset_of(positions[0]), offset_of(positions[-1])
        if first == self.next and last - first == len(positions) - 1 and not self._beyond:
            self.next = last + 1
            return
        for position in positions:
            self._add(offset_of(position))

    def _add(self, offset: int) -> None:
        if offset < self.next or offset in self._beyond:
            self.again += 1
        elif offset > self.next:
            self._beyond.add(offset)
        else:
            self.next += 1
            while self.next in self._beyond:
                self._beyond.remove(self.next)
                self.next += 1

    def missing(self, committed: int) -> int:
        """Return how many offsets below the committed one were never taken."""
        return max(0, committed - self.next - sum(offset < committed for offset in self._beyond))


class ModelBroker:
    """One broker. The run begins at `begins` on the loop's clock, `epoch` on the wall's, both in seconds.

    `delay` is by how many seconds a confirm comes later than by the `latency`.
    """

    def __init__(self, chance: Random, trace: Trace, *, begins: float, epoch: float, delay: float = 0.0) -> None:
        self.queues: dict[str, ModelQueue] = {}
        self.leads: dict[tuple[str, str], tuple[tuple[str, ModelQueue], ...]] = {}
        """By exchange and routing key: the queues that events go to."""
        self.streams: dict[Partition, str] = {}
        """Which stream comes in a partition."""
        self.costs: dict[str, int] = {}
        """What an event of a stream costs; 1 if it is not named."""
        self.seen: dict[Partition, Seen] = {}
        self.is_up = True
        self.is_blocked = False
        self.is_stalled = False
        """It reads nothing and does not say so, as while it pages out."""
        self.is_monitored = True
        self.is_managed = True
        self.delay = delay
        self._trace = trace
        self._begins = begins
        self._epoch = epoch
        self._chance = chance
        self._wires: dict[ModelWire, None] = {}

    def latency(self) -> float:
        """Return the seconds of one way."""
        return SLOW if self._chance.random() < SELDOM_SLOW else self._chance.uniform(*ONE_WAY)

    def lane(self, name: str, route: Route, limits: Limits) -> PublishLane:
        """Return a lane over a connection of its own."""
        return PublishLane(
            name,
            _ModelConnector(self),
            window_events=route.most_in_flight,
            window_bytes=route.in_flight_bytes,
            adapts=route.adapts,
            limits=limits,
            backoff=BrokerSettings.model_fields["backoff"].default,
            backoff_limit=BrokerSettings.model_fields["backoff_limit"].default,
        )

    def monitor(self) -> "ModelMonitor":
        """Return a monitor."""
        return ModelMonitor(self)

    def insights(self) -> "ModelInsights":
        """Return the broker's statistics."""
        return ModelInsights(self)

    # What befalls it

    def set_reading(self, *, blocked: bool = False, stalled: bool = False) -> None:
        """Raise or end an alarm, or a stall that nobody is told of; what was written meanwhile is read then."""
        self.is_blocked, self.is_stalled = blocked, stalled
        for wire in list(self._wires):
            wire.read_on()

    def set_monitored(self, *, on: bool) -> None:
        """Answer monitors or not."""
        self.is_monitored = on

    def set_managed(self, *, on: bool) -> None:
        """Tell statistics or not."""
        self.is_managed = on

    def stop(self) -> None:
        """Go down: connections are lost, messages stay, what consumers held goes back."""
        self.is_up = False
        for wire in list(self._wires):
            wire.lose("connection reset")
        self._wires.clear()
        now = asyncio.get_running_loop().time()
        for queue in self.queues.values():
            queue.set_consumers(0, now)

    def start(self) -> None:
        """Come back, and the consumers with it."""
        self.is_up = True
        now = asyncio.get_running_loop().time()
        for queue in self.queues.values():
            queue.set_consumers(queue.consumers.begun_with, now)

    # What its wires ask

    async def accept(self, events: WireEvents) -> ModelWire:
        """Log a lane in."""
        await asyncio.sleep(2 * self.latency())
        if not self.is_up:
            raise BrokerError("model: connection refused")
        wire = ModelWire(self, events)
        self._wires[wire] = None
        return wire

    def forget(self, wire: ModelWire) -> None:
        """Note that a connection was closed."""
        self._wires.pop(wire, None)

    def store(self, batch: Batch, events: Sequence[Event], now: float) -> list[bool]:
        """Route and store events of one batch; return which were taken, as confirms tell it."""
        stream = self.streams[batch.partition]
        queues = self.leads[batch.address.exchange, batch.address.routing_key.constant or ""]
        priority = batch.address.priority or 0
        cost = self.costs.get(stream, 1)
        seen = self.seen.setdefault(batch.partition, Seen())
        for _, queue in queues:
            queue.advance(now)
        verdicts = [True] * len(events)
        for name, queue in queues:
            admitted = 0
            for place, event in enumerate(events):
                if queue.refuses():
                    # As in RabbitMQ, one full queue makes a nack although the others keep the message.
                    verdicts[place] = False
                else:
                    assert event.timestamp_ms is not None
                    queue.put(Message(event.timestamp_ms / 1000 - self._epoch, stream, priority, cost), now)
                    admitted += 1
            self._trace.admitted[name].add(now - self._begins, cost * admitted)
        self._trace.sent[stream].add(now - self._begins, len(verdicts))
        refused = verdicts.count(False)
        if refused:
            self._trace.refused[stream].add(now - self._begins, refused)
        seen.add_all([event.position for event, taken in zip(events, verdicts, strict=True) if taken])
        return verdicts


class ModelMonitor:
    """See `proxy.bridge.broker.DepthMonitor`."""

    def __init__(self, broker: ModelBroker) -> None:
        self._broker = broker

    def why(self, queue: str) -> str:
        """Return nothing: what is missing here does not exist."""
        del queue
        return ""

    async def poll(self, queues: Collection[str]) -> Mapping[str, QueueState | None]:
        """Tell the state of every queue."""
        broker = self._broker
        await asyncio.sleep(2 * broker.latency())
        if not broker.is_up or not broker.is_monitored:
            raise BrokerError("model: connection refused")
        now = asyncio.get_running_loop().time()
        states: dict[str, QueueState | None] = {}
        for name in queues:
            queue = broker.queues.get(name)
            if queue is not None:
                queue.advance(now)
            states[name] = None if queue is None else QueueState(queue.ready, queue.consumers.count, QueueKind.CLASSIC)
        return states

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""


class ModelInsights:
    """See `proxy.bridge.broker.QueueInsights`: refreshed every 5 s and 4.5 s old by then, as RabbitMQ's."""

    def __init__(self, broker: ModelBroker) -> None:
        self._broker = broker
        self._told: dict[str, QueueInsight] = {}
        self._next: dict[str, QueueInsight] = {}
        self._period = -1

    async def ask(self, queues: Collection[str]) -> Mapping[str, QueueInsight | None]:
        """Tell what is known of every queue."""
        await asyncio.sleep(2 * self._broker.latency())
        if not self._broker.is_up or not self._broker.is_managed:
            raise BrokerError("model: connection refused")
        now = asyncio.get_running_loop().time()
        if int(now / STATISTICS) != self._period:
            self._period = int(now / STATISTICS)
            self._told, self._next = self._next, {name: self._insight(name, now) for name in self._broker.queues}
        return {name: self._told.get(name) for name in queues}

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""

    def _insight(self, name: str, now: float) -> QueueInsight:
        queue = self._broker.queues[name]
        queue.advance(now)
        return QueueInsight(queue.ready, queue.consumers.held, queue.consumers.acked)


@dataclass(frozen=True, slots=True)
class _ModelConnector:
    broker: ModelBroker

    @property
    def home(self) -> str:
        return ModelWire.host

    async def connect(self, events: WireEvents, host: str | None = None) -> ModelWire:
        del host
        return await self.broker.accept(events)

    def silence(self, seconds: float) -> str:
        """Return what to say of the one host."""
        return f"no answer within {seconds:g} s"

    def doubt(self, host: str) -> None:
        """Do nothing: there is no other host."""

    def trust(self, host: str) -> None:
        """Do nothing."""
