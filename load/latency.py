"""How long an event takes under open schedules, contenders in turn: spectra from the due instant to the consumer."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from hdrh.histogram import HdrHistogram

from load import machine
from load.open_run import PARTITIONS, TELLING, WARM_SECONDS, Field, Offer, observe
from load.spectra import draw, hgrm, histogram
from load.stack import Stack
from load.tables import aligned
from load.terminal import run, say

SECONDS = 30.0
OFFERS: Mapping[str, Offer] = {
    "256B": Offer(3_000, 256, SECONDS),
    "1KB": Offer(3_000, 1_024, SECONDS),
    "5KB": Offer(2_000, 5_120, SECONDS),
    "1KB-fast": Offer(20_000, 1_024, SECONDS),
    "1MB": Offer(100, 1_000_000, SECONDS),
}
CONTENDERS = ("tidegate", "mq-bridge")
PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99)


@dataclass(frozen=True)
class Run:
    """One contender once under one load."""

    contender: str
    load: str
    round: int
    cpu: float
    """Share of a core, user and system, of the contender."""
    rabbitmq_cpu: float
    kafka_cpu: float
    carried: float
    """Share of what was due that came in time."""
    is_saturated: bool
    response_ms: Mapping[str, float]
    """Percentiles, due instant to consumer; none if it was saturated."""
    lost: int
    repeated: int


def measure(stack: Stack, rounds: int, loads: Sequence[str], file: Path) -> int:
    """Run all, print the table, write the JSON, and spectra into the folder beside it that has its name.

    Return 1 if Tidegate lost or repeated an event of a load that it carried, else 0.
    Raises WorkerError, WireError or KafkaError when a contender or a broker fails.
    """
    about, runs, found = machine.describe(stack), list[Run](), dict[tuple[str, str], HdrHistogram]()
    names = [name for name in CONTENDERS if name != "mq-bridge" or find_spec("mq_bridge")]
    with tempfile.TemporaryDirectory(prefix="tidegate-latency-") as folder:
        field = Field(stack, Path(folder))
        for number in range(rounds):
            turn = number % len(names)
            for load in loads:
                for name in names[turn:] + names[:turn]:
                    one, spectrum = _one(field, name, load, number)
                    runs.append(one)
                    if not one.is_saturated:
                        found.setdefault((load, name), histogram([])).add(spectrum)
                    say(f"round {number + 1}, {load}, {name}: {_words(one)}")
    _write(file.with_suffix(""), found)
    record = about | {
        "measured": "latency",
        "offers": {load: asdict(OFFERS[load]) for load in loads},
        "partitions": PARTITIONS,
        "warm_seconds": WARM_SECONDS,
        "runs": [asdict(one) for one in runs],
    }
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(_table(runs, found))
    return 1 if any(one.contender == "tidegate" and _is_broken(one) for one in runs) else 0


def _one(field: Field, name: str, load: str, number: int) -> tuple[Run, HdrHistogram]:
    seen = run(observe(field, name, f"latency.{name}.{load}.{number}", OFFERS[load]))
    told = {} if seen.is_saturated else seen.percentiles(PERCENTILES)
    one = Run(
        name, load, number, seen.cpu, seen.rabbitmq_cpu, seen.kafka_cpu, seen.carried, seen.is_saturated, told,
        seen.lost, seen.repeated,
    )  # fmt: skip
    return one, histogram(seen.times_ms)


def _is_broken(one: Run) -> bool:
    return bool(one.repeated or (one.lost and not one.is_saturated))


def _write(folder: Path, found: Mapping[tuple[str, str], HdrHistogram]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for (load, name), spectrum in found.items():
        (folder / f"{load}.{name}.hgrm").write_text(hgrm(spectrum), encoding="utf-8")
    for load in dict.fromkeys(load for load, _ in found):
        offer, here = OFFERS[load], {name: one for (of, name), one in found.items() if of == load}
        draw(folder / f"{load}.png", f"{offer.size:,} B at {offer.rate:,}/s, {PARTITIONS} partitions", here)


def _words(one: Run) -> str:
    return f"saturated, {one.carried:.0%} came" if one.is_saturated else f"{one.cpu:.1%} of a core, {one.response_ms}"


def _table(runs: Sequence[Run], found: Mapping[tuple[str, str], HdrHistogram]) -> str:
    """Return percentiles of all rounds together; a load that nobody carried is told as saturated."""
    rows = [["", "rounds", "saturated", *(f"P{share:g} ms" for share in PERCENTILES)]]
    for load, name in dict.fromkeys((one.load, one.contender) for one in runs):
        of = [one for one in runs if (one.load, one.contender) == (load, name)]
        spectrum = found.get((load, name)) or histogram([])
        known = {share: spectrum.get_value_at_percentile(share) / 1000 for share in PERCENTILES}
        told = [share for share in PERCENTILES if spectrum.get_total_count() * (100 - share) / 100 >= TELLING]
        rows.append(
            [
                f"{load} {name}", str(len(of)), str(sum(one.is_saturated for one in of)),
                *(f"{known[share]:.1f}" if share in told else "-" for share in PERCENTILES),
            ]
        )  # fmt: skip
    return aligned(rows)
