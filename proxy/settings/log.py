"""Where events come from."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from proxy.settings.parts import Bytes, Part, Seconds


class LogSecurity(Part):
    """How to log in to the log."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    username: str | None = None
    password: SecretStr | None = None
    ca_file: str | None = None
    """PEM file of the authorities to trust; the system's if not given."""
    certificate_file: str | None = None
    key_file: str | None = None

    @model_validator(mode="after")
    def _login_is_complete(self) -> Self:
        if self.protocol.startswith("SASL") and (self.username is None or self.password is None):
            raise ValueError(f"{self.protocol} needs username and password")
        return self


class LogSettings(Part):
    """The Kafka cluster and the consumer group."""

    hosts: Annotated[list[str], Field(min_length=1)]
    """`host:port` of some brokers of the cluster."""
    group: Annotated[str, Field(min_length=1)]
    """Consumer group; replicas of one Tidegate share it."""
    group_instance_id: str | None = None
    """Static membership: a replica that returns under the same id within the session timeout causes no rebalance."""
    start: Literal["earliest", "latest", "timestamp"] = "earliest"
    """Where a partition begins that the group has never committed."""
    start_timestamp: datetime | None = None
    """With `start: timestamp`."""
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_committed"
    session_timeout: Annotated[Seconds, Field(ge=1, le=300)] = 6.0
    """A replica that dies is replaced after this long."""
    metadata_age: Annotated[Seconds, Field(ge=0.1)] = 5.0
    """How soon moved leaders are noticed."""
    fetch_wait: Annotated[Seconds, Field(ge=0, le=5)] = 0.05
    """How long the log may hold back an empty answer; smaller: quicker resume, more CPU."""
    fetch_bytes: Annotated[Bytes, Field(ge=1024)] = 4 * 1024**2
    """One answer of one broker at most; the bound of "one fetch" beyond an inbox."""
    topic_check_interval: Annotated[Seconds, Field(ge=1)] = 60.0
    """How often missing, refused or newly matching topics are looked at again."""
    security: LogSecurity = LogSecurity()

    @model_validator(mode="after")
    def _timestamp_is_given(self) -> Self:
        if (self.start == "timestamp") != (self.start_timestamp is not None):
            raise ValueError("start_timestamp goes with `start: timestamp`, and only with it")
        return self
