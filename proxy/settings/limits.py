"""The bounds of every buffer and wait (design decision 7)."""

from typing import Annotated

from pydantic import Field

from proxy.settings.parts import Bytes, Count, Part, Seconds


class Limits(Part):
    """Bounds for the whole process; a route's own in-flight bounds stand with the route."""

    event_bytes: Annotated[Bytes, Field(ge=1)] = 1024**2
    """A larger event (key, value and headers) is dead-lettered as `too_large`."""
    headers: Count = 64
    """An event with more headers is dead-lettered as `too_many_headers`."""
    inbox_events: Annotated[int, Field(ge=2)] = 2_000
    """An event type's partitions are paused at this many waiting events."""
    inbox_bytes: Annotated[Bytes, Field(ge=1)] = 4 * 1024**2
    """... or at this many waiting bytes."""
    inbox_low: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """They are resumed when the inbox has fallen to this share of both bounds."""
    inboxes_bytes: Annotated[Bytes, Field(ge=1)] = 256 * 1024**2
    """Budget over all inboxes; beyond 80 % of it the lowest classes are paused first."""
    uncommitted_events: Count = 5_000
    """Events of one partition sent ahead of its committed position: the bound on duplicates per fault and partition."""
    confirm_deadline: Annotated[Seconds, Field(gt=0)] = 30.0
    """A publication unconfirmed for longer has an unknown outcome, and its connection is given up."""
    connect_deadline: Annotated[Seconds, Field(gt=0)] = 10.0
    """One attempt to connect, login included."""
    write_deadline: Annotated[Seconds, Field(gt=0)] = 10.0
    """A write that the broker's socket does not take for this long ends the connection, unless it is blocked."""
    drain_deadline: Annotated[Seconds, Field(ge=0)] = 20.0
    """How long a stop waits for confirms of what was sent."""
    commit_interval: Annotated[Seconds, Field(ge=0.05, le=10)] = 0.5
    """How often the confirmed positions are committed."""
    commit_deadline: Annotated[Seconds, Field(gt=0)] = 5.0
    """One commit; then it is tried again at the next interval."""
