"""The bounds of every buffer and wait (design decision 7)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from proxy.settings.parts import Bytes, Count, Number, Part, Seconds, Whole, size_text


class Limits(Part):
    """Bounds for the whole process; a route's own in-flight bounds stand with the route."""

    event_bytes: Annotated[Bytes, Field(ge=1, le=128 * 1024**2)] = 1024**2
    """A larger event (key, value and headers) is dead-lettered as `too_large`."""
    headers: Annotated[Count, Field(le=10_000)] = 64
    """An event with more headers is dead-lettered as `too_many_headers`."""
    inbox_events: Annotated[Whole, Field(ge=2, le=1_000_000)] = 2_000
    """An event type's partitions are paused at this many waiting events. Larger: memory; smaller: more pauses."""
    inbox_bytes: Annotated[Bytes, Field(ge=1, le=16 * 1024**3)] = 4 * 1024**2
    """... or at this many waiting bytes."""
    inbox_low: Annotated[Number, Field(ge=0.01, le=0.99)] = 0.5
    """They are resumed when the inbox has fallen to this share of both bounds. Larger: more switching."""
    inboxes_bytes: Annotated[Bytes, Field(ge=1, le=1024**4)] = 256 * 1024**2
    """Budget over all inboxes and what routes were handed and have not written; each event counts 272 bytes more.

    Beyond 80 % of it the lowest classes are paused first, but no event type that holds no more than its even part of
    half of it.
    """
    uncommitted_events: Annotated[Count, Field(le=10_000_000)] = 5_000
    """Events of one partition sent ahead of its committed position: the bound on duplicates per fault and partition."""
    confirm_deadline: Annotated[Seconds, Field(ge=0.1, le=600)] = 30.0
    """A publication unconfirmed for longer has an unknown outcome, and its connection is given up; what is still on its
    way there has as long again whenever 16 KiB of it have arrived."""
    connect_deadline: Annotated[Seconds, Field(ge=0.1, le=600)] = 10.0
    """One attempt to connect, login included; the first six in a row have less, see `publish_lane.patience`."""
    write_deadline: Annotated[Seconds, Field(ge=0.1, le=600)] = 10.0
    """A write that the broker's socket does not take for this long ends the connection, unless it is blocked."""
    drain_deadline: Annotated[Seconds, Field(ge=0, le=600)] = 20.0
    """How long a stop waits for confirms of what was sent. Smaller: quicker stop, more duplicates after it."""
    commit_interval: Annotated[Seconds, Field(ge=0.05, le=10)] = 0.5
    """The longest that confirmed positions wait for their commit; much at stake is committed at once.

    Larger: less work for the log, more duplicates after a crash of a slow flow.
    """
    commit_deadline: Annotated[Seconds, Field(ge=0.1, le=600)] = 5.0
    """One commit; then it is tried again at the next interval."""

    @model_validator(mode="after")
    def _an_event_fits(self) -> Self:
        if not self.event_bytes <= self.inbox_bytes <= self.inboxes_bytes:
            raise ValueError(
                f"event_bytes ({size_text(self.event_bytes)}) <= inbox_bytes ({size_text(self.inbox_bytes)}) <= "
                f"inboxes_bytes ({size_text(self.inboxes_bytes)}) must hold: an event that is allowed must fit"
            )
        return self
