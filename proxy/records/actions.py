"""What people do to the bridge, so that the ledger can account for it.

Declared ahead of what writes them.
"""

from typing import Annotated, ClassVar

from proxy.records.declaration import ADDED, Record


class Action(Record):
    """What all have in common."""

    by: Annotated[str, "who asked for it"]
    why: Annotated[str | None, "in words"]
    type: Annotated[str, "event type"]


class Moved(Action):
    """What happens to a range of one partition."""

    topic: Annotated[str, "that the positions belong to"]
    topic_id: Annotated[str, "of that topic; empty if the log tells none"]
    partition: Annotated[int, "its number"]
    first: Annotated[int, "where the range begins"]
    end: Annotated[int, "where it ends"]
    group: Annotated[str | None, "consumer group for which it is done", ADDED] = None


class Intervention(Record):
    """What a person has asked of the group, by each replica: when it begins to obey, and when it ends to."""

    KIND: ClassVar[str] = "intervention"

    id: Annotated[str, "the same in all replicas"]
    mode: Annotated[str, "`pause`, `discard`, `cap`, `policy`, or `run`, which ends others"]
    types: Annotated[list[str], "event types named"]
    classes: Annotated[list[str], "classes named"]
    by: Annotated[str, "who asked for it"]
    why: Annotated[str | None, "in words"]
    until_ms: Annotated[int, "milliseconds since 1970 at which it ends"]
    phase: Annotated[str, "`begun` or `ended`"]
    ended_by: Annotated[
        str | None, "who ended it before its time, or whose later one took its place; null: nobody has", ADDED
    ] = None
    ended_why: Annotated[str | None, "in words", ADDED] = None
    rate: Annotated[float | None, "of a cap: events a second that all it names may send, in the group", ADDED] = None
    routes: Annotated[list[str] | None, "routes named, of a policy or of a `run` that ends one; null: none", ADDED] = (
        None
    )
    policy: Annotated[str | None, "of a policy: which the routes have meanwhile", ADDED] = None


class Skip(Moved):
    """Each partition whose cursor was moved forward: the range is not read."""

    KIND: ClassVar[str] = "skip"

    count: Annotated[int | None, "events in it; null: not counted"]


class Rewind(Moved):
    """Each partition whose cursor was moved back: the range is read again."""

    KIND: ClassVar[str] = "rewind"

    count: Annotated[int | None, "events in it; null: not counted"]


class Discard(Moved):
    """Each partition of a type in mode `discard`, every `type_interval`: the range was read, dropped and committed."""

    KIND: ClassVar[str] = "discard"

    count: Annotated[int, "events in it"]


class Redrive(Moved):
    """Each range of which dead letters were sent again, when the broker has confirmed them."""

    KIND: ClassVar[str] = "redrive"

    reason: Annotated[str, "of the dead letters"]
    count: Annotated[int, "events"]
    attempt: Annotated[int, "how often these have been sent again, this time included"]


class Shadow(Action):
    """Each event type of a route with `shadow: true` that sent something or would wait, every `type_interval`."""

    KIND: ClassVar[str] = "shadow"

    interval_s: Annotated[float, "seconds since the last one"]
    route: Annotated[str, "that it is sent over"]
    sent: Annotated[int, "events"]
    held: Annotated[int, "of these, would have waited for longer than 10 ms"]
    class_: Annotated[str | None, "its class", ADDED] = None
    passed: Annotated[int | None, "events that would have gone, of whatever was sent when", ADDED] = None
    waiting: Annotated[int | None, "events that would wait in the log now", ADDED] = None
    longest_s: Annotated[float | None, "seconds that any of them has waited, or waits by now", ADDED] = None


class Retention(Record):
    """Each partition that the log may drop unread soon, and whatever is done about it."""

    KIND: ClassVar[str] = "retention"

    type: Annotated[str, "event type"]
    topic: Annotated[str, "that it is read from"]
    partition: Annotated[int, "its number"]
    left_s: Annotated[float, "seconds until the next unread record is dropped, at the present rate"]
    lag: Annotated[int | None, "events not yet done with"]
    lifted_to: Annotated[str | None, "class it is treated as for the time being"]
    phase: Annotated[str | None, "`begun`, `holds` (once a minute) or `ended`: it is far from its end again", ADDED] = (
        None
    )
    full_s: Annotated[float | None, "seconds that the log gives a new event; null: without end", ADDED] = None


class Scaling(Record):
    """Each route, or each of its queues, when the number of consumers wanted changes."""

    KIND: ClassVar[str] = "scaling"

    route: Annotated[str, "whose consumers are meant"]
    queue: Annotated[str | None, "the queue whose consumers are meant; absent: all of the route"]
    wanted: Annotated[int, "consumers"]
    consumers: Annotated[int | None, "there are"]
    drain_rate: Annotated[float | None, "events of cost 1 a second that they take"]
    demand_rate: Annotated[float | None, "events of cost 1 a second that come"]
    why: Annotated[str, "in words"]
