"""Where events go: hosts, routes, the dead-letter destination."""

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from proxy.settings.parts import Allowed, Bytes, Count, FilePath, Host, Number, Part, Seconds, ShortText, Text
from proxy.settings.secrets import Secret, Token

Policy = Literal["static", "per_type", "class_budget"]
"""Congestion control of a route: `class_budget` a rate per class, found from the queues' delay; `per_type` the seed's
AIMD, a batch size per event type; `static` none (the windows remain)."""


class BrokerTls(Part):
    """TLS to the broker; present means used."""

    ca_file: FilePath | None = None
    """PEM file of the authorities to trust; the system's if not given."""
    certificate_file: FilePath | None = None
    key_file: FilePath | None = None

    @model_validator(mode="after")
    def _certificate_is_complete(self) -> Self:
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file go together")
        return self


class Management(Part):
    """RabbitMQ's management API, whose statistics show what consumers hold unacknowledged; present means used."""

    url: Annotated[
        str,
        Field(pattern=r"^https?://[^\s/?#@]+(/[^\s?#@]*)?$", max_length=1024),
        Allowed("http://host:port or https://host:port, perhaps with a path"),
    ]
    """With https the certificate must be one that `broker.tls` trusts, or the system if there is no `broker.tls`."""
    username: ShortText | None = None
    """The broker's, or its token, if not given; needs the tag `management`."""
    password: Secret | None = None
    interval: Annotated[Seconds, Field(ge=1, le=300)] = 1.0
    """Larger: fewer requests, and stalled consumers are noticed later; RabbitMQ's own figures take up to 14 s."""

    @model_validator(mode="after")
    def _login_is_complete(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password go together; without them those of the broker are used")
        return self


class BrokerSettings(Part):
    """The RabbitMQ cluster."""

    hosts: Annotated[list[Host], Field(min_length=1, max_length=64)]
    """`host:port`, tried in turn."""
    mechanism: Literal["PLAIN", "EXTERNAL"] = "PLAIN"
    """How to log in: by username and password or token, or by the certificate of `tls`."""
    username: ShortText = "guest"
    password: Secret = Secret(SecretStr("guest"))
    token: Token | None = None
    """OAuth2: sent in place of a password, and again on living connections before it expires."""
    virtual_host: ShortText = "/"
    tls: BrokerTls | None = None
    heartbeat: Annotated[Seconds, Field(ge=1, le=60)] = 5.0
    """A publishing connection over which nothing comes for 1.2 of these is given up."""
    backoff: Annotated[Seconds, Field(ge=0.01, le=60)] = 0.2
    """Pause before the second attempt to connect; it doubles up to `backoff_limit`."""
    backoff_limit: Annotated[Seconds, Field(ge=0.01, le=600)] = 2.0
    """Larger: a returning broker is found later; smaller: more attempts against one that is down."""
    depth_interval: Annotated[Seconds, Field(ge=0.01, le=60)] = 0.05
    """How often queues in use are asked for their depth, on a connection of its own. Larger: a queue that fills is
    noticed later; smaller: more CPU."""
    depth_polls: Annotated[Count, Field(le=100_000)] = 1_000
    """Questions for a depth a second, all queues together; beyond it idle ones are asked less often.
    Larger: idle queues that fill are noticed sooner; smaller: less CPU with many queues."""
    management: Management | None = None

    @model_validator(mode="after")
    def _login_is_one(self) -> Self:
        given = sorted(self.model_fields_set & {"username", "password", "token"})
        if self.mechanism == "EXTERNAL":
            if self.tls is None or self.tls.certificate_file is None:
                raise ValueError("mechanism EXTERNAL logs in by tls.certificate_file, which is missing")
            if given:
                raise ValueError(f"mechanism EXTERNAL sends no {given[0]}; leave it out")
            if self.management is not None and self.management.username is None:
                raise ValueError("with mechanism EXTERNAL management needs a username and a password of its own")
        elif self.token is not None and "password" in given:
            raise ValueError("give password or token, not both")
        return self

    @model_validator(mode="after")
    def _backoff_is_below_its_limit(self) -> Self:
        if self.backoff > self.backoff_limit:
            raise ValueError("backoff <= backoff_limit must hold")
        return self


class Cap(Part):
    """What a route may publish at most, in whatever mood its consumers are: exactly one of events and bytes."""

    events: Annotated[Number, Field(ge=0.1, le=10_000_000)] | None = None
    """Events a second."""
    bytes: Annotated[Bytes, Field(ge=1, le=1024**4)] | None = None
    """Bytes (key, value, headers) a second."""
    burst: Annotated[Seconds, Field(ge=0.01, le=60)] = 0.1
    """So much of the rate may be saved up, and so much the highest class may overdraw it. Larger: burstier."""
    strict: bool = False
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
    """Tell how many consumers are wanted, for whoever starts and ends them."""

    consumers_per_process: Annotated[Count, Field(le=10_000)] = 1
    """Consumers that come and go together; what is wanted is a multiple."""
    work_off: Annotated[Seconds, Field(ge=1, le=86_400)] = 60.0
    """In so many seconds a backlog should be worked off. Smaller: more consumers for a shorter time."""


class Route(Part):
    """One way into the broker, with a publishing connection and an in-flight window of its own."""

    exchange: Annotated[str, Field(max_length=255)]
    """`""` is the default exchange: the routing key names the queue."""
    queues: Annotated[tuple[ShortText, ...], Field(max_length=1_000)] = ()
    """The queues this route is judged by; AMQP can't list bindings."""
    policy: Policy = "class_budget"
    cap: Cap | None = None
    """A hard limit beside the policy; None: none."""
    scaling: Scaling | None = None
    """Whether to tell how many consumers are wanted; None: not."""
    in_flight_events: Annotated[Count, Field(le=100_000)] = 200
    """Events sent and not yet confirmed. Larger: more throughput over long links, more latency when saturated."""
    in_flight_bytes: Annotated[Bytes, Field(ge=1, le=16 * 1024**3)] = 8 * 1024**2
    """... and their bytes."""
    declare: bool = False
    """Declare the exchange (topic, durable) and the queues (durable, bound with `#`) at start."""

    @model_validator(mode="after")
    def _each_queue_is_named_once(self) -> Self:
        twice = sorted({queue for queue in self.queues if self.queues.count(queue) > 1})
        if twice:
            raise ValueError(f"queues: {twice[0]} stands there twice; its messages would count twice")
        return self

    @model_validator(mode="after")
    def _can_be_scaled(self) -> Self:
        if self.scaling is not None and (self.policy != "class_budget" or not self.queues):
            raise ValueError(
                "scaling: needs `policy: class_budget` and the route's queues: what is taken is seen there"
            )
        return self

    @model_validator(mode="after")
    def _can_be_declared(self) -> Self:
        if self.declare and not self.exchange:
            raise ValueError("the default exchange can't be declared; name an exchange or set `declare: false`")
        return self


class DeadLetter(Part):
    """Where undeliverable events go, confirmed and persistent, with the reason in their headers."""

    exchange: Annotated[str, Field(max_length=255)] = ""
    routing_key: ShortText


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
