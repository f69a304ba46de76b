"""What an event type is, after inheritance."""

from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AfterValidator, Field

from proxy.model import Order
from proxy.settings.parts import Allowed, Name, Number, Part, Seconds
from proxy.settings.queues import RoutingKey
from proxy.settings.route import DeadLetter


def _no_folder(name: str) -> str:
    if name in {".", ".."}:
        raise ValueError("can be no topic")
    return name


TopicName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._-]{1,249}$"),
    AfterValidator(_no_folder),
    Allowed("what Kafka takes for a topic: 1 to 249 of the characters A-Z a-z 0-9 . _ -, but neither . nor .."),
]
"""What a topic, and an event type after it, may be called."""


class Traits(Part):
    """What defaults, a class or the type itself may say of an event type; every part is resolved."""

    priority: Name
    """Name of the class."""
    route: Name
    routing_key: Annotated[RoutingKey, Allowed("a text (a constant), {header: NAME} or {key: true}")]
    order: Order = Order.PARTITION
    max_age: Annotated[Seconds, Field(ge=0.001, le=3_650 * 86_400)] | None = None
    """Older events are dead-lettered as `expired`; None: no event is too old."""
    cost: Annotated[Number, Field(ge=0.01, le=1_000)] = 1.0
    """`class_budget`: so many times as long as an event of cost 1 keeps one of these a consumer busy."""
    content_type: Annotated[str, Field(max_length=255)] = "application/octet-stream"
    """For events without a `content-type` header of their own."""
    dead_letter: DeadLetter | None = None
    """None: the first undeliverable event stops the type, and the log says so."""


class EventType(Traits):
    """One stream of events of one kind: one topic, one listener, one throttle."""

    name: TopicName
    topic: TopicName


class TypePattern(Traits):
    """Makes an event type of every topic that matches, named like the topic, unless a type names the topic itself."""

    pattern: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9._*?-]{1,249}$"),
        Allowed("1 to 249 of the characters A-Z a-z 0-9 . _ - * ?, like events.*.marketing"),
    ]
    """`*` any run of characters, `?` one: `events.*.marketing`."""

    def matches(self, topic: str) -> bool:
        """Tell whether the topic is one of these; names that begin with `__` are the log's own and never are."""
        return not topic.startswith("__") and fnmatchcase(topic, self.pattern)

    def event_type(self, topic: str) -> EventType:
        """Return the event type made of a topic that matches."""
        traits = {name: getattr(self, name) for name in Traits.model_fields}
        return EventType(name=topic, topic=topic, **traits)
