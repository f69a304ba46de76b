"""The control loop: classes, statistics, detector (the seed's mechanism)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from proxy.settings.parts import Count, Number, Part, Seconds, ShortText, Whole


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
