"""Records of positions in short, and the ledger that is made of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql.types import LongType, StringType, StructField, StructType

from proxy.reports import schema
from proxy.reports.ledger import Told, accounts
from proxy.reports.ledger.claims import KEY
from tests.reports.ledger.model import Row

KINDS = ("assigned", "committed", "incident", "skip", "rewind", "discard", "redrive")


def part(
    first: int, end: int, delivered: int | None = None, *letters: Mapping[str, Any], **changes: Any
) -> dict[str, Any]:
    """A committed range; all that is not dead-lettered was delivered, if nothing else is said."""
    reasons: dict[str, int] = {}
    for one in letters:
        reasons[one["reason"]] = reasons.get(one["reason"], 0) + one["count"]
    if delivered is None:
        delivered = end - first - sum(reasons.values())
    told = {"partition": 0, "epoch": 1, "topic_id": "id", "first": first, "end": end, "commits": 1}
    return {**told, "delivered": delivered, "dead_lettered": reasons, "letters": list(letters), **changes}


def letter(first: int, end: int, reason: str = "unroutable", count: int | None = None) -> dict[str, Any]:
    """A range of dead letters, one at each position if nothing else is said."""
    return {"first": first, "end": end, "count": end - first if count is None else count, "reason": reason}


def ledger_of(spark: Any, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[list[Row], list[Row]]:
    """Return ledger and findings of the records of many runs."""
    found = accounts(Told(**{kind: _frame(spark, kind, runs) for kind in KINDS}))
    rows: tuple[list[Row], list[Row]] = ([], [])
    for one in found.collect():
        key = tuple(one[name] for name in KEY)
        row = Row(key, one["first"], one["end"], one["name"], one["reason"], one["positions"])  # type: ignore[arg-type]
        rows[one["is_finding"]].append(row)
    return rows


def _frame(spark: Any, kind: str, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Any:
    """Return the records of a kind as `Records.of` does, without the way over text: it costs a second for each run."""
    own = [field.name for field in schema.KINDS[kind].fields]
    envelope = [StructField("run", StringType()), StructField("instance", StringType())]
    fields = [StructField(field.name, field.dataType) for field in schema.KINDS[kind].fields]
    rows = [
        (run, record["instance"], record["at_ms"], *[record.get(name) for name in own])
        for run, records in runs.items()
        for record in records
        if record["kind"] == kind
    ]
    return spark.createDataFrame(rows, StructType([*envelope, StructField("at_ms", LongType()), *fields]))


def short(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Return first, end, what it is, how many of them if not all."""
    return sorted(
        (
            one.first,
            one.end,
            f"{one.name} {one.reason}" if one.reason else one.name,
            *((one.positions,) if one.positions != one.end - one.first else ()),
        )
        for one in rows
    )
