"""What a bridge costs at everyday rates, and how long an event takes: an open schedule, contenders in turn."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from load import machine
from load.open_run import CONTENDERS, Field, Offer, observe
from load.stack import Stack
from load.tables import aligned
from load.terminal import run, say

RATES = (200, 2_000, 8_000)
"""Events a second."""
SIZE = 256
SECONDS = 12.0
PERCENTILES = (50.0, 99.0, 99.9)
_KEYS = tuple(f"p{share:g}" for share in PERCENTILES)


@dataclass(frozen=True)
class Run:
    """One contender once at one rate."""

    contender: str
    rate: int
    round: int
    cpu: float
    """Share of a core, user and system, of the contender."""
    rabbitmq_cpu: float
    kafka_cpu: float
    response_ms: Mapping[str, float]
    """Percentiles, due instant to consumer."""
    switches: float
    """Times a second at which the contender gave up a core by itself: how often it was woken."""
    lost: int
    repeated: int


def measure(stack: Stack, rounds: int, file: Path, rates: tuple[int, ...] = RATES) -> int:
    """Run all, print the table, write the JSON; return 0 if nothing was lost or repeated, else 1.

    Raises WorkerError, WireError or KafkaError when a contender or a broker fails.
    """
    about, runs = machine.describe(stack), list[Run]()
    names = [name for name in CONTENDERS if name != "mq-bridge" or find_spec("mq_bridge")]
    with tempfile.TemporaryDirectory(prefix="tidegate-cost-") as folder:
        field = Field(stack, Path(folder))
        for number in range(rounds):
            turn = number % len(names)
            for rate in rates:
                for name in names[turn:] + names[:turn]:
                    runs.append(one := _one(field, name, rate, number))
                    say(f"round {number + 1}, {rate}/s, {name}: {one.cpu:.1%} of a core, {dict(one.response_ms)} ms")
    file.parent.mkdir(parents=True, exist_ok=True)
    record = about | {"measured": "cost", "size": SIZE, "runs": [asdict(one) for one in runs]}
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(_table(runs))
    return 1 if any(one.lost or one.repeated for one in runs) else 0


def _one(field: Field, name: str, rate: int, number: int) -> Run:
    seen = run(observe(field, name, f"cost.{name}.{rate}.{number}", Offer(rate, SIZE, SECONDS)))
    return Run(
        name, rate, number, seen.cpu, seen.rabbitmq_cpu, seen.kafka_cpu, seen.percentiles(PERCENTILES), seen.switches,
        seen.lost, seen.repeated,
    )  # fmt: skip


def _table(runs: list[Run]) -> str:
    rows = [["", "of a core", "RabbitMQ", "Kafka", "woken/s", *(f"P{share:g} ms" for share in PERCENTILES)]]
    for rate in dict.fromkeys(one.rate for one in runs):
        for name in dict.fromkeys(one.contender for one in runs):
            of = [one for one in runs if (one.contender, one.rate) == (name, rate)]
            shares = [median(getattr(one, part) for one in of) for part in ("cpu", "rabbitmq_cpu", "kafka_cpu")]
            woken = median(one.switches for one in of)
            told = [[one.response_ms[key] for one in of if key in one.response_ms] for key in _KEYS]
            times = [f"{median(one):.1f}" if one else "-" for one in told]
            rows.append([f"{name} {rate}/s", *(f"{share:.1%}" for share in shares), f"{woken:,.0f}", *times])
    return aligned(rows)
