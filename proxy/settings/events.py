"""What an event type is, after inheritance."""

from typing import Annotated

from pydantic import Field

from proxy.model import Order
from proxy.settings.broker import DeadLetter, RoutingKey
from proxy.settings.parts import Name, Part, Seconds


class Traits(Part):
    """What defaults, a class or the type itself may say of an event type; every part is resolved."""

    priority: Name
    """Name of the class."""
    route: Name
    routing_key: RoutingKey
    order: Order = Order.PARTITION
    max_age: Annotated[Seconds, Field(gt=0)] | None = None
    """Older events are dead-lettered as `expired`."""
    content_type: Annotated[str, Field(max_length=255)] = "application/octet-stream"
    """For events without a `content-type` header of their own."""
    dead_letter: DeadLetter | None = None
    """None: the first undeliverable event stops the type, and the log says so."""


class EventType(Traits):
    """One stream of events of one kind: one topic, one listener, one throttle."""

    name: Name
    topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]


class TypePattern(Traits):
    """Makes an event type of every topic that matches, named like the topic, unless a type names the topic itself."""

    pattern: Annotated[str, Field(pattern=r"^[A-Za-z0-9._*?-]{1,249}$")]
    """`*` any run of characters, `?` one: `events.*.marketing`."""
