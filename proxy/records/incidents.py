"""What went wrong and is to be found again; a constructor for each name, so that none lacks what it must tell."""

from enum import StrEnum
from typing import Annotated, ClassVar

from proxy.records.declaration import ADDED, Record


class IncidentName(StrEnum):
    """What happened."""

    TRUNCATED = "truncated"
    """The log dropped `count` records of a partition unread at most, positions `first` to `end`."""
    TYPE_STOPPED = "type_stopped"
    """An event type has an event that can't be delivered and no destination for it; it sends nothing more."""
    DEAD_LETTER_REFUSED = "dead_letter_refused"
    """A dead letter was refused by its destination; it is tried again."""
    ASSIGNMENT_LOST = "assignment_lost"
    """The group has fenced this replica."""


class Incident(Record):
    """As it happens."""

    KIND: ClassVar[str] = "incident"

    name: Annotated[str, "see below"]
    route: Annotated[str | None, "that it concerns"] = None
    type: Annotated[str | None, "event type that it concerns"] = None
    topic: Annotated[str | None, "that it concerns"] = None
    partition: Annotated[int | None, "that it concerns"] = None
    count: Annotated[int | None, "how many"] = None
    detail: Annotated[str | None, "in words"] = None
    first: Annotated[int | None, "first position concerned", ADDED] = None
    end: Annotated[int | None, "position behind the last one concerned", ADDED] = None
    topic_id: Annotated[str | None, "of the topic that the positions belong to", ADDED] = None
    group: Annotated[str | None, "consumer group that did not read them", ADDED] = None


def truncated(
    topic: str, partition: int, *, at_most: int, first: int, end: int, topic_id: str | None, group: str | None
) -> Incident:
    """Return `TRUNCATED`; the positions are `first` to `end - 1`, of which at most so many held records."""
    return Incident(
        name=IncidentName.TRUNCATED,
        topic=topic,
        partition=partition,
        count=at_most,
        first=first,
        end=end,
        topic_id=topic_id,
        group=group,
        detail="at most so many: gaps in the log count, too",
    )


def type_stopped(event_type: str, topic: str, partition: int, *, first: int, detail: str) -> Incident:
    """Return `TYPE_STOPPED`; `first` is the position of the event."""
    return Incident(
        name=IncidentName.TYPE_STOPPED,
        type=event_type,
        topic=topic,
        partition=partition,
        first=first,
        end=first + 1,
        detail=detail,
    )


def dead_letter_refused(event_type: str, topic: str, partition: int, *, first: int, detail: str) -> Incident:
    """Return `DEAD_LETTER_REFUSED`; `first` is the position of the event."""
    return Incident(
        name=IncidentName.DEAD_LETTER_REFUSED,
        type=event_type,
        topic=topic,
        partition=partition,
        first=first,
        end=first + 1,
        detail=detail,
    )


def assignment_lost(detail: str) -> Incident:
    """Return `ASSIGNMENT_LOST`."""
    return Incident(name=IncidentName.ASSIGNMENT_LOST, detail=detail)
