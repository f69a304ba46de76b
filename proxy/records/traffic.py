"""Processes and intervals: who ran, and what passed in each interval. Every count is of the interval."""

from typing import Annotated, ClassVar

from proxy.records.declaration import ADDED, Buckets, Part, Record


class Layout(Part):
    """Of the buckets."""

    unit: Annotated[str, "of the values"]
    lowest: Annotated[int, "value that is told apart from 0"]
    highest: Annotated[int, "value; greater ones count as this"]
    digits: Annotated[int, "significant decimal digits"]


class RoutePlan(Part):
    """A route as it was set."""

    policy: Annotated[str, "`class_budget`, `per_type` or `static`"]
    queues: Annotated[list[str], "that it is judged by"]


class Slo(Part):
    """What was promised of a class."""

    within_s: Annotated[float, "seconds; a later event missed its target"]
    share: Annotated[float, "of the events judged that must be in time, above 0 and below 1"]
    judges: Annotated[str, "`bridge` (time: event timestamp → confirm) or `consumed` (→ first consumption)"]


class Start(Record):
    """Once, first."""

    KIND: ClassVar[str] = "start"

    version: Annotated[str, "of Tidegate"]
    layout: Annotated[Layout, "of the buckets"]
    classes: Annotated[list[str], "most important first"]
    routes: Annotated[dict[str, RoutePlan], "each route's settings"]
    settings: Annotated[
        str | None,
        "what steers and is set otherwise than by default: JSON, in the form of the settings file; no host, no secret",
        ADDED,
    ] = None
    slos: Annotated[dict[str, Slo] | None, "of each class that something is promised of", ADDED] = None


class SettingsInForce(Record):
    """Whenever others come into force that differ in what `start` tells: all of it as it is from then on."""

    KIND: ClassVar[str] = "settings"

    routes: Annotated[dict[str, RoutePlan], "each route's settings; one that is missing is gone"]
    settings: Annotated[str, "what steers and is set otherwise than by default, as in `start`"]
    slos: Annotated[dict[str, Slo] | None, "of each class that something is promised of"] = None


class RouteInterval(Record):
    """Each route, every `route_interval`."""

    KIND: ClassVar[str] = "route"

    interval_s: Annotated[float, "seconds since the last one"]
    route: Annotated[str, "its name"]
    state: Annotated[str, "of its connection: `connecting`, `open`, `blocked`, `lost`"]
    in_flight: Annotated[int, "written, outcome open, now"]
    confirmed: Annotated[int, "events that the broker took; dead letters are not among them"]
    nacked: Annotated[int, "events that it refused for now"]
    unknown: Annotated[int, "events whose connection was lost or whose answer did not come in time"]
    undeliverable: Annotated[int, "events that it will never take"]
    depth: Annotated[int | None, "messages ready in all its queues"]
    consumers: Annotated[int | None, "of all its queues"]
    queues: Annotated[dict[str, int | None] | None, "each one's depth"]
    publish_us: Annotated[Buckets, "write → confirm"]


class Traffic(Record):
    """What classes and event types have in common."""

    interval_s: Annotated[float, "seconds since the last one"]
    class_: Annotated[str, "its name, or that of the type's class"]
    received: Annotated[int, "events read from the log"]
    received_bytes: Annotated[int, "of these"]
    confirmed: Annotated[int, "events that the broker took; dead letters are not among them"]
    confirmed_bytes: Annotated[int, "of these"]
    nacked: Annotated[int, "publications that the broker refused for now"]
    unknown: Annotated[int, "publications of unknown outcome"]
    dead_lettered: Annotated[dict[str, int], "number for each reason"]
    resent: Annotated[int, "events that have to be sent again"]
    resent_unknown: Annotated[int, "of these, after an unknown outcome; each may be a duplicate"]
    uncommitted: Annotated[
        int,
        "events that the broker has, or may have, whose partition was given away before they were committed; each may "
        "come again",
        ADDED,
    ]
    overtaken: Annotated[int, "confirmed after a later event of their partition"]
    ahead_of_clock: Annotated[
        int, "of `confirmed`, before their own timestamp: a producer's clock is ahead; `bridge_us` has them as 0", ADDED
    ]
    old: Annotated[
        int, "of `confirmed`, those that went behind what is live (`catch_up`); `bridge_us` has them, too", ADDED
    ]
    waiting: Annotated[int, "in the inboxes now"]
    catching_up: Annotated[int, "partitions of which old events wait now", ADDED]
    lag: Annotated[
        int | None,
        "positions in the log not yet done with, of this replica's partitions; gaps of compaction count, and what a "
        "transaction holds back that has not ended",
    ]
    ahead: Annotated[
        int, "events of `lag` that are done with already, behind one that is not: they come again after a stop", ADDED
    ]
    lag_age_s: Annotated[float | None, "age of the oldest event that waits in an inbox"]
    publish_us: Annotated[Buckets, "write → confirm"]
    bridge_us: Annotated[Buckets, "event timestamp → confirm; events without a timestamp are not in it"]


class BatchSizes(Part):
    """Over the event types of a class."""

    sum: Annotated[float, "of all"]
    min: Annotated[float, "smallest"]
    max: Annotated[float, "largest"]
    types: Annotated[int, "how many"]

    @classmethod
    def of(cls, sizes: list[float]) -> "BatchSizes | None":
        """Return what is said of the sizes; None if there are none."""
        return cls(sum=sum(sizes), min=min(sizes), max=max(sizes), types=len(sizes)) if sizes else None


class ClassInterval(Traffic):
    """Each class, every `route_interval`."""

    KIND: ClassVar[str] = "class"

    batch_size: Annotated[BatchSizes | None, "of its types, under `per_type`"]


class TypeInterval(Traffic):
    """Each event type that did something, every `type_interval`."""

    KIND: ClassVar[str] = "type"

    type: Annotated[str, "its name"]
    topic: Annotated[str, "that it is read from"]
    route: Annotated[str, "that it is sent over"]
    batch_size: Annotated[float | None, "released per tick, under `per_type`"]
    paused: Annotated[bool, "whether its partitions are paused now"]


class Drops(Record):
    """With the next record written after a loss; counts since the last one."""

    KIND: ClassVar[str] = "drops"

    records: Annotated[int, "that could not be written: no room in the buffer, or no JSON"]
    files: Annotated[int, "finished ones removed to stay within `total_bytes`"]


class Stop(Record):
    """Once, on an orderly end; counts over the life of the process."""

    KIND: ClassVar[str] = "stop"

    confirmed: Annotated[int, "events"]
    dead_lettered: Annotated[int, "events"]
    unresolved: Annotated[int, "events read and neither confirmed nor dead-lettered: left in the log"]


class Produced(Record):
    """One event, by its producer; `at_ms` is the instant it was due."""

    KIND: ClassVar[str] = "produced"

    type: Annotated[str, "event type"]
    class_: Annotated[str, "its class"]
    id: Annotated[str, "`topic-partition-offset`, or the AMQP message id that Tidegate gives"]


class Consumed(Record):
    """One delivery, by its consumer; `at_ms` is the instant it was consumed."""

    KIND: ClassVar[str] = "consumed"

    type: Annotated[str, "event type"]
    class_: Annotated[str, "its class"]
    id: Annotated[str, "`topic-partition-offset`, or the AMQP message id that Tidegate gives"]
    event_ms: Annotated[int, "the event's timestamp"]
