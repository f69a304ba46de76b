"""What Tidegate writes and answers beside the data: metric log and admin address."""

import ipaddress
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from proxy.settings.parts import Bytes, FilePath, Listen, Part, Seconds, Whole, split_host
from proxy.settings.secrets import BEARER_FORM, Secret, fits_bearer


class MetricLogSettings(Part):
    """JSON Lines for the reports; the log never harms the bridge."""

    folder: FilePath | None = None
    """Where the files go; None writes none."""
    file_bytes: Annotated[Bytes, Field(ge=64 * 1024, le=16 * 1024**3)] = 64 * 1024**2
    """A file is finished, compressed and renamed into place at this size ..."""
    file_age: Annotated[Seconds, Field(ge=1, le=7 * 86_400)] = 3600.0
    """... or at this age."""
    total_bytes: Annotated[Bytes, Field(ge=1024**2, le=100 * 1024**4)] = 2 * 1024**3
    """The oldest finished files are dropped beyond this, and counted."""
    buffer_records: Annotated[Whole, Field(ge=100, le=10_000_000)] = 20_000
    """Records waiting for the disk; beyond it they are dropped, and counted."""
    route_interval: Annotated[Seconds, Field(ge=0.1, le=3600)] = 1.0
    """How often routes and classes are recorded."""
    type_interval: Annotated[Seconds, Field(ge=0.1, le=3600)] = 10.0
    """How often event types are recorded, if something happened."""

    @model_validator(mode="after")
    def _a_file_fits(self) -> Self:
        if self.file_bytes > self.total_bytes:
            raise ValueError("file_bytes <= total_bytes must hold: every file would be dropped when it is finished")
        return self


class AdminTls(Part):
    """TLS of the admin address."""

    certificate_file: FilePath
    """PEM, our own certificate and those between it and the authority; read again when it changes, as the others."""
    key_file: FilePath
    """PEM, without passphrase."""
    client_ca_file: FilePath | None = None
    """PEM, authorities whose client certificates are let in; None: certificates of clients say nothing."""


class AdminSettings(Part):
    """HTTP for probes and metrics."""

    listen: Listen | None = "127.0.0.1:8080"
    """`host:port`, or null for none; port 0 takes a free one."""
    token: Secret | None = None
    """What whoever asks for more than probes must bear; None: no token lets in."""
    tls: AdminTls | None = None
    """None: plain HTTP."""

    @field_validator("token")
    @classmethod
    def _can_be_borne(cls, token: Secret | None) -> Secret | None:
        if token is not None and token.text is not None and not fits_bearer(token.text.get_secret_value()):
            raise ValueError(f"can't be borne; allowed: {BEARER_FORM}")
        return token

    @property
    def is_local(self) -> bool:
        """Whether nobody but this host, or this pod, reaches the address."""
        host = "" if self.listen is None else split_host(self.listen)[0]
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def asks_proof(self) -> bool:
        """Whether there is anything by which somebody could prove who they are."""
        return self.token is not None or (self.tls is not None and self.tls.client_ca_file is not None)
