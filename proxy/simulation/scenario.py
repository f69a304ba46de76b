"""What a scenario says: who offers what, what stands behind the broker, what happens when, what must come of it.

Pure settings, read from YAML by `scenario_file`; the simulation and the benchmark on real brokers run the same files.
"""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from proxy.settings.parts import Allowed, Bytes, Count, Name, Number, Part, Seconds, Text, Whole

PREFETCH_FORM = "a duration of at most 1m (seconds of capacity that all consumers hold together), or unlimited"
READS_FORM = "a number of replicas, or a list with the classes that each reads: [[P1], [P2, P3]]; [] reads all"
RATE_FORM = (
    "events a second, [[second, rate], ...], {low: 10, high: 90, period: 60s}, {backlog: 5000, age: 1h} or endless"
)
SETTINGS_FORM = "a mapping, merged into the Tidegate settings"

Service = Literal["uniform", "exponential", "constant"]
"""Chance in the time that one event takes: evenly within ±50 %, exponential, or none."""
What = Literal[
    "capacity",
    "consumers",
    "foreign",
    "alarm",
    "broker_restart",
    "paging_stall",
    "monitor_lost",
    "management_lost",
    "log_lost",
    "replica_joins",
    "replica_leaves",
    "replica_killed",
]


def _unlimited(value: object) -> object:
    return None if value == "unlimited" else value


def _rate(value: object) -> object:
    if value == "endless":
        return {"endless": True}
    if isinstance(value, list):
        return {"points": value}
    return value if isinstance(value, dict | Rate) else {"constant": value}


def _replicas(value: object) -> object:
    return [[] for _ in range(min(value, 100))] if isinstance(value, int) and not isinstance(value, bool) else value


class Autoscale(Part):
    """Consumers added and removed as a horizontal autoscaler does it: each as quick as those there were."""

    by: Literal["ready", "lag", "wanted"] = "ready"
    """What it goes by: messages that are ready in the queue, events that wait in the log, or what Tidegate wants."""
    per_consumer: Annotated[Count, Field(le=1_000_000)] = 100
    """Ready messages, or events in the log, for which one consumer is wanted."""
    most: Annotated[Count, Field(le=1_000)]
    """Consumers at most; at least there are those the queue began with."""
    delay: Annotated[Seconds, Field(ge=0, le=600)] = 30.0
    """Seconds from the wish to the consumers' first work."""
    interval: Annotated[Seconds, Field(ge=0.1, le=600)] = 5.0
    """How often the backlog is looked at."""


class Queue(Part):
    """A queue and its consumers."""

    capacity: Annotated[Number, Field(ge=0.1, le=100_000)]
    """Events of cost 1 a second that all its consumers do together."""
    consumers: Annotated[Count, Field(le=1_000)] = 4
    """They share the capacity evenly; each works on one event at a time."""
    knee: Annotated[Count, Field(le=1_000)] | None = None
    """More consumers than these do no more together: what stands behind them is full. null: nothing is."""
    prefetch: Annotated[
        Annotated[Seconds, Field(ge=0.001, le=60)] | None, BeforeValidator(_unlimited), Allowed(PREFETCH_FORM)
    ] = 0.05
    """Seconds of capacity that the consumers hold in all, at least one event each; None: no bound."""
    service: Service = "uniform"
    bound: Annotated[Seconds, Field(ge=0.01, le=86_400)] | None = 2.0
    """Seconds of capacity after which the queue refuses (reject-publish); null: it has no bound."""
    bound_messages: Annotated[Count, Field(le=10_000_000)] | None = None
    """The bound in messages instead."""
    kind: Literal["classic", "quorum", "priority"] = "classic"
    """priority: classic with x-max-priority, the highest class first."""
    sheds: bool = False
    """Beyond its bound it throws the oldest away (drop-head) instead of refusing."""
    autoscale: Autoscale | None = None

    @property
    def most_messages(self) -> int | None:
        """Ready messages beyond which the queue refuses; None: never."""
        if self.bound_messages is not None or self.bound is None:
            return self.bound_messages
        return max(1, round(self.bound * self.capacity))

    @property
    def prefetch_each(self) -> int:
        """Messages that each consumer may hold, the one it works on included; 0: no bound."""
        return 0 if self.prefetch is None else max(1, round(self.prefetch * self.capacity / self.consumers))


class RouteIn(Part):
    """One route of the Tidegate settings, with an exchange of its own that leads to its queues."""

    queues: Annotated[tuple[Name, ...], Field(min_length=1, max_length=1_000)]
    """What the route leads to."""
    sends: dict[Name, tuple[Name, ...]] = Field(default_factory=dict)
    """Queues that a class's events go to, by routing key; a class that is not named goes to all."""
    strategy: Literal["min", "max", "tagged", "sum"] | None = None
    """Judge the queues one by one, as `routes.*.strategy` of the settings says; None: all together."""
    tags: tuple[Name, ...] = ()
    """The queues with a tag."""
    untether: bool = False
    watched: bool = True
    """False: the route names no queues to Tidegate, which is left with nacks and latency."""
    policy: Name | None = None
    """Congestion control of this route, whichever is compared."""


class Rate(Part):
    """Events a second: constant, along points, a wave, or more than can ever be taken; or a backlog alone."""

    constant: Annotated[Number, Field(ge=0, le=1_000_000)] | None = None
    points: tuple[tuple[Annotated[Number, Field(ge=0, le=1_000_000)], ...], ...] = ()
    """[second, rate] each, the seconds rising; linear between, two at the same second are a step."""
    low: Annotated[Number, Field(ge=0, le=1_000_000)] | None = None
    high: Annotated[Number, Field(ge=0, le=1_000_000)] | None = None
    period: Annotated[Seconds, Field(ge=0.1, le=86_400)] | None = None
    """A sine between low and high that begins low."""
    endless: Literal[True] | None = None
    backlog: Annotated[Count, Field(le=10_000_000)] | None = None
    """So many events lie in the log when the run begins, and no more come."""
    age: Annotated[Seconds, Field(ge=1, le=365 * 86_400)] | None = None
    """They came evenly over so many seconds before."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        wave = [value is not None for value in (self.low, self.high, self.period)]
        old = [value is not None for value in (self.backlog, self.age)]
        ways = [self.constant is not None, bool(self.points), any(wave), self.endless is not None, any(old)]
        if sum(ways) != 1 or any(wave) != all(wave) or any(old) != all(old):
            raise ValueError(f"is no rate; allowed: {RATE_FORM}")
        if any(len(point) != 2 for point in self.points):  # noqa: PLR2004 -- a second and a rate
            raise ValueError("every point is [second, rate]")
        seconds = [point[0] for point in self.points]
        if seconds != sorted(seconds):
            raise ValueError("the seconds of the points must rise")
        return self


class Stream(Part):
    """Event types of one class that are offered alike."""

    priority: Name
    """Name of the class; `class` in the file."""
    rate: Annotated[Rate, BeforeValidator(_rate), Allowed(RATE_FORM)]
    """Of all its types together, by an open schedule."""
    types: Annotated[Count, Field(le=10_000)] = 1
    """Event types, each with a topic of its own, that take turns."""
    active: Annotated[Count, Field(le=10_000)] | None = None
    """So many of them have events at a time; the next ones after each `rotation`."""
    rotation: Annotated[Seconds, Field(ge=1, le=86_400)] = 10.0
    partitions: Annotated[Count, Field(le=100)] = 1
    """Of each topic."""
    joins: Name | None = None
    """A stream of the same class whose topics it comes in, on partitions of its own; None: topics of its own."""
    linger: Annotated[Seconds, Field(ge=0.01, le=10)] = 0.01
    """How long its producer collects events before it writes them, to one partition; they are due when written."""
    retention: Annotated[Seconds, Field(ge=1, le=365 * 86_400)] | None = None
    """The log drops what is older, sent or not, in segments of a tenth of it; None: it keeps everything."""
    size: Annotated[Bytes, Field(ge=1, le=16 * 1024**2)] = 256
    """Bytes of an event's value."""
    cost: Annotated[Count, Field(le=1_000)] = 1
    """So many times as long as an event of cost 1 keeps one of it a consumer busy; Tidegate's settings say the same."""
    route: Name | None = None
    """May be left out where there is only one."""


class Happening(Part):
    """Something that happens to brokers, consumers or replicas."""

    name: Name
    """By which figures call it."""
    at: Annotated[Seconds, Field(ge=0, le=86_400)]
    what: What
    queue: Name | None = None
    """For capacity, consumers, foreign; may be left out where there is only one."""
    to: Annotated[Number, Field(ge=0, le=100_000)] | None = None
    """capacity: events a second from now on, 0 stalls consumers with what they hold; consumers: how many are left,
    each as quick as before, 0 gives back what they held; foreign: events a second that others publish into it."""
    seconds: Annotated[Seconds, Field(ge=0.01, le=86_400)] | None = None
    """How long it lasts; then all is as before. None: to the end."""
    replica: Annotated[Whole, Field(ge=0, le=99)] | None = None
    """Which replica leaves or is killed, in the order of their starts, 0 the first."""
    reads: tuple[Name, ...] = ()
    """Classes that a replica that joins reads; none named: all."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if self.what in {"capacity", "consumers", "foreign"} and self.to is None:
            raise ValueError(f"{self.what} needs `to`")
        if self.what in {"replica_leaves", "replica_killed"} and self.replica is None:
            raise ValueError(f"{self.what} needs `replica`, 0 for the first")
        if self.what in {"alarm", "broker_restart", "paging_stall", "monitor_lost", "management_lost", "log_lost"} and (
            self.seconds is None
        ):
            raise ValueError(f"{self.what} needs `seconds`")
        return self


class Expectation(Part):
    """A figure and its range."""

    figure: Annotated[str, Field(pattern=r"^[A-Za-z0-9._+-]{1,200}$"), Allowed("a figure, like P1.consumed_p99")]
    at_least: Number | None = None
    at_most: Number | None = None
    plus_unloaded: bool = False
    """The bound is added to the same figure of a run of the top class alone, at a fifth of the capacity."""
    since: Annotated[Seconds, Field(ge=0, le=86_400)] | None = None
    """Judged from this second on; else from the end of the warm-up."""
    until: Annotated[Seconds, Field(ge=0, le=86_400)] | None = None
    """Judged to this second; else to the end."""
    why: Text
    only: Literal["sim", "real"] | None = None
    """Where it is judged; both if not given."""
    fails_with_control_off: bool = False
    """`policy: static` misses it."""

    @model_validator(mode="after")
    def _has_a_bound(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("give at_least or at_most")
        return self


class Scenario(Part):
    """One story: load, what stands behind the broker, what happens, what must come of it."""

    name: Name
    why: Text
    """What it shows, for whoever reads the result."""
    seconds: Annotated[Seconds, Field(ge=1, le=86_400)]
    warm_up: Annotated[Seconds, Field(ge=0, le=3_600)] = 5.0
    """Figures count from here."""
    seed: Annotated[Whole, Field(ge=0, le=2**32)] = 1
    queues: Annotated[dict[Name, Queue], Field(min_length=1)]
    routes: Annotated[dict[Name, RouteIn], Field(min_length=1)]
    streams: Annotated[dict[Name, Stream], Field(min_length=1)]
    replicas: Annotated[
        tuple[tuple[Name, ...], ...],
        BeforeValidator(_replicas),
        Field(min_length=1, max_length=64),
        Allowed(READS_FORM),
    ] = ((),)
    """The classes that each replica reads from the start; () reads all."""
    confirm_delay: Annotated[Seconds, Field(ge=0, le=10)] = 0.0
    """Added to every confirm, as by a disk that is slow to sync, or by distance."""
    management: bool = False
    """Whether Tidegate is told where the broker's management API is."""
    settings: Annotated[dict[str, object], Allowed(SETTINGS_FORM)] = Field(default_factory=dict)
    events: tuple[Happening, ...] = ()
    expect: Annotated[tuple[Expectation, ...], Field(min_length=1)]
    control_off: Text | None = None
    """Why no figure fails with control off; needed where none is marked so."""
    only: Literal["sim", "real"] | None = None
    """Where it runs; both if not given."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes with events, sorted by name: the first is the top class."""
        return tuple(sorted({stream.priority for stream in self.streams.values()}))

    def topics(self, stream: str) -> list[str]:
        """Return the topics of a stream, one for each of its types."""
        return [f"{self.streams[stream].joins or stream}-{number}" for number in range(self.streams[stream].types)]

    def places(self, stream: str) -> list[tuple[str, int]]:
        """Return the topics and partitions that a stream comes in; behind those of whom it joins and joined before."""
        told = self.streams[stream]
        first = 0
        for name, other in self.streams.items():
            if told.joins is None or name == stream:
                break
            first += other.partitions if told.joins in {name, other.joins} else 0
        return [(topic, first + number) for topic in self.topics(stream) for number in range(told.partitions)]

    def route_of(self, stream: str) -> str:
        """Return the route of a stream."""
        return self.streams[stream].route or next(iter(self.routes))

    def route_to(self, queue: str) -> str:
        """Return the first route that leads to a queue."""
        return next(name for name, route in self.routes.items() if queue in route.queues)

    def queue_of(self, happening: Happening) -> str:
        """Return the queue to which something happens."""
        return happening.queue or next(iter(self.queues))
