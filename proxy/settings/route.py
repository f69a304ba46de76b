"""Routes into the broker: where events go, by which queues a route is judged, what holds them back."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator, model_validator

from proxy.model import Origin
from proxy.settings.parts import (
    NAME_PATTERN,
    Allowed,
    Bytes,
    Count,
    Name,
    Number,
    Part,
    Seconds,
    ShortText,
    Switch,
    Whole,
)
from proxy.settings.queues import JudgedQueue, QueueEntry, RoutingKey

Policy = Literal["static", "per_type", "class_budget"]
"""Congestion control of a route: `class_budget` a rate per class, found from the queues' delay; `per_type` the seed's
AIMD, a batch size per event type; `static` none (the windows remain)."""

POLICIES: tuple[Policy, ...] = get_args(Policy)

Strategy = Literal["min", "max", "tagged", "sum"]
"""Which of several queues a route is judged by: the slowest, the quickest, the slowest with a tag, or all of them taken
together as one."""
DEFAULT_LAW = "aimd"
LAW_FORM = "the name of a rate law: aimd (the default), cubic, vegas, vegas_capped, or one of an installed package"
MOST_PRIORITY = 255
"""AMQP counts priorities in one byte."""
PRIORITY_FORM = f"class, none, or a whole number, 0 to {MOST_PRIORITY}, for each class that has one: {{P1: 9, P2: 4}}"


class Cap(Part):
    """What a route may publish at most, in whatever mood its consumers are: exactly one of events and bytes."""

    events: Annotated[Number, Field(ge=0.1, le=10_000_000)] | None = None
    """Events a second."""
    bytes: Annotated[Bytes, Field(ge=1, le=1024**4)] | None = None
    """Bytes (key, value, headers) a second."""
    burst: Annotated[Seconds, Field(ge=0.01, le=60)] = 0.1
    """So much of the rate may be saved up, and so much the highest class may overdraw it. Larger: burstier."""
    strict: Switch = False
    """Bind the highest class, too, which otherwise passes at once and is only subtracted."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.events is None) == (self.bytes is None):
            raise ValueError("give exactly one of events, bytes")
        return self

    @property
    def rate(self) -> float:
        """Tokens a second: events or bytes."""
        return float(self.events if self.events is not None else self.bytes or 0)


class Scaling(Part):
    """Tell how many consumers are wanted, for whoever starts and ends them; of each queue where each is judged."""

    consumers_per_process: Annotated[Count, Field(le=10_000)] = 1
    """Consumers that come and go together; what is wanted is a multiple."""
    work_off: Annotated[Seconds, Field(ge=1, le=86_400)] = 60.0
    """In so many seconds a backlog should be worked off. Smaller: more consumers for a shorter time."""


def _in_one_sentence(value: object, validate: ValidatorFunctionWrapHandler) -> Any:
    """Say one thing of what is none of the forms, instead of one for each form."""
    try:
        return validate(value)
    except ValidationError:
        raise ValueError("is no message priority") from None


MessagePriority = Annotated[
    Literal["class", "none"]
    | Annotated[dict[Name, Annotated[Whole, Field(ge=0, le=MOST_PRIORITY)]], Field(min_length=1)],
    WrapValidator(_in_one_sentence),
    Allowed(PRIORITY_FORM),
]
"""Which AMQP priority the messages of each class have."""

FIXED_WINDOW = 200
"""Events in flight of a route whose window neither adapts nor is set."""


class Route(Part):
    """One way into the broker, with a publishing connection and an in-flight window of its own."""

    exchange: Annotated[str, Field(max_length=255)]
    """`""` is the default exchange: the routing key names the queue."""
    queues: Annotated[tuple[QueueEntry, ...], Field(max_length=1_000)] = ()
    """The queues this route is judged by; AMQP can't list bindings."""
    strategy: Strategy | None = None
    """Which of the queues rules. None: `min` if all say what leads to them, else `sum`."""
    group_min: Annotated[Whole, Field(ge=0, le=1_000)] = 0
    """With fewer queues than this that have consumers, nothing is sent; with `min` and `tagged`."""
    untether: Switch = False
    """Let a queue that is long stuck rest, instead of ruling for ever; with `min` and `tagged`."""
    policy: Policy = "class_budget"
    law: Annotated[str, Field(pattern=NAME_PATTERN), Allowed(LAW_FORM)] = DEFAULT_LAW
    """`class_budget`: what finds the rates; one that comes with Tidegate, or that an installed package brings."""
    shadow: Switch = False
    """The policy decides and records everything and holds nothing back; window, cap and what people ask stand."""
    cap: Cap | None = None
    """A hard limit beside the policy; None: none."""
    scaling: Scaling | None = None
    """Whether to tell how many consumers are wanted; None: not."""
    message_priority: MessagePriority = "class"
    """The AMQP property `priority`: by the rank of the class, none, or a number for each class that shall have one."""
    origin: Origin = Origin.ID
    """What a message says of where its record comes from: `id` its message id, `full` headers, too, which cost the
    broker up to a quarter of its rate for short events. Dead letters are always `full`."""
    key: Literal["header", "none"] = "header"
    """Whether the record's key travels as a header."""
    in_flight_events: Annotated[Count, Field(le=100_000)] | None = None
    """Events sent and not yet confirmed, always as many; None: as many as confirms show to help.

    Under `per_type` None is 200: its detector judges the latency of confirms by a fixed threshold, and a window that
    adapts takes as much latency as helps.
    """
    in_flight_bound: Annotated[Count, Field(le=100_000)] = 4_000
    """... but no more. Larger: more throughput over very long links, more duplicates after a crash."""
    in_flight_bytes: Annotated[Bytes, Field(ge=1, le=16 * 1024**3)] = 8 * 1024**2
    """... and their bytes."""
    declare: Switch = False
    """Declare the exchange (topic, durable) and the queues (durable, bound with `#`) at start."""

    @model_validator(mode="after")
    def _each_queue_is_named_once(self) -> Self:
        names = self.queue_names
        twice = sorted({queue for queue in names if names.count(queue) > 1})
        if twice:
            raise ValueError(f"queues: {twice[0]} stands there twice; its messages would count twice")
        return self

    @model_validator(mode="after")
    def _has_one_window(self) -> Self:
        if not self.adapts and "in_flight_bound" in self.model_fields_set:
            fixed = "in_flight_events fixes it" if self.in_flight_events else "under `policy: per_type` it is fixed"
            raise ValueError(f"in_flight_bound: bounds a window that adapts, and {fixed}; leave one of them out")
        return self

    @model_validator(mode="after")
    def _law_is_asked(self) -> Self:
        if self.law != DEFAULT_LAW and self.policy != "class_budget":
            raise ValueError("law: belongs to `policy: class_budget`; the other policies ask none")
        return self

    @model_validator(mode="after")
    def _can_be_shadow(self) -> Self:
        if self.shadow and self.policy == "static":
            raise ValueError("shadow: `policy: static` decides nothing that could be watched; name another policy")
        if self.shadow and self.scaling is not None:
            raise ValueError(
                "shadow: the backlog then stands in the queues and not in the log, so too few consumers would be "
                "wanted; leave `scaling` out until shadow ends"
            )
        return self

    @model_validator(mode="after")
    def _can_be_scaled(self) -> Self:
        if self.scaling is not None and (self.policy != "class_budget" or not self.queues):
            raise ValueError(
                "scaling: needs `policy: class_budget` and the route's queues: what is taken is seen there"
            )
        return self

    @model_validator(mode="after")
    def _can_be_judged_so(self) -> Self:
        if self.strategy == "tagged" and not self.tagged:
            raise ValueError("strategy tagged: no queue has a tag; give one `tag: true`")
        if self.judged_by not in {"min", "tagged"} and (self.group_min or self.untether):
            raise ValueError("group_min and untether belong to strategy min or tagged")
        if self.group_min > len(self.queues):
            raise ValueError(f"group_min: {self.group_min} of {len(self.queues)} queues can never be there")
        return self

    def steered_by(self, policy: Policy) -> Self:
        """Return the route under another policy, with the law and the window that it has there."""
        return self if policy == self.policy else self.model_copy(update={"policy": policy})

    @property
    def adapts(self) -> bool:
        """Whether the window in events follows what confirms show."""
        return self.in_flight_events is None and self.policy != "per_type"

    @property
    def most_in_flight(self) -> int:
        """Events sent and not yet confirmed at most."""
        return self.in_flight_bound if self.adapts else self.in_flight_events or FIXED_WINDOW

    @property
    def judged(self) -> tuple[JudgedQueue, ...]:
        """The queues, each with what leads to it."""
        return tuple(JudgedQueue(name=queue) if isinstance(queue, str) else queue for queue in self.queues)

    @property
    def queue_names(self) -> tuple[str, ...]:
        """The queues' names."""
        return tuple(queue if isinstance(queue, str) else queue.name for queue in self.queues)

    @property
    def tagged(self) -> frozenset[str]:
        """The names of the queues with a tag."""
        return frozenset(queue.name for queue in self.judged if queue.tag)

    @property
    def scales_apart(self) -> bool:
        """Whether it is told of each queue how many consumers that wants, and not of all together."""
        return self.scaling is not None and self.judged_by != "sum" and len(self.queues) > 1

    @property
    def judged_by(self) -> Strategy:
        """The strategy in force: without one, queues of which nobody said what leads to them are taken together."""
        if self.strategy is not None:
            return self.strategy
        is_plain = any(isinstance(queue, str) for queue in self.queues)
        return "sum" if is_plain and len(self.queues) > 1 else "min"

    def way(self, event_type: str, routing_key: RoutingKey) -> tuple[str, ...]:
        """Return the queues that events of a type go to; where only their keys decide, all that those may lead to."""
        return tuple(queue.name for queue in self.judged if queue.takes(event_type, routing_key) is not False)

    def priority_of(self, name: str, *, below: int, alone: bool = False) -> int | None:
        """Return the AMQP priority of a class that has so many classes below it; None: its messages have none.

        `alone`: every event type is of this class, so that its rank tells no queue anything.
        """
        if self.message_priority == "none" or (alone and self.origin is Origin.ID and not self.priorities):
            return None
        return min(MOST_PRIORITY, below) if self.message_priority == "class" else self.priorities.get(name)

    @property
    def priorities(self) -> dict[str, int]:
        """The AMQP priorities of classes that have one of their own."""
        return self.message_priority if isinstance(self.message_priority, dict) else {}

    @model_validator(mode="after")
    def _can_be_declared(self) -> Self:
        if self.declare and any(queue.event_types for queue in self.judged):
            raise ValueError("declare: bind by routing_keys; which events of a type come, no binding knows")
        if self.declare and not self.exchange:
            raise ValueError("the default exchange can't be declared; name an exchange or set `declare: false`")
        return self


class DeadLetter(Part):
    """Where undeliverable events go, confirmed and persistent, with the reason in their headers."""

    exchange: Annotated[str, Field(max_length=255)] = ""
    routing_key: ShortText
