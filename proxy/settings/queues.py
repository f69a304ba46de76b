"""What leads an event to a queue: routing keys, and the queues that a route is judged by."""

from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from proxy.settings.parts import Allowed, Part, ShortText, Switch, Text

QUEUE_FORM = "a queue's name, or {name: NAME, routing_keys: [KEY, ...] or event_types: [NAME, ...], tag: true}"


class RoutingKey(Part):
    """What an event is routed by: exactly one of the three; a plain text is a constant."""

    constant: Annotated[str, Field(max_length=255)] | None = None
    header: Text | None = None
    """Name of the log header whose value is the routing key; an event without it is undeliverable (`bad_property`)."""
    key: Literal[True] | None = None
    """The record's key, as UTF-8; an event without one is routed by the empty key."""

    @model_validator(mode="before")
    @classmethod
    def _text_is_a_constant(cls, value: object) -> object:
        return {"constant": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_exactly_one(self) -> Self:
        if sum(choice is not None for choice in (self.constant, self.header, self.key)) != 1:
            raise ValueError("give exactly one of constant, header, key (`key: true`)")
        return self


class JudgedQueue(Part):
    """A queue with what leads to it; one that says nothing of that gets every event of the route."""

    name: ShortText
    routing_keys: Annotated[tuple[Annotated[str, Field(max_length=255)], ...], Field(max_length=1_000)] = ()
    """Events with one of these keys, and no others, go there."""
    event_types: Annotated[tuple[Text, ...], Field(max_length=10_000)] = ()
    """Likewise, by the names of event types."""
    tag: Switch = False
    """Counts under `strategy: tagged`."""

    @model_validator(mode="after")
    def _is_led_to_in_one_way(self) -> Self:
        if self.routing_keys and self.event_types:
            raise ValueError("give routing_keys or event_types, not both")
        return self

    def takes(self, event_type: str, routing_key: RoutingKey) -> bool | None:
        """Return whether events of a type go there; None: their own keys decide, which nobody knows in advance."""
        if self.event_types:
            return event_type in self._named
        if not self.routing_keys:
            return True
        return None if routing_key.constant is None else routing_key.constant in self._named

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset(self.event_types or self.routing_keys)


FORMS = ("<text>", "<mapping>")
"""What pydantic calls the two forms of a queue, in the path of a mistake."""


def _form(value: object) -> str:
    return FORMS[0] if isinstance(value, str) else FORMS[1]


QueueEntry = Annotated[
    Annotated[JudgedQueue, Tag("<mapping>")] | Annotated[ShortText, Tag("<text>")],
    Discriminator(_form),
    Allowed(QUEUE_FORM),
]
"""A queue of a route: its name, or more of it."""
