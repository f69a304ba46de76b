"""What one seed stands for: settings, events, replicas, and the faults with their times. Pure data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Self

from proxy.congestion.laws import LAWS as KNOWN_LAWS
from proxy.model import Origin
from proxy.settings import (
    BrokerSettings,
    Cap,
    CatchUpSettings,
    ClassBudget,
    DeadLetter,
    EventType,
    Limits,
    LogSettings,
    MetricLogSettings,
    Route,
    RoutingKey,
    Settings,
    Statistics,
)

EXCHANGE = "main"
QUEUE = "work"
DEAD_QUEUE = "dead"
ROUTE = "r"
LETTERS = "dead letters"
"""The lane of the dead letters."""
TOPICS = ("by-partition", "strictly", "anyhow")
"""One event type for each order."""
ORDERS = {"by-partition": "partition", "strictly": "strict", "anyhow": "none"}
LONGEST = 200
"""Bytes of an event that is allowed."""
MOST_HEADERS = 8
HEADER = "to"
"""The header that routes events of types that are not routed by a constant."""
POISON = "poison"
"""A header over which the broker closes the channel, but not that of a dead letter."""
MAX_AGE = 3.0
SHADOWS = 0.25
"""Share of the histories whose route is in shadow from the start, if its policy decides anything."""
POLICIES = ("static", "per_type", "class_budget")
LAWS = tuple(KNOWN_LAWS)
CAPS = (None, None, Cap(events=60), Cap(bytes=1_500, strict=True))
WINDOWS = (1, 8, 20, 60)
"""The last one adapts, unless the route's policy has it fixed."""
WINDOW_BYTES = (150, 1_000_000)

CONNECTIONS = ("reset", "reset_one", "block", "silence", "slow", "lose_confirms", "late_confirms", "broker_down")
ANSWERS = ("nack", "unbind", "forbid", "no_consumer", "no_letters")
LOG = ("rebalance", "refuse_commits", "leave_out_commits", "lose_answers", "fence", "cut_off", "log_down", "stall_log")
RECORDS = ("truncate", "compact", "recreate", "refetch", "grow")
REFILL = "refill"
"""What every other `recreate` is: at once, and with more events than there were."""
PROCESSES = ("stop_process", "stop_joining", "crash", "leave", "join")
HOST = ("jump_clock", "disk_full")
PEOPLE = ("pause", "discard")
"""What people do to some event types, for a while."""
CURSORS = ("skip", "rewind")
"""What people do to the cursors of some partitions."""
RELOADS = ("reload", "drop_type")
"""Other settings come into force in one replica: what a type says changes, or it goes and comes back."""
STEERING = ("steer", "reroute")
"""Likewise: what holds a route's events back changes for a while, or a type goes over a route that comes and goes."""
AWAY = ("away",)
"""A queue's node is down: what is for the queue comes back as if there were none."""
WATCHING = ("shadow", "tighten")
"""Likewise: a policy is only watched for a while, or obeyed where it was watched; bounds fall and rise again."""
KINDS = (
    *CONNECTIONS,
    *ANSWERS,
    *LOG,
    *RECORDS,
    REFILL,
    *PROCESSES,
    *HOST,
    *PEOPLE,
    *CURSORS,
    *RELOADS,
    *STEERING,
    *WATCHING,
    *AWAY,
)

SEAMS = ("", "", "fetch", "write", "store", "told", "commit", "joining", "joining", "assigned", "revoking", "revoked")
"""What a fault may wait for before it strikes; one in six takes the time alone."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong."""

    at: float
    """Virtual seconds from the start."""
    kind: str
    seconds: float
    """How long it lasts, where it lasts."""
    who: int
    """Whom it befalls, counted round those there are; if odd, whoever came to the seam."""
    amount: float
    """How bad it is, 0 to 1."""
    seam: str = ""
    """It strikes when this happens for the `nth` time after `at` ..."""
    nth: int = 1
    turns: int = 0
    """... and so many turns of the event loop later."""

    def __str__(self) -> str:
        """Return it in one line."""
        when = f" at {self.seam} no. {self.nth} + {self.turns} turns" if self.seam else ""
        return f"{self.at:.3f} {self.kind}{when} ({self.seconds:.2f} s, {self.who}, {self.amount:.2f})"


@dataclass(frozen=True, slots=True)
class Wire:
    """What the network in memory and the scripted brokers on it are like."""

    kafka_nodes: int
    rabbit_nodes: int
    frame_max: int
    splits: float
    """Share of reads that get only a part of what has come."""
    turn_seconds: float
    """A turn of the event loop takes so long at most."""
    confirm_seconds: float
    """A confirm takes so long at most."""
    closes_on_refusal: bool
    """Whether a refused login is told or just ends."""
    kinds: tuple[str, ...]
    """The kinds of faults that this history may have: each leaves out some."""
    connections: int
    """Publishing connections of the routes; if there are more routes, some share a lane."""
    home_seconds: float
    """Between two attempts of a lane to go home to its own node."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One history to be."""

    seed: int
    settings: Settings
    partitions: int
    """Of each type."""
    events: int
    """Of each partition."""
    odd: float
    """Share of events that can't be delivered, of types that have somewhere to put them."""
    replicas: int
    fetch_events: int
    queue_bound: int | None
    pace: float
    """Seconds between two rounds of events, one of each partition, at most."""
    latency: float
    """Seconds of one way over a broker's connection, at most."""
    faults: tuple[Fault, ...]
    wire: Wire | None = None
    """With the real clients inside; None: with lanes and log in memory."""
    old: float = 0.0
    """Share of the events of each type's first partition that are an hour old; they come before the others."""

    @property
    def lanes(self) -> Mapping[str, str]:
        """The lane of each route, by the names of both; routes that share one follow each other in its name."""
        names = list(self.settings.routes)
        count = len(names) if self.wire is None else min(len(names), self.wire.connections)
        shared = (names[start::count] for start in range(count))
        return {name: ", ".join(together) for together in shared for name in together}

    def only(self, numbers: frozenset[int]) -> Self:
        """Return the plan with these faults alone, counted from 0."""
        return replace(self, faults=tuple(fault for at, fault in enumerate(self.faults) if at in numbers))


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    chance = Random(seed)
    partitions = chance.choice((1, 2, 2, 3))
    return Plan(
        seed=seed,
        settings=_drawn_settings(chance, str(seed)),
        old=draw_old(str(seed)),
        partitions=partitions,
        events=chance.randint(15, 80) // partitions,
        odd=chance.choice((0.0, 0.0, 0.02, 0.1)),
        replicas=chance.choice((1, 2, 2, 3)),
        fetch_events=chance.choice((1, 5, 20)),
        queue_bound=chance.choice((None, None, 4, 30)),
        pace=chance.choice((0.0, 0.05, 0.12)),
        latency=chance.choice((0.003, 0.003, 0.02, 0.1)),
        faults=(
            *sorted((_fault(chance) for _ in range(chance.randint(3, 8))), key=lambda fault: fault.at),
            *_interventions(str(seed)),
            *_moves(str(seed)),
            *_reloads(str(seed)),
            *_steering(str(seed)),
            *_watching(str(seed)),
            *absences(str(seed)),
        ),
    )


def _drawn_settings(chance: Random, seed: str) -> Settings:
    settings = steered(draw_settings(chance), Random(f"steered {seed}"))
    return with_shadow(with_shapes(with_costs(with_catch_up(settings, seed), seed), seed), seed)


def _fault(chance: Random) -> Fault:
    group = chance.choice((CONNECTIONS, ANSWERS, LOG, RECORDS, PROCESSES, PROCESSES, HOST))
    return draw_fault(chance, group)


def _interventions(seed: str) -> list[Fault]:
    """Return what people do; by a chance of its own, so that all else stays as drawn."""
    chance = Random(f"people {seed}")
    return [draw_fault(chance, PEOPLE) for _ in range(chance.choice((0, 0, 1, 2)))]


def _moves(seed: str) -> list[Fault]:
    """Return whose cursors people move, and which way; likewise."""
    chance = Random(f"cursors {seed}")
    return [draw_fault(chance, CURSORS) for _ in range(chance.choice((0, 0, 1, 3)))]


def _reloads(seed: str) -> list[Fault]:
    """Return where settings change; likewise."""
    chance = Random(f"reloads {seed}")
    return [draw_fault(chance, RELOADS) for _ in range(chance.choice((0, 0, 1, 3)))]


def _steering(seed: str) -> list[Fault]:
    """Return where routes change; likewise."""
    chance = Random(f"steering {seed}")
    return [draw_fault(chance, STEERING) for _ in range(chance.choice((0, 0, 1, 3)))]


def _watching(seed: str) -> list[Fault]:
    """Return where a route goes into shadow, or out of it, and where bounds change; likewise."""
    chance = Random(f"watching {seed}")
    return [draw_fault(chance, WATCHING) for _ in range(chance.choice((0, 0, 1, 2)))]


def absences(seed: str) -> list[Fault]:
    """Return when a queue's node is down, or out of sight for a moment; likewise."""
    chance = Random(f"away {seed}")
    return [draw_fault(chance, AWAY) for _ in range(chance.choice((0, 0, 1, 2)))]


def draw_fault(chance: Random, kinds: Sequence[str]) -> Fault:
    """Return a fault of one of these kinds."""
    drawn = Fault(
        at=round(chance.uniform(0.1, 4), 3),
        kind=chance.choice(kinds),
        seconds=round(chance.choice((0.05, 0.4, 1.0, 2.5)) * chance.uniform(0.5, 1.5), 3),
        who=chance.randrange(6),
        amount=round(chance.random(), 3),
        seam=chance.choice(SEAMS),
        nth=chance.randint(1, 12),
        turns=chance.randrange(6),
    )
    if drawn.kind == "stop_joining":
        # Right after it has asked to be part of a generation, and for longer than that lasts without it.
        return replace(drawn, seam="joining", turns=1 + drawn.turns, who=1, seconds=1.3 + drawn.amount)
    if drawn.kind == "recreate" and drawn.who % 2:
        return replace(drawn, kind=REFILL)
    return drawn


def with_catch_up(settings: Settings, seed: str) -> Settings:
    """Return the settings with a catch-up tier or without; by a chance of its own, so that all else stays as drawn."""
    chance = Random(f"catch-up {seed}")
    tier = CatchUpSettings(after=chance.choice((None, 1.0, 1.0)), place=chance.choice(("class", "last")))
    without = chance.choice((*settings.classes, None, None))
    classes = {name: own.model_copy(update={"catch_up": name != without}) for name, own in settings.classes.items()}
    budget = settings.class_budget.model_copy(update={"catch_up": tier})
    return settings.model_copy(update={"class_budget": budget, "classes": classes})


def with_costs(settings: Settings, seed: str) -> Settings:
    """Return the settings with event types that cost more or less than one; by a chance of its own."""
    chance = Random(f"costs {seed}")
    types = {
        name: kind.model_copy(update={"cost": chance.choice((1.0, 1.0, 1.0, 0.5, 3.0, 10.0))})
        for name, kind in settings.event_types.items()
    }
    return settings.model_copy(update={"event_types": types})


ORIGINS = (Origin.ID, Origin.ID, Origin.FULL)


def with_shapes(settings: Settings, seed: str) -> Settings:
    """Return the settings with messages that tell their origin, and carry keys, as routes may say; likewise."""
    chance = Random(f"shapes {seed}")
    routes = {
        name: route.model_copy(
            update={
                "origin": chance.choice(ORIGINS),
                "key": chance.choice(("header", "none")),
            }
        )
        for name, route in settings.routes.items()
    }
    return settings.model_copy(update={"routes": routes})


def with_shadow(settings: Settings, seed: str) -> Settings:
    """Return the settings with the policy of a route only watched, now and then; likewise."""
    chance = Random(f"shadow {seed}")
    routes = {
        name: route.model_copy(update={"shadow": chance.random() < SHADOWS and route.policy != "static"})
        for name, route in settings.routes.items()
    }
    return settings.model_copy(update={"routes": routes})


def draw_old(seed: str) -> float:
    """Return a `Plan.old`."""
    return Random(f"old {seed}").choice((0.0, 0.3, 0.7))


def steered(settings: Settings, chance: Random) -> Settings:
    """Return settings with a rate law for each route that asks one, from a chance of its own."""
    routes = {
        name: route.model_copy(update={"law": chance.choice(LAWS) if route.policy == "class_budget" else route.law})
        for name, route in settings.routes.items()
    }
    return settings.model_copy(update={"routes": routes})


def window(policy: str, chance: Random) -> dict[str, int]:
    """Draw the window of a route."""
    events = chance.choice(WINDOWS)
    return {"in_flight_bound" if events == WINDOWS[-1] and policy != "per_type" else "in_flight_events": events}


def draw_settings(chance: Random) -> Settings:
    policy = chance.choice(POLICIES)
    cap = chance.choice(CAPS)
    classes = chance.sample(("P1", "P2", "P3"), 3)
    bare = chance.choice((*TOPICS, None, None, None))
    aging = chance.choice((*TOPICS, None))
    inbox_bytes = chance.choice((250, 1_000, 100_000))
    types = {
        topic: EventType.model_validate(
            {
                "name": topic,
                "topic": topic,
                "priority": priority,
                "route": ROUTE,
                "routing_key": chance.choice((RoutingKey(constant=QUEUE), RoutingKey(header=HEADER))),
                "order": ORDERS[topic],
                "max_age": MAX_AGE if topic == aging != bare else None,
                "dead_letter": None if topic == bare else DeadLetter(routing_key=DEAD_QUEUE),
            }
        )
        for topic, priority in zip(TOPICS, classes, strict=True)
    }
    return Settings(
        log=LogSettings(hosts=("memory:1",), group="g", session_timeout=1.2, topic_check_interval=1),
        broker=BrokerSettings(hosts=["memory:1"], depth_interval=0.1, backoff=0.05, backoff_limit=0.3),
        routes={
            ROUTE: Route.model_validate(
                {
                    "exchange": EXCHANGE,
                    "queues": (QUEUE,),
                    "policy": policy,
                    "cap": cap,
                    **window(policy, chance),
                    "in_flight_bytes": chance.choice(WINDOW_BYTES),
                }
            )
        },
        event_types=types,
        class_budget=ClassBudget(tick=0.1),
        statistics=chance.choice((Statistics(cron="* * * * * *"), *[Statistics(interval=0.5)] * 4)),
        limits=Limits(
            event_bytes=LONGEST,
            headers=MOST_HEADERS,
            inbox_events=chance.choice((4, 15, 40)),
            inbox_bytes=inbox_bytes,
            inboxes_bytes=inbox_bytes * chance.choice((2, 100)),
            uncommitted_events=chance.choice((3, 25, 25, 60)),
            confirm_deadline=0.6,
            connect_deadline=0.4,
            write_deadline=0.4,
            drain_deadline=0.4,
            commit_interval=chance.choice((0.05, 0.2)),
            commit_deadline=0.4,
        ),
        metric_log=MetricLogSettings(route_interval=0.5, type_interval=1.0, buffer_records=100),
    )
