"""What one seed stands for when the real clients live inside: as `plan`, with a network and scripted brokers."""

from datetime import UTC, datetime
from random import Random

from proxy.settings import LogSettings, Route, RoutingKey, Settings
from tests.histories.plan import (
    ANSWERS,
    AWAY,
    CAPS,
    EXCHANGE,
    HOST,
    LOG,
    LONGEST,
    POLICIES,
    PROCESSES,
    QUEUE,
    REFILL,
    ROUTE,
    WINDOW_BYTES,
    Fault,
    Plan,
    Wire,
    absences,
    draw_fault,
    draw_old,
    draw_settings,
    steered,
    window,
    with_catch_up,
    with_costs,
    with_shapes,
)

BROKERS = (
    "errors",
    "refusals",
    "parts",
    "late_answers",
    "mute",
    "hang_up",
    "drop",
    "spoil",
    "move_leaders",
    "move_coordinator",
    "stale_leaders",
    "wrong_address",
)
"""What Kafka's brokers do wrong, or other than they did."""
NETWORK = ("silent_node", "half_open_node", "slow_node", "dead_node", "cut_bytes", "reset_node")
"""What happens between a replica and Kafka's brokers."""
RECORDS = ("truncate", "compact", "recreate", "grow")
CONNECTIONS = (
    "reset",
    "reset_one",
    "cut_inward",
    "cut_outward",
    "block",
    "silence",
    "node_silent",
    "half_open",
    "slow",
    "narrow",
    "lose_confirms",
    "late_confirms",
    "broker_down",
    "node_down",
    "restart",
    "power_loss",
    "refuse_login",
    "leader_killed",
    "leader_silent",
)
ROUTES = ("stall_queue", "hold_lane", "depth_empty", "depth_stale", "depth_missing", "depth_slow")
"""What befalls a queue or a lane while others must go on, and what the monitor is told of queues."""
GROUPS = (BROKERS, BROKERS, NETWORK, CONNECTIONS, CONNECTIONS, ROUTES, ANSWERS, LOG, RECORDS, PROCESSES, HOST)
"""A fault is drawn from one of these; what stands twice is drawn twice as often."""
KINDS = tuple(dict.fromkeys((*(kind for group in GROUPS for kind in group), REFILL, *AWAY)))
LARGE = 100_000
"""Bytes of an event that is allowed in every other history without a cap in bytes: several pieces, many frames."""
_LEFT_OUT = 0.5
_EVENTS = ((10, 50), (120, 200))
"""Of each type; seldom so many that it can be seen how classes share a lane."""
_EPOCH = 1_700_000_000


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    chance = Random(f"wire {seed}")
    kinds = tuple(kind for group in dict.fromkeys(GROUPS) for kind in group if chance.random() >= _LEFT_OUT)
    wire = Wire(
        kafka_nodes=chance.choice((1, 2, 3, 3)),
        rabbit_nodes=chance.choice((1, 2, 3)),
        frame_max=chance.choice((4_096, 4_096, 131_072, 0)),
        splits=chance.choice((0.0, 0.0, 0.1, 0.8)),
        turn_seconds=chance.choice((0.00001, 0.0002, 0.0002, 0.001)),  # not 0: aiokafka would wait for it for ever
        confirm_seconds=chance.choice((0.002, 0.02, 0.1)),
        closes_on_refusal=chance.random() < _LEFT_OUT,
        connections=chance.choice((1, 2, 16, 16)),
        home_seconds=chance.choice((0.3, 1.0, 2.0, 60.0)),
        kinds=kinds or ("reset",),
    )
    partitions = chance.choice((1, 2, 2))
    drawn = steered(_settings(_routed(draw_settings(chance), chance), chance, wire), Random(f"steered {seed}"))
    settings = with_costs(with_catch_up(drawn, f"wire {seed}"), f"wire {seed}")
    settings = with_shapes(settings, f"wire {seed}")
    return Plan(
        seed=seed,
        settings=settings,
        old=0.0 if settings.log.start == "timestamp" else draw_old(f"wire {seed}"),
        partitions=partitions,
        events=chance.randint(*chance.choices(_EVENTS, (24, 1))[0]) // partitions,
        odd=chance.choice((0.0, 0.02, 0.1)),
        replicas=chance.choice((1, 1, 2, 2, 3)),
        fetch_events=chance.choice((1, 5, 20)),
        queue_bound=chance.choice((None, None, 4, 30)),
        pace=chance.choice((0.0, 0.05, 0.12)),
        latency=chance.choice((0.0002, 0.001, 0.005)),
        faults=(*_faults(chance, wire.kinds), *absences(f"wire {seed}")),
        wire=wire,
    )


def _faults(chance: Random, kinds: tuple[str, ...]) -> tuple[Fault, ...]:
    groups = [allowed for group in GROUPS if (allowed := tuple(kind for kind in group if kind in kinds))]
    drawn = [draw_fault(chance, chance.choice(groups)) for _ in range(chance.randint(2, 7))]
    return tuple(sorted(drawn, key=lambda fault: fault.at))


def _routed(settings: Settings, chance: Random) -> Settings:
    """Return settings with one to three routes, on queues of their own or the same, and types of one class."""
    names = [ROUTE, f"{ROUTE}-2", f"{ROUTE}-3"][: chance.choice((1, 2, 2, 3))]
    routes = {name: settings.routes[ROUTE] if name == ROUTE else _route(name, chance) for name in names}
    classes = chance.random() < _LEFT_OUT
    ways = chance.sample(names * len(settings.event_types), len(settings.event_types))
    types = {}
    for (name, kind), way in zip(settings.event_types.items(), ways, strict=True):
        is_constant = kind.routing_key.constant is not None
        key = RoutingKey(constant=routes[way].queue_names[0]) if is_constant else kind.routing_key
        priority = chance.choice(tuple(settings.classes)) if classes else kind.priority
        types[name] = kind.model_copy(update={"route": way, "routing_key": key, "priority": priority})
    return settings.model_copy(update={"routes": routes, "event_types": types})


def _route(name: str, chance: Random) -> Route:
    number = name.removeprefix(ROUTE)
    exchange, queue = EXCHANGE + chance.choice(("", number)), QUEUE + chance.choice(("", number, number))
    policy = chance.choice(POLICIES)
    return Route.model_validate(
        {
            "exchange": exchange,
            "queues": (queue,),
            "policy": policy,
            "cap": chance.choice(CAPS),
            **window(policy, chance),
            "in_flight_bytes": chance.choice(WINDOW_BYTES),
        }
    )


def _settings(settings: Settings, chance: Random, wire: Wire) -> Settings:
    hosts = [f"rabbit-{number}:5672" for number in range(1, wire.rabbit_nodes + 1)]
    is_capped = any(route.cap is not None and route.cap.bytes is not None for route in settings.routes.values())
    longest = LONGEST if is_capped else chance.choice((LONGEST, LARGE))  # under such a cap it would take a minute
    limits = settings.limits
    sizes = {"event_bytes": longest}
    if longest > LONGEST:
        sizes |= {"inbox_bytes": 3 * LARGE, "inboxes_bytes": 9 * LARGE}
    return settings.model_copy(
        update={
            "log": _log(settings.log, chance, wire.kafka_nodes),
            "broker": settings.broker.model_copy(update={"hosts": hosts, "heartbeat": float(chance.choice((1, 1, 5)))}),
            "limits": limits.model_copy(update={**sizes, "connect_deadline": 1.0}),
        }
    )


def _log(settings: LogSettings, chance: Random, nodes: int) -> LogSettings:
    start = chance.choice(("earliest", "earliest", "earliest", "latest", "timestamp"))
    return settings.model_copy(
        update={
            "hosts": [f"kafka-{number}:9092" for number in range(1, nodes + 1)],
            "metadata_age": chance.choice((0.5, 1.0)),
            "fetch_wait": chance.choice((0.1, 0.2)),
            "fetch_bytes": chance.choice((1024, 4096, 2**20)),
            "start": start,
            "start_timestamp": datetime.fromtimestamp(_EPOCH, UTC) if start == "timestamp" else None,
            "group_instance_id": chance.choice((None, None, None, "place")),
        }
    )
