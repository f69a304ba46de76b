"""Frozen settings, free of any client, so that `tidegate check` loads neither aiokafka nor aio-pika."""

from functools import cached_property
from typing import Annotated

from pydantic import Field

from proxy.settings.broker import BrokerSettings, BrokerTls, Management
from proxy.settings.control import (
    DEFAULT_CLASSES,
    CatchUpSettings,
    ClassBudget,
    Detector,
    PriorityClass,
    RetentionSettings,
    Slo,
    Statistics,
    Throttling,
)
from proxy.settings.events import EventType, Traits, TypePattern
from proxy.settings.files import AdminSettings, AdminTls, MetricLogSettings
from proxy.settings.limits import Limits
from proxy.settings.log import LogSecurity, LogSettings
from proxy.settings.nakadi import NakadiSettings
from proxy.settings.notices import NoticeSettings, Webhook
from proxy.settings.parts import Name, Part
from proxy.settings.queues import JudgedQueue, RoutingKey
from proxy.settings.route import POLICIES, Cap, DeadLetter, Policy, Route, Scaling
from proxy.settings.secrets import Secret, Token
from proxy.settings.traces import TraceSettings


class Settings(Part):
    """Everything one Tidegate process is told, inheritance resolved and references checked."""

    log: LogSettings
    broker: BrokerSettings
    routes: Annotated[dict[Name, Route], Field(min_length=1)]
    classes: Annotated[dict[Name, PriorityClass], Field(min_length=1)] = Field(
        default_factory=lambda: dict(DEFAULT_CLASSES)
    )
    """From the most to the least important."""
    class_budget: ClassBudget = ClassBudget()
    throttling: Throttling = Throttling()
    statistics: Statistics = Statistics()
    detector: Detector = Detector()
    retention: RetentionSettings = RetentionSettings()
    limits: Limits = Limits()
    metric_log: MetricLogSettings = MetricLogSettings()
    admin: AdminSettings = AdminSettings()
    notices: NoticeSettings = NoticeSettings()
    traces: TraceSettings = TraceSettings()
    event_types: dict[str, EventType] = Field(default_factory=dict)
    patterns: tuple[TypePattern, ...] = ()

    @cached_property
    def has_one_class(self) -> bool:
        """Whether all event types are of the same class."""
        return len({stream.priority for stream in (*self.event_types.values(), *self.patterns)}) == 1

    def rank(self, priority: str) -> int:
        """Return the place of a class, 0 the most important."""
        return list(self.classes).index(priority)

    @cached_property
    def queue_delays(self) -> tuple[float, ...]:
        """The classes' thresholds in seconds, the most important class first; they fall unless a class has its own."""
        lowest, highest = self.class_budget.lowest_queue_delay, self.class_budget.highest_queue_delay
        last = len(self.classes) - 1
        graded = [lowest * (highest / lowest) ** (1 - rank / last) if last else lowest for rank in range(last + 1)]
        return tuple(own.queue_delay or default for own, default in zip(self.classes.values(), graded, strict=True))

    def catches_up(self, priority: str) -> bool:
        """Return whether what is old of a class stands behind what is live of it, on routes under `class_budget`."""
        is_on = self.class_budget.catch_up.after is not None and self.classes[priority].catch_up
        return is_on and self.rank(priority) > 0

    def tells_classes_apart(self, route: str) -> bool:
        """Return whether anything on a route is given to one class before another."""
        return self.routes[route].policy == "class_budget" or self.routes[route].cap is not None

    def costs(self, route: str) -> tuple[frozenset[float], ...]:
        """Return what events of each class cost on a route, the most important class first; {1} without any."""
        found = self._costs
        return tuple(frozenset(found.get((route, name), {1.0})) for name in self.classes)

    @cached_property
    def _costs(self) -> dict[tuple[str, str], set[float]]:
        """What events cost, by route and class."""
        found: dict[tuple[str, str], set[float]] = {}
        for kind in (*self.event_types.values(), *self.patterns):
            found.setdefault((kind.route, kind.priority), set()).add(kind.cost)
        return found

    @cached_property
    def own_topics(self) -> frozenset[str]:
        """Topics that Tidegate writes itself: no events, whatever pattern matches them."""
        return frozenset({self.log.board_topic} | ({self.notices.topic} if self.notices.topic is not None else set()))

    @cached_property
    def by_topic(self) -> dict[str, EventType]:
        """The event types that name their topic, by topic."""
        return {event_type.topic: event_type for event_type in self.event_types.values()}


__all__ = [
    "DEFAULT_CLASSES",
    "POLICIES",
    "AdminSettings",
    "AdminTls",
    "BrokerSettings",
    "BrokerTls",
    "Cap",
    "CatchUpSettings",
    "ClassBudget",
    "DeadLetter",
    "Detector",
    "EventType",
    "JudgedQueue",
    "Limits",
    "LogSecurity",
    "LogSettings",
    "Management",
    "MetricLogSettings",
    "NakadiSettings",
    "NoticeSettings",
    "Part",
    "Policy",
    "PriorityClass",
    "RetentionSettings",
    "Route",
    "RoutingKey",
    "Scaling",
    "Secret",
    "Settings",
    "Slo",
    "Statistics",
    "Throttling",
    "Token",
    "TraceSettings",
    "Traits",
    "TypePattern",
    "Webhook",
]
