"""What Tidegate writes and answers beside the data: metric log and admin address."""

from typing import Annotated

from pydantic import Field

from proxy.settings.parts import Bytes, Part, Seconds


class MetricLogSettings(Part):
    """JSON Lines for the reports; the log never harms the bridge."""

    folder: str | None = None
    """Where the files go; None writes none."""
    file_bytes: Annotated[Bytes, Field(ge=64 * 1024)] = 64 * 1024**2
    """A file is finished, compressed and renamed into place at this size ..."""
    file_age: Annotated[Seconds, Field(ge=1)] = 3600.0
    """... or at this age."""
    total_bytes: Annotated[Bytes, Field(ge=1024**2)] = 2 * 1024**3
    """The oldest finished files are dropped beyond this, and counted."""
    buffer_records: Annotated[int, Field(ge=100)] = 20_000
    """Records waiting for the disk; beyond it they are dropped, and counted."""
    route_interval: Annotated[Seconds, Field(ge=0.1)] = 1.0
    """How often routes and classes are recorded."""
    type_interval: Annotated[Seconds, Field(ge=0.1)] = 10.0
    """How often event types are recorded, if something happened."""


class AdminSettings(Part):
    """HTTP for probes and metrics."""

    listen: Annotated[str, Field(pattern=r"^[^:]+:\d{1,5}$")] | None = "127.0.0.1:8080"
    """`host:port`, or null for none; port 0 takes a free one."""
