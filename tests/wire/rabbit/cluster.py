"""A scripted RabbitMQ: its exchanges, queues and nodes, and what befalls them. Connections are `connection`'s.

All nodes share the queues, as quorum queues over all of them. What is stored is durable; a restart loses, if it is
told to, what was not confirmed. Chance and time come from outside.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from random import Random

from tests.wire.network import Fault, Listener, Network
from tests.wire.rabbit.connection import RabbitConnection
from tests.wire.rabbit.frames import Message, SoftError
from tests.wire.rabbit.leaders import Knowledge, Leaders

FRAME_MAX = 131_072
CHANNEL_MAX = 2_047
HEARTBEAT = 60
MESSAGE_BYTES = 16 * 1024**2
"""The longest message, as RabbitMQ 4 has it."""


class Verdict(Enum):
    """What becomes of a message."""

    ACKED = auto()
    NACKED = auto()
    RETURNED = auto()
    AWAY = auto()
    """It is returned, too: its queues are classic ones of a node that is down."""
    UNASKED = auto()
    """The queue's leader can't be reached: a nack, and where the leader is silent, after a while."""


class Lie(Enum):
    """What a passive declare may answer instead of the truth."""

    EMPTY = auto()
    """0 messages, 0 consumers: a quorum queue without a leader."""
    STALE = auto()
    """What was true when the lie began."""
    MISSING = auto()
    """No such queue."""


@dataclass(slots=True)
class Trouble:
    """What goes wrong for as long as it is set."""

    loses_confirms: float = 0.0
    """Share of confirms that never come."""
    late_confirms: float = 0.0
    """Share of confirms that come `late_seconds` too late."""
    late_seconds: float = 0.0
    lie: Lie | None = None
    lies: float = 1.0
    """Share of answers that are lies."""
    answer_seconds: float = 0.0
    """How much later passive declares are answered."""
    stalled: set[str] = field(default_factory=set)
    """Queues that confirm nothing."""
    loses_unconfirmed: bool = False
    """Whether a restart loses what was not confirmed."""


@dataclass(slots=True)
class RabbitQueue:
    """A durable queue; with a bound it refuses what comes beyond it (`reject-publish`)."""

    bound: int | None = None
    kind: str = "quorum"
    messages: deque[Message] = field(default_factory=deque)
    consumers: int = 0
    taken: int = 0
    told: tuple[int, int] = (0, 0)
    """What a stale answer tells."""

    @property
    def is_full(self) -> bool:
        """Whether the next message is refused."""
        return self.bound is not None and len(self.messages) >= self.bound

    def take(self, count: int) -> list[Message]:
        """Consume up to `count` messages, the oldest first."""
        count = min(count, len(self.messages))
        self.taken += count
        return [self.messages.popleft() for _ in range(count)]


@dataclass(slots=True)
class Exchange:
    """An exchange; every queue is bound by a key or by `#`."""

    kind: str
    bindings: list[tuple[str, str]] = field(default_factory=list)


class RabbitCluster:
    """Brokers at these addresses, `host:port`, that listen from now on."""

    def __init__(self, network: Network, chance: Random, hosts: Collection[str]) -> None:
        self.network = network
        self.chance = chance
        self.queues: dict[str, RabbitQueue] = {}
        self.exchanges: dict[str, Exchange] = {}
        self.passwords = {"guest": "guest"}
        self.certified: set[str] = set()
        """Users that EXTERNAL lets in; here the client's certificate is whoever it says to be."""
        self.virtual_hosts = {"/"}
        self.forbidden: set[str] = set()
        """Exchanges that nobody may publish to."""
        self.away: set[str] = set()
        """Queues that are as classic ones of a node that is down."""
        self.disputed: set[str] = set()
        """Those of which whoever is asked says that they are there all the same."""
        self.nacks = 0.0
        """Share of messages that are nacked."""
        self.frame_max = FRAME_MAX
        self.channel_max = CHANNEL_MAX
        self.heartbeat = HEARTBEAT
        self.message_bytes = MESSAGE_BYTES
        self.closes_on_refusal = True
        """Whether a refused login is told, to clients that say they understand; else the connection just ends."""
        self.trouble = Trouble()
        self.leaders = Leaders()
        self.is_blocked = False
        self.held = ""
        """What connections call themselves that are not read from."""
        self.refuses: Callable[[Message], bool] = lambda _: False
        """Whether a message costs the channel ..."""
        self.reason = ""
        """... and the last words of why."""
        self.on_published: Callable[[Message, Verdict | None], None] = lambda *_: None
        """Called with every message that arrives; None if it costs the channel."""
        self.on_forgotten: Callable[[Message], None] = lambda _: None
        """Called with every stored message that a restart loses."""
        self.on_wrong: Callable[[str, str], None] = lambda *_: None
        """Called when a client breaks the protocol: the client's process, and how."""
        self.confirm_seconds = 0.002
        """A confirm takes up to so long."""
        self.connections: list[RabbitConnection] = []
        self.hosts = tuple(hosts)
        self._listeners: dict[str, Listener] = {}
        self._silences: list[Fault] = []
        for host in self.hosts:
            self.start(host)

    # -- what there is ------------------------------------------------------------------------------------------------

    def declare_queue(self, name: str, *, bound: int | None = None) -> RabbitQueue:
        """Make a queue, reachable through the default exchange under its name."""
        return self.queues.setdefault(name, RabbitQueue(bound))

    def declare_exchange(self, name: str, kind: str = "topic") -> Exchange:
        """Make an exchange."""
        return self.exchanges.setdefault(name, Exchange(kind))

    def bind(self, exchange: str, queue: str, key: str = "#") -> None:
        """Lead a routing key of an exchange to a queue, or `#` every one."""
        if (key, queue) not in self.exchanges[exchange].bindings:
            self.exchanges[exchange].bindings.append((key, queue))

    def unbind(self, exchange: str) -> None:
        """Take all bindings of an exchange away."""
        self.exchanges[exchange].bindings.clear()

    # -- what befalls it ----------------------------------------------------------------------------------------------

    def start(self, host: str = "") -> None:
        """Let a node listen, or all."""
        for one in (host,) if host else self.hosts:
            if one not in self._listeners:
                self._listeners[one] = self.network.listen(one, partial(RabbitConnection, self, one))

    def stop(self, host: str = "") -> None:
        """End a node, or all, and their connections."""
        for one in (host,) if host else self.hosts:
            listener = self._listeners.pop(one, None)
            if listener is not None:
                listener.close()
            for connection in [each for each in self.connections if each.host == one]:
                if self.trouble.loses_unconfirmed:
                    self._forget(connection)
                connection.abort()

    def block(self) -> None:
        """Raise an alarm: connections that publish are not read from."""
        self.is_blocked = True
        for connection in list(self.connections):
            connection.follow_alarm()

    def unblock(self) -> None:
        """End the alarm."""
        self.is_blocked = False
        for connection in list(self.connections):
            connection.follow_alarm()

    def hold(self, name: str) -> None:
        """Read no more, untold, from connections of this name, as flow control does; "": from all again."""
        self.held = name
        for connection in list(self.connections):
            connection.follow_alarm()

    def fall_silent(self, host: str = "") -> None:
        """Let nothing through to or from a node, or all, and tell nobody."""
        for one in (host,) if host else self.hosts:
            self._silences.append(self.network.silence(one))

    def speak(self) -> None:
        """Let everything through again, what was sent meanwhile first."""
        while self._silences:
            self.network.end(self._silences.pop())

    def sever(self, process: str) -> None:
        """Be left by a process that died."""
        self.network.die(process)

    def drop_connections(self, process: str = "") -> None:
        """Close every connection in order, or every one of a process: `connection.close` in mid-stream."""
        for connection in list(self.connections):
            if process in {"", connection.process}:
                connection.close(320, "CONNECTION_FORCED - Closed via management plugin")

    def expire(self, secret: str) -> int:
        """Close every connection whose last secret is this one, as at a token's end; return how many."""
        over = [connection for connection in self.connections if connection.secret == secret]
        for connection in over:
            connection.close(320, "CONNECTION_FORCED - the credential has expired")
        return len(over)

    def begin_lie(self, lie: Lie) -> None:
        """Answer passive declares with a lie from now on, until `trouble.lie` is None."""
        self.trouble.lie = lie
        for queue in self.queues.values():
            queue.told = len(queue.messages), queue.consumers

    # -- what its connections ask -------------------------------------------------------------------------------------

    def admits(self, mechanism: str, response: str) -> bool:
        """Return whether a login is right."""
        if mechanism == "PLAIN":
            _, _, rest = response.partition("\0")
            user, _, password = rest.partition("\0")
            return user in self.passwords and self.passwords[user] == password
        return mechanism == "EXTERNAL" and response in self.certified

    def state_of(self, name: str) -> tuple[int, int]:
        """Return messages and consumers, as a passive declare tells. Raises `SoftError` if there is no such queue."""
        queue, trouble = self.queues.get(name), self.trouble
        if name in self.away - self.disputed:
            raise SoftError(
                404,
                f"NOT_FOUND - home node 'rabbit@host' of durable queue '{name}' in vhost '/' is down or inaccessible",
            )
        lie = trouble.lie if trouble.lie is not None and self.chance.random() < trouble.lies else None
        if queue is None or lie is Lie.MISSING:
            raise SoftError(404, f"NOT_FOUND - no queue '{name}' in vhost '/'")
        if lie is Lie.EMPTY:
            return 0, 0
        return queue.told if lie is Lie.STALE else (len(queue.messages), queue.consumers)

    def publish(self, message: Message, known: Knowledge) -> Verdict:
        """Route and store one message, by a channel that knows so much. Raises `SoftError` if it costs the channel."""
        try:
            verdict = self._judge(message, known)
        except SoftError:
            self.on_published(message, None)
            raise
        self.on_published(message, Verdict.NACKED if verdict is Verdict.UNASKED else verdict)
        return verdict

    def _judge(self, message: Message, known: Knowledge) -> Verdict:
        name = message.exchange
        if name and name not in self.exchanges:
            raise SoftError(404, f"NOT_FOUND - no exchange '{name}' in vhost '/'")
        if name in self.forbidden:
            raise SoftError(403, f"ACCESS_REFUSED - write access to exchange '{name}' in vhost '/' refused for user")
        if self.refuses(message):
            raise SoftError(406, f"PRECONDITION_FAILED - not this one: {self.reason}")
        if len(message.body) > self.message_bytes:
            raise SoftError(
                406,
                f"PRECONDITION_FAILED - message size {len(message.body)} is larger than configured max size "
                f"{self.message_bytes}",
            )
        bound = self._reached(name, message.key)
        reached = [queue for queue in bound if queue not in self.away]
        if not reached:
            returned = Verdict.AWAY if bound else Verdict.RETURNED
            return returned if message.mandatory else Verdict.ACKED
        if known.asks_in_vain(reached):
            return Verdict.UNASKED
        queues = [self.queues[queue] for queue in reached]
        if self.nacks and self.chance.random() < self.nacks:
            return Verdict.NACKED
        free = [queue for queue in queues if not queue.is_full]
        for queue in free:
            queue.messages.append(message)
        # One full queue makes a nack although the others keep the message.
        return Verdict.ACKED if len(free) == len(queues) else Verdict.NACKED

    def is_stalled(self, message: Message) -> bool:
        """Return whether a queue that it goes to confirms nothing now."""
        stalled = self.trouble.stalled
        return bool(stalled) and not stalled.isdisjoint(self._reached(message.exchange, message.key))

    def _reached(self, exchange: str, key: str) -> Collection[str]:
        if not exchange:
            return [key] if key in self.queues else []
        found = self.exchanges[exchange]
        return dict.fromkeys(
            queue
            for bound, queue in found.bindings
            if queue in self.queues and (found.kind == "fanout" or bound in {key, "#"})
        )

    def _forget(self, connection: RabbitConnection) -> None:
        for message in connection.unconfirmed():
            for queue in self.queues.values():
                kept = [one for one in queue.messages if one is not message]
                if len(kept) < len(queue.messages):
                    queue.messages = deque(kept)
                    self.on_forgotten(message)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The network's loop."""
        return self.network.loop
