"""What one seed stands for when the real clients live inside: as `plan`, with a network and scripted brokers."""

from random import Random

from proxy.settings import Settings
from tests.histories.plan import (
    ANSWERS,
    HOST,
    LOG,
    LONGEST,
    PROCESSES,
    RECORDS,
    Plan,
    Wire,
    draw_fault,
    draw_settings,
)

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
MONITOR = ("depth_empty", "depth_stale", "depth_missing", "depth_slow")
GROUPS = (CONNECTIONS, CONNECTIONS, MONITOR, ANSWERS, LOG, RECORDS, PROCESSES, HOST)
KINDS = tuple(dict.fromkeys(kind for group in GROUPS for kind in group))
LARGE = 100_000
"""Bytes of an event that is allowed in every other history without a cap in bytes: several pieces, many frames."""
_LEFT_OUT = 0.5


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    chance = Random(f"wire {seed}")
    kinds = tuple(kind for kind in KINDS if chance.random() >= _LEFT_OUT) or ("reset",)
    wire = Wire(
        nodes=chance.choice((1, 2, 3)),
        frame_max=chance.choice((4_096, 4_096, 131_072, 0)),
        splits=chance.choice((0.0, 0.1, 0.8)),
        turn_seconds=chance.choice((0.0, 0.0002, 0.0002, 0.001)),
        confirm_seconds=chance.choice((0.002, 0.02, 0.1)),
        closes_on_refusal=chance.random() < _LEFT_OUT,
        kinds=kinds,
    )
    partitions = chance.choice((1, 2, 2))
    settings = _settings(draw_settings(chance), chance, wire.nodes)
    groups = [allowed for group in GROUPS if (allowed := tuple(kind for kind in group if kind in kinds))]
    faults = [draw_fault(chance, chance.choice(groups)) for _ in range(chance.randint(2, 7))]
    return Plan(
        seed=seed,
        settings=settings,
        partitions=partitions,
        events=chance.randint(15, 80) // partitions,
        odd=chance.choice((0.0, 0.02, 0.1)),
        replicas=chance.choice((1, 1, 2)),
        fetch_events=chance.choice((1, 5, 20)),
        queue_bound=chance.choice((None, None, 4, 30)),
        pace=chance.choice((0.0, 0.05, 0.12)),
        latency=chance.choice((0.0002, 0.001, 0.005)),
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        wire=wire,
    )


def _settings(settings: Settings, chance: Random, nodes: int) -> Settings:
    hosts = [f"rabbit-{number}:5672" for number in range(1, nodes + 1)]
    is_capped = any(route.cap is not None and route.cap.bytes is not None for route in settings.routes.values())
    longest = LONGEST if is_capped else chance.choice((LONGEST, LARGE))  # under such a cap it would take a minute
    limits = settings.limits
    sizes = {"event_bytes": longest}
    if longest > LONGEST:
        sizes |= {"inbox_bytes": 3 * LARGE, "inboxes_bytes": 9 * LARGE}
    return settings.model_copy(
        update={
            "broker": settings.broker.model_copy(update={"hosts": hosts, "heartbeat": float(chance.choice((1, 1, 5)))}),
            "limits": limits.model_copy(update={**sizes, "connect_deadline": 1.0}),
        }
    )
