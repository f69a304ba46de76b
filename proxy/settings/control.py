"""The control loop: classes, statistics, detector (the seed's mechanism)."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from proxy.settings.parts import Allowed, Count, Number, Part, Seconds, ShortText, Switch, Whole


class Slo(Part):
    """What is promised of a class: which share of its events is there in time, and which time that is."""

    within: Annotated[Seconds, Field(ge=0.001, le=1_800)]
    """An event later than this has missed its target; half of the longest time that buckets tell apart at most."""
    share: Annotated[Number, Field(ge=0.01, le=0.99999)]
    """Of all events that are judged, so many must be in time; the others are the error budget, so it is never 1."""
    judges: Literal["bridge", "consumed"]
    """Bridge time (event timestamp to confirm), or consumed time (to the consumer), which only consumers' logs tell."""


class PriorityClass(Part):
    """One class of importance; the file lists classes from the most to the least important.

    Source of the rule and of the default coefficients: Zalando's AIMD per event type, 2024-04-22 (P1 +15 x0.8,
    P2 +10 x0.6, P3 +5 x0.4).
    """

    increase: Annotated[Number, Field(ge=0.001, le=1_000_000)]
    """Added to the batch size at every verdict "not congested"; also the batch size to start with."""
    decrease: Annotated[Number, Field(ge=0.01, le=0.99)]
    """The batch size is multiplied by it at every verdict "congested"."""
    floor: Annotated[Number, Field(ge=0.001, le=1_000_000)] = 1.0
    """The batch size never falls below; larger: less starvation, less relief for the broker."""
    ceiling: Annotated[Number, Field(ge=0.001, le=1_000_000)] = 5_000.0
    """The batch size never rises above; smaller: a shorter way back after a long calm."""
    queue_delay: Annotated[Seconds, Field(ge=0.005, le=600)] | None = None
    """`class_budget`: how long the route's queues may make an event wait before this class and those below slow down.

    Larger: the class gives way later. None: between the two of `class_budget`, by its place.
    """
    catch_up: Switch = True
    """`class_budget`: what is old of it stands behind what is live (`class_budget.catch_up`).

    The most important class never does that.
    """
    lift_before_loss: Annotated[Seconds, Field(ge=1, le=30 * 86_400)] | None = None
    """An event type of the class goes as one of the class above while its log may drop an event of it within so long.

    None: never. Larger: sooner, and for longer at the cost of the class above. Of the most important class it is none.
    """
    slo: Slo | None = None
    """What the report holds the class to; nothing is steered by it. None: nothing is promised."""

    @model_validator(mode="after")
    def _floor_is_below_ceiling(self) -> Self:
        if not self.floor <= self.increase <= self.ceiling:
            raise ValueError("floor <= increase <= ceiling must hold: the batch size starts at `increase`")
        return self


DEFAULT_CLASSES = {
    "P1": PriorityClass(increase=15, decrease=0.8),
    "P2": PriorityClass(increase=10, decrease=0.6),
    "P3": PriorityClass(increase=5, decrease=0.4),
}


class RetentionSettings(Part):
    """When the log may drop what was not sent yet (docs/design/0047)."""

    alarm: Annotated[Seconds, Field(ge=1, le=30 * 86_400)] = 3600.0
    """An event type is said to be near its end when the log may drop an event of it within so long.

    Or within half of what the log gives a new event, if that is less. Larger: said sooner.
    """


class CubicSettings(Part):
    """`law: cubic`."""

    cut: Annotated[Number, Field(ge=0.01, le=0.9)] = 0.2
    """Share of its rate that a level gives up at a sign of congestion: 0.2 as in Aeron, 0.3 as in RFC 9438."""
    tcp: Switch = False
    """Below the last cut's rate, send no less than a flow of TCP Reno's would."""


class VegasSettings(Part):
    """`law: vegas` and `law: vegas_capped`."""

    batching: Annotated[Number, Field(ge=0, le=100)] | None = None
    """Share of a trip that a batch may wait before it is written without being a sign of a queue.

    None: 1 / batches on their way.
    """


class CatchUpSettings(Part):
    """Where an old backlog stands: a partition whose next event was old when it was read (docs/design/0027)."""

    after: Annotated[
        Annotated[Seconds, Field(ge=1, le=365 * 86_400)] | None,
        BeforeValidator(lambda value: None if value == "off" else value),
        Allowed("a duration from 1s to 365d, or off"),
    ] = 600.0
    """Older events are a backlog to be caught up with; None: none ever is.

    Larger: an old backlog competes longer with what is live. Smaller: a class that is overloaded for so long is split
    into types and partitions that are live and others that are not.
    """
    place: Literal["class", "last"] = "class"
    """Behind what is live of its own class and before the next one, or behind everything."""


class ClassBudget(Part):
    """`policy: class_budget`: one rate per class and route, found from the queues' delay (docs/design/0008)."""

    tick: Annotated[Seconds, Field(ge=0.01, le=1)] = 0.05
    """How often every route is judged. Larger: longer queues after every change."""
    lowest_queue_delay: Annotated[Seconds, Field(ge=0.005, le=600)] = 0.08
    """Threshold of the least important class. Larger: longer queues; smaller: consumers may idle for a moment."""
    highest_queue_delay: Annotated[Seconds, Field(ge=0.005, le=600)] = 0.5
    """Threshold of the most important class; those between lie in equal ratios."""
    growth: Annotated[Number, Field(ge=0.01, le=1)] = 0.12
    """Added to a rate per second, as a share of the drain rate. Larger: quicker use of new capacity, more cuts."""
    cut: Annotated[Number, Field(ge=0.1, le=0.99)] = 0.92
    """A cut lands on this share of the drain rate. Smaller: shorter queues, consumers may idle for a moment."""
    lowest_share: Annotated[Number, Field(ge=0, le=0.5)] = 0.025
    """Share of the drain rate that each class below the first as a whole gets whatever comes above it."""
    start_rate: Annotated[Number, Field(ge=1, le=1_000_000)] = 50.0
    """Events a second with which a rate starts; it doubles every 0.5 s, every 0.3 s before empty queues."""
    unseen_rate: Annotated[Number, Field(ge=1, le=1_000_000)] = 100_000.0
    """Events a second to which rates grow as long as no queue was ever seen in front of consumers.

    Larger: consumers that take without a prefetch may be flooded unseen; smaller: quick consumers may be held back. The
    default is more than one replica moves: to spare such consumers, name what they take.
    """

    catch_up: Annotated[
        CatchUpSettings, Allowed("a mapping with after and place; {after: off} where nothing is to be old")
    ] = CatchUpSettings()
    cubic: CubicSettings = CubicSettings()
    vegas: VegasSettings = VegasSettings()

    @model_validator(mode="after")
    def _thresholds_are_graded(self) -> Self:
        if self.lowest_queue_delay > self.highest_queue_delay:
            raise ValueError("lowest_queue_delay <= highest_queue_delay must hold: the least important yields first")
        return self


class Throttling(Part):
    """How a batch size becomes a pace."""

    tick: Annotated[Seconds, Field(ge=0.01, le=10)] = 0.1
    """A throttle releases one batch size of events per tick. Larger: burstier."""


class Statistics(Part):
    """When the statistics collector reports: every `interval`, or at the times of `cron`."""

    interval: Annotated[Seconds, Field(ge=0.1, le=3600)] | None = None
    cron: ShortText | None = None
    """Six fields, seconds first: `*/5 * * * * *` is every five seconds."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.interval is not None and self.cron is not None:
            raise ValueError("give interval or cron, not both")
        return self

    @property
    def period(self) -> float | None:
        """Seconds between two reports; None when `cron` rules."""
        return None if self.cron else (self.interval or 1.0)


class Detector(Part):
    """Congested: P50 publish latency above its threshold OR publish errors above theirs."""

    publish_latency_p50: Annotated[Seconds, Field(ge=0.0001, le=600)] = 0.05
    """Of confirmed publications only, write to confirm, over one statistics interval."""
    publish_errors: Annotated[Whole, Field(ge=0, le=1_000_000)] = 0
    """More nacks, missed deadlines and lost publications than this in one statistics interval are congestion."""
    min_samples: Annotated[Count, Field(le=1_000_000)] = 10
    """With fewer outcomes in the interval nothing is said and every batch size stays."""
