"""What the bridge asks of a message broker; `publish_lane` and `rabbitmq` answer it for RabbitMQ."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import NamedTuple, Protocol

from proxy.model import Event, Origin, Outcome, Partition, Reason
from proxy.settings import Route, RoutingKey


@dataclass(frozen=True, slots=True)
class Address:
    """Where and how a batch is published; one per event type, and one per dead-letter destination and reason."""

    exchange: str
    routing_key: RoutingKey
    content_type: str
    """For events without a `content-type` header of their own."""
    notes: tuple[tuple[str, str], ...] = ()
    """Headers added to every message, `tidegate-reason` of a dead letter for instance."""
    priority: int | None = 0
    """AMQP's, 0 to 255, larger goes first in a queue that knows priorities; None: the message has none."""
    origin: Origin = Origin.FULL
    """How much a message says of where its record comes from."""
    carries_key: bool = True
    """Whether the record's key is among the headers."""
    redriven: int = 0
    """How often the events were sent again out of dead letters, this time included; a header tells it beyond 0."""
    lenient: bool = False
    """A dead letter: whatever of the event AMQP can't carry is left out instead of refused."""


class Recipient(Protocol):
    """Who is told how publications end: the flow or dead letter that the batch came from."""

    def may_send(self) -> bool:
        """Return whether the batch may still be written now; asked right before every write."""
        ...

    def on_outcome(
        self,
        batch: "Batch",
        start: int,
        end: int,
        outcome: Outcome,
        *,
        seconds: float | None = None,
        reason: Reason | None = None,
        detail: str = "",
    ) -> None:
        """Take the outcome of `batch.events[start:end]`.

        Called exactly once per written or undeliverable event, synchronously, from the lane. `seconds` is the time from
        write to confirm or nack, None where nothing came back. `reason` and `detail` come with `UNDELIVERABLE`; UNKNOWN
        with a reason means that the channel closed over some other event, which is no sign of congestion.
        """
        ...


@dataclass(slots=True, eq=False)
class Batch:
    """Events of one partition of one event type, in log order, handed to a lane together."""

    partition: Partition
    events: Sequence[Event]
    first: int
    """Sequence number of `events[0]` since the assignment; the rest follow without gaps."""
    address: Address
    rank: int
    """Place of its class, 0 the most important: who gets the next in-flight slots."""
    recipient: Recipient
    retry: bool = False
    """The events were written before, in vain."""
    is_old: bool = False
    """They stand behind what is live of the same rank."""
    done: int = field(default=0, init=False)
    """Set by the lane: so many events, from the front, were written or found undeliverable."""
    called_back: bool = field(default=False, init=False)
    """Set by `Lane.withdraw`."""

    @property
    def withdrawn(self) -> bool:
        """Whether no more of it may be written; a lane asks in the same step in which it writes."""
        return self.called_back or not self.recipient.may_send()


class LaneState(StrEnum):
    """Where a lane's connection stands."""

    CONNECTING = "connecting"
    OPEN = "open"
    BLOCKED = "blocked"
    LOST = "lost"


class Lane(Protocol):
    """Confirmed publishing over one connection, inside an in-flight window."""

    @property
    def state(self) -> LaneState:
        """Where the connection stands."""
        ...

    @property
    def host(self) -> str:
        """Which host of the broker it is connected with; empty while with none."""
        ...

    @property
    def in_flight(self) -> int:
        """Events written whose outcome is open; never more than the route's `most_in_flight`."""
        ...

    @property
    def window(self) -> int:
        """Events that may be in flight now; where it adapts, fewer than are in flight if it has just narrowed."""
        ...

    def oldest(self, now: float) -> float:
        """Return how many seconds ago, by the loop's clock, the oldest open event was written; 0 if none is."""
        ...

    def unanswered(self, now: float) -> float:
        """Return how many seconds ago it came to the broker's host, or something on its way there last did.

        0 if none is open.
        """
        ...

    async def run(self) -> None:
        """Keep the connection until cancelled; waits out outages.

        Raises `RefusedLoginError` if the broker refuses the credentials before it ever took them.
        """
        ...

    async def publish(self, batches: Sequence[Batch]) -> None:
        """Write the batches in order, as slots of the window come free, the smallest rank first.

        Returns when each is wholly written or withdrawn (`Batch.done` tells); waits while the connection is not open.
        Outcomes go to the recipients, some perhaps before the return. If cancelled, what is written stays written.
        Once an event of a batch ends in NACKED or UNKNOWN, its recipient withdraws the rest if its order asks for it.
        """
        ...

    def withdraw(self, batches: Collection[Batch]) -> None:
        """Call the batches back (`Batch.called_back`) and end their waits at once."""
        ...


class Lanes(Protocol):
    """Makes lanes for routes."""

    def lanes(self, routes: Mapping[str, Route]) -> Mapping[str, Lane]:
        """Return the lane of each of these routes, which are all there are from now on.

        A route that was there keeps its lane, as wide as the route says now.
        """
        ...


class QueueKind(StrEnum):
    """What a queue is made of."""

    CLASSIC = "classic"
    QUORUM = "quorum"
    STREAM = "stream"
    """A log: what is read stays in it."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """One queue, as a passive declare tells."""

    ready: int
    """Messages waiting; not those handed to consumers and not yet acknowledged. Of a stream: all that it keeps."""
    consumers: int
    """0 for a stream, whoever reads it."""
    kind: QueueKind | None = None
    """None: not known, or not yet."""


@dataclass(frozen=True, slots=True)
class QueueInsight:
    """One queue, as the broker's own statistics tell: some seconds old when they come."""

    ready: int
    unacked: int
    """Messages handed to consumers and not yet acknowledged."""
    acked: int
    """Acknowledgements since the broker began to count."""


class QueueInsights(Protocol):
    """Asks the broker for its statistics."""

    async def ask(self, queues: Collection[str]) -> Mapping[str, QueueInsight | None]:
        """Return what is known of each queue, None if nothing is. Raises `BrokerError` if unanswered within 2 s."""
        ...

    async def close(self) -> None:
        """Close the connections. Idempotent, bounded."""
        ...


class DepthMonitor(Protocol):
    """Asks for the state of queues over a connection of its own."""

    async def poll(self, queues: Collection[str]) -> Mapping[str, QueueState | None]:
        """Return each queue's state, None for one that does not exist; all at once, within a second.

        Left out are queues that were not come to because too many others do not exist.
        Raises `BrokerError` if unanswered in time.
        """
        ...

    def why(self, queue: str) -> str:
        """Return what the broker said of a queue of which the last poll told None; "" if it just does not exist."""
        ...

    async def close(self) -> None:
        """Close the connection. Idempotent, bounded."""
        ...


class Found(Enum):
    """What the broker says of a queue."""

    THERE = "there"
    AWAY = "away"
    """It is known, and its node is down."""
    GONE = "gone"
    """There is no such queue, or it is not told."""


class Finding(NamedTuple):
    """One queue, as the broker says it at this moment."""

    found: Found
    why: str = ""
    """In the broker's words, where it is away."""


class QueueFinder(Protocol):
    """Asks where queues are, over connections of its own that are open only while there is something to ask."""

    async def find(self, queues: Sequence[str], host: str) -> Mapping[str, Finding]:
        """Ask that host for the first one, and for the next as long as half a second allows.

        Left out is what was not asked. Raises `BrokerError` if nothing is answered within a second.
        """
        ...

    async def close(self) -> None:
        """Close the connections. Idempotent, bounded; the next question opens another."""
        ...
