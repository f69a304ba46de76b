"""What one seed of a wire history stands for: as in `plan`, in a smaller world with a richer network."""

from dataclasses import replace
from datetime import UTC, datetime
from random import Random

from tests.histories.plan import ANSWERS, CONNECTIONS, HOST, LOG, PROCESSES, REFILL, SEAMS, Fault, Plan
from tests.histories.plan import draw as draw_memory

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
RECORDS = ("truncate", "compact", "recreate", REFILL, "grow")
WIRE_KINDS = (*BROKERS, *NETWORK, *LOG, *RECORDS, *PROCESSES, *CONNECTIONS, *ANSWERS, *HOST)
_GROUPS = (BROKERS, BROKERS, BROKERS, NETWORK, NETWORK, LOG, RECORDS, PROCESSES, CONNECTIONS + ANSWERS + HOST)
_KEPT = 0.4
"""Share of the kinds that a seed does not leave out."""
_EPOCH = 1_700_000_000


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    chance = Random(f"wire {seed}")
    plan = draw_memory(chance.randrange(2**32))
    nodes = chance.choice((1, 2, 3, 3))
    start = chance.choice(("earliest", "earliest", "earliest", "latest", "timestamp"))
    log = plan.settings.log.model_copy(
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
    kinds = {kind for kind in WIRE_KINDS if chance.random() < _KEPT}
    groups = [kept for group in _GROUPS if (kept := [kind for kind in group if kind in kinds])]
    faults = [_fault(chance, groups) for _ in range(chance.randint(2, 5) if groups else 0)]
    return replace(
        plan,
        seed=seed,
        settings=plan.settings.model_copy(update={"log": log}),
        events=max(4, plan.events // 2),
        replicas=chance.choice((1, 1, 2, 2, 3)),
        nodes=nodes,
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
    )


def _fault(chance: Random, groups: list[list[str]]) -> Fault:
    return Fault(
        at=round(chance.uniform(0.1, 3), 3),
        kind=chance.choice(chance.choice(groups)),
        seconds=round(chance.choice((0.05, 0.4, 1.0, 2.5)) * chance.uniform(0.5, 1.5), 3),
        who=chance.randrange(12),
        amount=round(chance.random(), 3),
        seam=chance.choice(SEAMS),
        nth=chance.randint(1, 12),
        turns=chance.randrange(6),
    )
