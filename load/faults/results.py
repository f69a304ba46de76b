"""Results as text and as JSON. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from load.faults.ledger import Counts
from load.faults.plan import Kind, named
from load.faults.replicas import IN_FLIGHT, SESSION_SECONDS, UNCOMMITTED
from load.faults.verdicts import Round, broken, rows
from load.tables import aligned


@dataclass(frozen=True)
class Past:
    """What the JSON of an interrupted session tells."""

    rounds: list[Round] = field(default_factory=list)
    whole: Counts = field(default_factory=Counts)
    returned: int = 0


HEADING = [
    "fault", "rounds", "plain client", "flows without", "flows after", "ready after", "caught up",
    "duplicates", "in a partition", "late",
    "dead letters", "dropped", "lost",
]  # fmt: skip


def line(told: Round) -> str:
    """Return one round in a line."""
    words = "; ".join(broken(told)) or "as promised"
    outage = [
        f"{told.node} lost",
        f"a plain client through after {_seconds(told.through)}",
        f"flowed without it after {_seconds(told.during)}",
        "none is connected with it" if told.said is None else f"named by {told.said}",
    ]
    parts = [
        *(outage if told.kind.is_outage else []),
        f"lasted {told.seconds:.1f} s",
        f"flows after {_seconds(told.flow)}",
        f"ready after {_seconds(told.ready)}",
    ]
    parts += [
        f"caught up after {_seconds(told.caught_up)}",
        f"{told.counts.duplicates} duplicates",
        *(f"{count} late in {name}" for name, count in told.late.items() if count),
        *([f"{told.counts.dead} dead letters"] if told.counts.dead else []),
        *([f"{told.counts.gone - told.with_queue} dropped by the log"] if told.counts.gone > told.with_queue else []),
        *([f"{told.with_queue} gone with the queue"] if told.with_queue else []),
        f"load {told.load:.1f}",
    ]
    return f"{told.number:3}  {told.kind.name}: {', '.join(parts)}: {words}"


def text(rounds: Sequence[Round], whole: Counts, returned: int) -> str:
    """Return the table of all rounds by kind, and what was broken."""
    table = [HEADING]
    found = rows(rounds)
    table += [
        [
            row.kind.name,
            str(row.rounds),
            _seconds(row.worst_through) if row.kind.is_outage else "",
            _seconds(row.worst_during) if row.kind.is_outage else "",
            _seconds(row.worst_flow),
            _seconds(row.worst_ready),
            _seconds(row.worst_caught_up),
            *(
                f"{figure:,}"
                for figure in (row.duplicates, row.worst_duplicates, row.late, row.dead, row.gone, row.lost)
            ),
        ]
        for row in found
    ]
    words = [f"{row.kind.name}, {one}" for row in found for one in row.broken]
    lost = sum(row.lost for row in found)
    sums = (
        f"{whole.sent:,} events sent, {whole.kept:,} of them kept by Kafka: {whole.arrived:,} arrived, "
        f"{whole.dead:,} are dead letters, {whole.gone:,} were dropped by the log or went with a deleted queue, "
        f"{lost:,} are lost. {whole.duplicates:,} came more than once ({returned:,} more were given out again by "
        "RabbitMQ itself)."
    )
    return "\n".join([aligned(table), "", sums, *(words or ["Every promise held."])])


def record(rounds: Sequence[Round], whole: Counts, returned: int, seed: int) -> dict[str, Any]:
    """Return everything for the JSON."""
    return {
        "measured": "faults",
        "seed": seed,
        "bounds": {"in_flight": IN_FLIGHT, "uncommitted": UNCOMMITTED, "session_seconds": SESSION_SECONDS},
        "kinds": {row.kind.name: {**asdict(row), "kind": None, "goal": row.kind.goal} for row in rows(rounds)},
        "rounds": [_round(one) for one in rounds],
        "whole": whole._asdict(),
        "returned_by_rabbitmq": returned,
        "lost": sum(one.lost_count for one in rounds),
        "broken": [words for one in rounds for words in broken(one)],
    }


def read(told: dict[str, Any]) -> Past:
    """Return what a JSON file of `record` tells. Raises KeyError or TypeError if it is none."""
    return Past([_round_of(one) for one in told["rounds"]], Counts(**told["whole"]), told["returned_by_rabbitmq"])


def _round_of(told: dict[str, Any]) -> Round:
    known = {one.name for one in fields(Round)}
    kept = {name: value for name, value in told.items() if name in known}
    return Round(**kept | {"kind": named(told["kind"]), "counts": Counts(**told["counts"])})


def what(kinds: Sequence[Kind]) -> str:
    """Return the kinds of faults, one a line."""
    width = max(len(kind.name) for kind in kinds)
    return "\n".join(f"  {kind.name.ljust(width)}  {kind.what}" for kind in kinds)


def _round(told: Round) -> dict[str, Any]:
    return asdict(told) | {
        "kind": told.kind.name,
        "counts": told.counts._asdict(),
        "recovery": told.recovery,
        "broken": broken(told),
    }


def _seconds(value: float | None) -> str:
    return "not" if value is None else f"{value:.1f} s"
