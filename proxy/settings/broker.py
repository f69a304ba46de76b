"""The broker: hosts, logins, how its queues are watched."""

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from proxy.settings.parts import (
    Count,
    FilePath,
    Host,
    Part,
    Seconds,
    ShortText,
    WebAddress,
)
from proxy.settings.secrets import Secret, Token


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

    url: WebAddress
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
    """How often queues in use are asked for their depth, on a connection of its own; each half second while nothing is
    sent and nothing waits. Larger: a queue that fills is noticed later; smaller: more CPU."""
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
