"""Where events go: hosts, routes, the dead-letter destination."""

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from proxy.settings.parts import Bytes, Count, Part, Seconds

Policy = Literal["static", "per_type"]
"""Congestion control of a route: `static` switches it off (the windows remain), `per_type` is the seed's AIMD."""


class BrokerTls(Part):
    """TLS to the broker; present means used."""

    ca_file: str | None = None
    """PEM file of the authorities to trust; the system's if not given."""
    certificate_file: str | None = None
    key_file: str | None = None


class BrokerSettings(Part):
    """The RabbitMQ cluster."""

    hosts: Annotated[list[str], Field(min_length=1)]
    """`host:port`, tried in turn."""
    username: str = "guest"
    password: SecretStr = SecretStr("guest")
    virtual_host: str = "/"
    tls: BrokerTls | None = None
    heartbeat: Annotated[Seconds, Field(ge=1, le=60)] = 5.0
    """A silent connection is given up after about three of these."""
    backoff: Annotated[Seconds, Field(gt=0)] = 0.2
    """Pause before the second attempt to connect; it doubles up to `backoff_limit`."""
    backoff_limit: Annotated[Seconds, Field(gt=0)] = 2.0
    depth_interval: Annotated[Seconds, Field(ge=0.01)] = 0.1
    """How often the depth of the routes' queues is asked, on a connection of its own."""


class Route(Part):
    """One way into the broker, with a publishing connection and an in-flight window of its own."""

    exchange: Annotated[str, Field(max_length=255)]
    """`""` is the default exchange: the routing key names the queue."""
    queues: tuple[Annotated[str, Field(min_length=1, max_length=255)], ...] = ()
    """The queues this route is judged by; AMQP can't list bindings."""
    policy: Policy = "per_type"
    in_flight_events: Count = 200
    """Events sent and not yet confirmed. Larger: more throughput over long links, more latency when saturated."""
    in_flight_bytes: Annotated[Bytes, Field(ge=1)] = 8 * 1024**2
    declare: bool = False
    """Declare the exchange (topic, durable) and the queues (durable, bound with `#`) at start."""


class DeadLetter(Part):
    """Where undeliverable events go, confirmed and persistent, with the reason in their headers."""

    exchange: Annotated[str, Field(max_length=255)] = ""
    routing_key: Annotated[str, Field(min_length=1, max_length=255)]


class RoutingKey(Part):
    """What an event is routed by: exactly one of the three."""

    constant: Annotated[str, Field(max_length=255)] | None = None
    header: Annotated[str, Field(min_length=1)] | None = None
    """Name of the log header whose value is the routing key; an event without it is undeliverable (`bad_property`)."""
    key: Literal[True] | None = None
    """The record's key, as UTF-8; an event without one is routed by the empty key."""

    @model_validator(mode="after")
    def _is_exactly_one(self) -> Self:
        if sum(choice is not None for choice in (self.constant, self.header, self.key)) != 1:
            raise ValueError("give exactly one of constant, header, key")
        return self
