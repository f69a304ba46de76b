"""Where events come from."""

import hashlib
import re
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from proxy.settings.nakadi import NakadiSettings
from proxy.settings.parts import Bytes, FilePath, Host, Part, Seconds, Text
from proxy.settings.secrets import Secret, Token


class LogSecurity(Part):
    """How to log in to the log."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = "PLAIN"
    username: Text | None = None
    password: Secret | None = None
    token: Token | None = None
    """With OAUTHBEARER, in place of username and password."""
    ca_file: FilePath | None = None
    """PEM file of the authorities to trust; the system's if not given."""
    certificate_file: FilePath | None = None
    key_file: FilePath | None = None

    @property
    def sends_token(self) -> bool:
        """Whether this logs in by a token."""
        return self.protocol.startswith("SASL") and self.mechanism == "OAUTHBEARER"

    @model_validator(mode="after")
    def _login_is_complete(self) -> Self:
        login = [self.username is not None, self.password is not None]
        if self.sends_token:
            if any(login) or self.token is None:
                raise ValueError("mechanism OAUTHBEARER needs token, and neither username nor password")
        elif self.token is not None:
            raise ValueError("only mechanism OAUTHBEARER with SASL_SSL or SASL_PLAINTEXT sends a token")
        elif self.protocol.startswith("SASL") and not all(login):
            raise ValueError(f"protocol {self.protocol} needs username and password")
        elif not self.protocol.startswith("SASL") and any(login):
            raise ValueError(
                f"protocol {self.protocol} sends no username and password; take SASL_SSL or SASL_PLAINTEXT"
            )
        return self

    @model_validator(mode="after")
    def _files_are_used(self) -> Self:
        files = (self.ca_file, self.certificate_file, self.key_file)
        if not self.protocol.endswith("SSL") and any(file is not None for file in files):
            raise ValueError(f"protocol {self.protocol} uses no certificates; take SSL or SASL_SSL")
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file go together")
        return self


_OF_BOTH = frozenset(
    {
        "nakadi",
        "start",
        "session_timeout",
        "answer_deadline",
        "fetch_bytes",
        "batch_bytes",
        "topic_check_interval",
    }
)
"""What is said of Nakadi, too."""
_SESSION_SHARE = 4
"""How many sessions Nakadi's commit timeout must be: a lease, a drain and a last commit have the last third of it."""

_IN_A_TOPIC = re.compile(r"[A-Za-z0-9._-]{0,240}")
"""What a group may be for `GROUP.tidegate` to be a topic, of 249 characters at most."""
_NOT_IN_A_TOPIC = re.compile(r"[^A-Za-z0-9._-]")


class LogSettings(Part):
    """The Kafka cluster and the consumer group; or Nakadi, and what both have in common."""

    hosts: Annotated[tuple[Host, ...], Field(min_length=1, max_length=64)] = ()
    """`host:port` of some brokers of the cluster."""
    group: Annotated[str, Field(min_length=1, max_length=249)] = ""
    """Consumer group; replicas of one Tidegate share it."""
    group_instance_id: Annotated[str, Field(min_length=1, max_length=249)] | None = None
    """Static membership: a replica that returns under the same id within the session timeout causes no rebalance."""
    client_rack: Annotated[str, Field(min_length=1, max_length=249)] | None = None
    """Where this replica runs; brokers that choose replicas by rack let it read from one nearby."""
    start: Literal["earliest", "latest", "timestamp"] = "earliest"
    """Where a partition begins that the group has never committed."""
    start_timestamp: AwareDatetime | None = None
    """With `start: timestamp`."""
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_committed"
    session_timeout: Annotated[Seconds, Field(ge=1, le=300)] = 6.0
    """A replica that dies is replaced after this long. Larger: fewer needless rebalances; smaller: a shorter gap.
    With Nakadi at most a quarter of `commit_timeout`, which it is if that is less and this is not given."""
    metadata_age: Annotated[Seconds, Field(ge=0.1, le=3600)] = 5.0
    """How soon moved leaders are noticed. Larger: fewer requests; smaller: a shorter stall after a broker is lost."""
    answer_deadline: Annotated[Seconds, Field(ge=0.1, le=60)] = 2.0
    """A broker that leaves a request unanswered for longer is silent. Larger: slow networks; smaller: shorter stall."""
    fetch_wait: Annotated[Seconds, Field(ge=0, le=5)] = 0.05
    """How long the log may hold back an empty answer. Larger: less CPU; smaller: quicker resume."""
    fetch_bytes: Annotated[Bytes, Field(ge=1024, le=1024**3)] = 4 * 1024**2
    """One answer of one broker at most, the "one fetch" beyond an inbox. Larger: throughput; smaller: memory."""
    batch_bytes: Annotated[Bytes, Field(ge=1024**2, le=1024**3)] = 64 * 1024**2
    """A batch that takes more, decompressed, is not read; its partition stands still. Larger: memory, three times as
    much: what lies open or is kept of paused partitions, one that is being opened, and its copy."""
    topic_check_interval: Annotated[Seconds, Field(ge=1, le=86_400)] = 60.0
    """How often missing, refused or newly matching topics are looked at again."""
    security: LogSecurity = LogSecurity()
    nakadi: NakadiSettings | None = None
    """In place of `hosts`, `group` and whatever else is Kafka's."""

    @property
    def board_topic(self) -> str:
        """Name of the topic in which the group keeps what people have asked for.

        A group's name may hold what a topic's may not: that is replaced, and a digest keeps such groups apart.
        """
        if _IN_A_TOPIC.fullmatch(self.group):
            return f"{self.group}.tidegate"
        digest = hashlib.sha256(self.group.encode()).hexdigest()[:12]
        return f"{_NOT_IN_A_TOPIC.sub('_', self.group)[:225]}-{digest}.tidegate"

    @property
    def _is_nakadi(self) -> bool:
        """Whether `nakadi` is given, be it that something in it is wrong."""
        return "nakadi" in self.model_fields_set and getattr(self, "nakadi", True) is not None

    @model_validator(mode="after")
    def _a_log_is_given(self) -> Self:
        missing = [] if self._is_nakadi else [key for key in ("hosts", "group") if not getattr(self, key)]
        if missing:
            raise ValueError(f"{' and '.join(missing)} must be given, or nakadi in place of hosts and group")
        return self

    @model_validator(mode="after")
    def _it_is_one_log(self) -> Self:
        kafka = [key for key in type(self).model_fields if key in self.model_fields_set - _OF_BOTH]
        if self._is_nakadi and kafka:
            raise ValueError(f"nakadi stands in place of Kafka, whose {', '.join(kafka)} must be left out")
        return self

    @model_validator(mode="after")
    def _timestamp_is_given(self) -> Self:
        if self._is_nakadi:
            if self.start == "timestamp":
                raise ValueError("Nakadi can't begin at a time; allowed: start: earliest, start: latest")
        elif (self.start == "timestamp") != (self.start_timestamp is not None):
            raise ValueError("start_timestamp goes with `start: timestamp`, and only with it")
        return self

    @model_validator(mode="after")
    def _session_fits(self) -> Self:
        if self.nakadi is None:
            return self
        longest = self.nakadi.commit_timeout / _SESSION_SHARE
        if "session_timeout" not in self.model_fields_set:
            object.__setattr__(self, "session_timeout", min(self.session_timeout, longest))
        elif self.session_timeout > longest:
            raise ValueError(f"session_timeout must be a quarter of nakadi.commit_timeout at most: {longest:g}s")
        return self

    @model_validator(mode="after")
    def _group_is_nakadis(self) -> Self:
        if self.nakadi is not None:
            object.__setattr__(self, "group", self.nakadi.consumer_group)
        return self
