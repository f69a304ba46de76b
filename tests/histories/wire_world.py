"""The world of a wire history: to Kafka's half a scripted RabbitMQ, and the production `RabbitBroker` before it."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

from proxy.bridge.broker import DepthMonitor, Lane, Lanes, QueueFinder
from proxy.errors import RefusedLoginError
from proxy.publish_lane import PublishLane
from proxy.publish_lane.wire import Connector, Sent, Wire, WireEvents
from proxy.rabbitmq import RabbitBroker
from proxy.rabbitmq.broker import DEAD_LETTER_BYTES, DEAD_LETTER_EVENTS
from proxy.rabbitmq.connection import RabbitConnector
from proxy.simulation.virtual_time import PROCESS
from tests.histories import memory_wire, wire_messages
from tests.histories.fairness import Fairness
from tests.histories.kafka_world import KafkaWorld
from tests.histories.plan import (
    HEADER,
    LETTERS,
    LONGEST,
    MOST_HEADERS,
    POISON,
    Plan,
)
from tests.histories.replica import Replica
from tests.histories.witness import Witness
from tests.wire.rabbit.cluster import RabbitCluster, Verdict
from tests.wire.rabbit.frames import Message

_RESTART = 0.5
"""Seconds until whoever watches over the processes starts one again that ended by itself."""
_LARGE = 0.06
"""Share of large events, where they are allowed."""
_OTHER_HEADERS: Sequence[tuple[str, bytes | None]] = (
    ("plain", b"text"),
    ("plain", b"again"),
    ("empty", b""),
    ("null", None),
    ("bytes", b"\xff\x00\xce"),
    ("x-death", b"not ours"),
    ("CC", b"nobody"),
    ("tidegate-topic", b"another"),
    ("Content-Type", b"text/plain"),
    ("umlaut-\u00e4", "\u00e4".encode()),
)
_KEYS = (None, b"", b"key", b"\xff\xfe")


class WireWorld(KafkaWorld):
    """See `World`."""

    broker: RabbitCluster

    def _make_broker(self) -> RabbitCluster:
        plan = self.plan
        assert plan.wire is not None
        self.network.latency = plan.latency
        self.network.splits = plan.wire.splits
        broker = RabbitCluster(self.network, Random(f"{plan.seed} broker"), plan.settings.broker.hosts)
        broker.frame_max = plan.wire.frame_max
        broker.confirm_seconds = plan.wire.confirm_seconds
        broker.closes_on_refusal = plan.wire.closes_on_refusal
        broker.refuses = lambda message: message.exchange in self.exchanges and POISON in message.headers
        broker.reason = Random(f"{plan.seed} reason").choice(("", "", "ä" * 240))
        broker.on_published = self._on_published
        broker.on_forgotten = lambda message: self.witness.on_forgotten(
            self.witness.facts.all[_number(message)], is_letter=wire_messages.is_letter(message)
        )
        broker.on_wrong = lambda process, text: self.witness.accuse(f"{process} breaks the protocol: {text}")
        self.witness.windows[LETTERS] = DEAD_LETTER_EVENTS, DEAD_LETTER_BYTES
        return broker

    def _make_replica(self, name: str) -> Replica:
        return WireReplica(self, name)

    def _on_published(self, message: Message, verdict: Verdict | None) -> None:
        """Judge a message, and show it to the witness as what it was made from."""
        facts = self.witness.facts.all
        number = _number(message)
        if not 0 <= number < len(facts):
            self.witness.accuse(f"a message came that is of no record: {message.body[:20]!r}")
            return
        fact = facts[number]
        for difference in wire_messages.wrong(message, fact, self.plan.settings):
            self.witness.accuse(f"{fact} arrives changed: {difference}")
        notes = ((wire_messages.REASON, str(message.headers.get(wire_messages.REASON, ""))),)
        batch: Any = SimpleNamespace(
            address=SimpleNamespace(lenient=wire_messages.is_letter(message), notes=notes), partition=fact.partition
        )
        known = None if verdict is None else memory_wire.Verdict[verdict.name]
        self.witness.on_published(batch, fact.event, known)

    def _key(self) -> bytes | None:
        return self.chance.choice(_KEYS)

    def _event(self, topic: str) -> tuple[bool, bytes, list[tuple[str, bytes | None]]]:
        chance, longest = self.chance, self.plan.settings.limits.event_bytes
        kind = self.plan.settings.event_types[topic]
        value = b"%d." % len(self.witness.facts.all) + b"x" * chance.randrange(40)
        if longest > LONGEST and chance.random() < _LARGE:
            value += bytes(chance.randrange(longest - 1_000))
        headers: list[tuple[str, bytes | None]] = (
            [] if kind.routing_key.constant else [(HEADER, self.queue_of(topic).encode())]
        )
        headers += chance.choices(_OTHER_HEADERS, k=chance.choice((0, 0, 1, 3)))
        if kind.dead_letter is None or chance.random() >= self.plan.odd:
            return True, value, headers
        is_routed = not kind.routing_key.constant
        match chance.randrange(6):
            case 0:
                value += b"x" * longest
            case 1:
                headers += [("h", b"")] * (MOST_HEADERS + 1)
            case 2 if is_routed:
                headers[0] = HEADER, b"nowhere"
            case 3 if is_routed:
                del headers[0]
            case 4 | 5:
                headers.append((POISON, b""))
            case _:
                return True, value, headers
        return False, value, headers


class WireReplica(Replica):
    """See `Replica`: its broker is the production one."""

    def __init__(self, world: WireWorld, name: str) -> None:
        self._world = world
        broker: Any = world.broker
        super().__init__(name, world.plan, world.new_log(name), broker, world.witness, world.wall, world.board_of(name))

    def _reach_broker(self) -> tuple[Lanes, Lane, DepthMonitor, QueueFinder]:
        chance = Random(f"{self._plan.seed} {self.name} hosts")
        broker = WatchedRabbit(self._witness, self._plan, chance)
        return broker, broker.dead_letter_lane(), broker.monitor(), broker.finder()

    def _ended(self, error: Exception) -> None:
        """Let it be started again if it ended as it must: the first login was refused."""
        causes = list(_causes(error))
        if self.crashed or not all(isinstance(cause, RefusedLoginError) for cause in causes):
            super()._ended(error)
            return
        self._witness.note(f"{self.name} ends: {causes[0]}")
        self.crashed = self.is_stopping = True
        self._world.retire(self)
        world: Any = self._world
        world.network.loop.call_later(_RESTART, world.start, context=world.network.context)


class WatchedRabbit(RabbitBroker):
    """Shows the witness what its lanes write."""

    def __init__(self, witness: Witness, plan: Plan, chance: Random) -> None:
        self._witness = witness
        self._plan = plan
        settings = plan.settings
        super().__init__(settings.broker, settings.routes, settings.limits, chance=chance)

    def _made(self, name: str, connector: RabbitConnector, **window: Any) -> PublishLane:
        fairness = Fairness(self._plan, name, self._witness.windows[name][0])
        watched: Any = WatchedConnector(connector, name, self._witness, fairness)
        lane: Any = super()._made(name, watched, **window)
        watched.is_suspected = lane._quarantine.__contains__
        fairness.is_in_line = lambda topic, place: any(one.place == place for one in lane._quarantine.line.of(topic))
        lane.publish = partial(fairness.publish, lane)
        made: PublishLane = lane
        return made


class WatchedConnector:
    """See `Connector`."""

    def __init__(self, connector: Connector, lane: str, witness: Witness, fairness: Fairness) -> None:
        self.home = connector.home
        self.is_suspected: Callable[[str], bool] = lambda _: False
        """Whether the events of a topic go one at a time, beside the line."""
        self._fairness = fairness
        self._connector = connector
        self._lane = lane
        self._witness = witness
        self.doubt = connector.doubt
        self.trust = connector.trust
        self.silence = connector.silence

    async def connect(self, events: WireEvents, host: str | None = None) -> Wire:
        """See `Connector`."""
        return WatchedWire(await self._connector.connect(events, host), self._lane, self._witness, self._judge)

    def _judge(self, sent: Sequence[Sent]) -> None:
        """Accuse the lane of what is unfair in a write."""
        for waiter in self._fairness.waiting.values():
            if self.is_suspected(waiter.topic):
                self._fairness.excuse(waiter)
        for one in sent if self._lane != LETTERS else ():
            topic = one.events.batch.partition.topic
            if self.is_suspected(topic):
                continue
            if wrong := self._fairness.wrote(one.events.batch, one.events.end - one.events.start):
                self._witness.accuse(f"{PROCESS.get()}: {wrong}")


class WatchedWire:
    """See `Wire`."""

    def __init__(self, wire: Wire, lane: str, witness: Witness, judge: Callable[[Sequence[Sent]], None]) -> None:
        self.lane = lane
        self._judge = judge
        self._wire = wire
        self._witness = witness
        self.is_blocked = wire.is_blocked
        self.open_channel = wire.open_channel
        self.close_channel = wire.close_channel
        self.close = wire.close

    @property
    def host(self) -> str:
        """See `Wire`."""
        return self._wire.host

    @property
    def frame_max(self) -> int:
        """See `Wire`."""
        return self._wire.frame_max

    @property
    def heartbeat(self) -> float:
        """See `Wire`."""
        return self._wire.heartbeat

    @property
    def heard(self) -> float:
        """See `Wire`."""
        return self._wire.heard

    @property
    def unsent(self) -> int:
        """See `Wire`."""
        return self._wire.unsent

    @property
    def writable(self) -> bool:
        """See `Wire`."""
        return self._wire.writable

    def write(self, piece: bytes, sent: Sequence[Sent]) -> bool:
        """See `Wire`."""
        if not self._witness.told[PROCESS.get()].is_dead:
            self._witness.on_write(self, sent)
            self._judge(sent)
        return self._wire.write(piece, sent)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what a group of errors is made of, however deep."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _causes(one)
    else:
        yield error


def _number(message: Message) -> int:
    """Return which event a message says it is, -1 if none."""
    number = message.body.split(b".", 1)[0]
    return int(number) if number.isdigit() else -1
