"""The words of the data path: partitions, events, outcomes.

Nothing here knows Kafka or AMQP, a clock or an event loop.
"""

from collections.abc import Hashable
from enum import Enum, StrEnum
from typing import NamedTuple

Position = Hashable
"""Where a record stands in its partition; only the log's adapter can read it (Kafka: an int, another log: a string)."""


class Partition(NamedTuple):
    """One ordered sequence of records in the log."""

    topic: str
    number: int

    def __str__(self) -> str:
        """Return the form used in messages and in message ids, `topic-number`."""
        return f"{self.topic}-{self.number}"


class Event(NamedTuple):
    """One record of the log, as it was read."""

    position: Position
    timestamp_ms: int | None
    """Milliseconds since 1970 by the producer's or the log's clock; None if the log has none."""
    key: bytes | None
    value: bytes | None
    """None is a tombstone."""
    headers: tuple[tuple[str, bytes | None], ...]
    """In the log's order; a name may stand there twice."""
    size: int
    """Bytes of key, value and headers together: what every bound in bytes counts."""


class Outcome(Enum):
    """How one publication of an event ended."""

    CONFIRMED = "confirmed"
    """The broker has taken it over; the only outcome that may move a watermark by itself."""
    NACKED = "nacked"
    """The broker has no room now; a sign of congestion, to be sent again."""
    UNKNOWN = "unknown"
    """The connection was lost or the confirm did not come in time; sent again, perhaps twice delivered."""
    UNDELIVERABLE = "undeliverable"
    """It will never be taken, however often it is sent; no sign of congestion."""


class Reason(StrEnum):
    """Why an event can't be delivered; the `tidegate-reason` of its dead letter."""

    UNROUTABLE = "unroutable"
    TOO_LARGE = "too_large"
    TOO_MANY_HEADERS = "too_many_headers"
    BAD_PROPERTY = "bad_property"
    """A routing key, header name or content type that AMQP can't carry."""
    REFUSED = "refused"
    """The broker closed the channel over it: missing exchange, no permission, precondition."""
    EXPIRED = "expired"
    INTERNAL = "internal"


PASSING = frozenset({Reason.UNROUTABLE, Reason.REFUSED})
"""Reasons that lie with the destination: the same event may be taken later."""


class Order(StrEnum):
    """What an event type promises about the order within a partition (design decision 4)."""

    PARTITION = "partition"
    STRICT = "strict"
    NONE = "none"


class Mode(StrEnum):
    """What a person lets become of the events of a type (docs/design/0043)."""

    RUN = "run"
    PAUSE = "pause"
    """They wait."""
    DISCARD = "discard"
    """They are dropped, unsent."""
    CAP = "cap"
    """They go, and no faster than so many a second in the whole group."""
    POLICY = "policy"
    """Not of a type: a route is held back by another policy."""


class Cap(NamedTuple):
    """What a person allows event types at most, all that it means together."""

    id: str
    """Of the intervention."""
    rate: float
    """Events a second, in the whole group."""


class Stance(NamedTuple):
    """What a person has said of an event type."""

    mode: Mode = Mode.RUN
    """`run`, `pause` or `discard`."""
    by: str = ""
    """Who; empty if nobody has said anything."""
    why: str | None = None
    cap: Cap | None = None


class Retention(NamedTuple):
    """How long a log keeps the events of a topic, done with or not; whole segments of a partition go, the oldest first.

    None: without end.
    """

    seconds: float | None
    """After its own timestamp an event may go so many seconds later, not sooner."""
    bytes: int | None
    """An event may go as soon as so much stands behind it in its partition, not sooner."""
    segment_bytes: int | None
    """What goes at once at most."""


class Origin(StrEnum):
    """How a message says where its record comes from."""

    ID = "id"
    """By its message id alone."""
    FULL = "full"
    """By headers, too."""


class Note(NamedTuple):
    """One thing pinned to the board; of each key the last one counts."""

    key: str
    value: bytes | None
    """None takes back what was pinned under the key."""
