"""The ledger of a made-up fleet with every fault, against what its model knows of every position."""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from load.metric_fleet import Plan, faults, make
from tests.reports.ledger.books import KINDS, ledger_of
from tests.reports.ledger.model import Row

PLAN = Plan(replicas=3, types=20, active=16, minutes=5, seed=1, faults=faults(["all"]))


def records_of(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the records of positions in all files, one of a name once."""
    files = {path.name: path for part in ("again", "late", "logs") for path in (folder / part).rglob("*.jsonl*")}
    for path in files.values():
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for line in text.splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and record.get("kind") in KINDS and record.get("v") == 2:
                yield record


def named(row: Row) -> str:
    return row.name if row.reason is None else f"{row.name}:{row.reason}"


def wrong(rows: list[Row], partition: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is not so in a partition's ledger.

    What came to the log after the last assignment is in no record: nobody can say that it is still there.
    """
    found = Counter[str]()
    for row in rows:
        found[named(row)] += row.positions
    wanted = Counter(partition["positions"])
    known, there = found.pop("in_log", 0), wanted.pop("in_log", 0)
    if found != wanted or known > there:
        yield f"{partition['topic_id']}-{partition['partition']} has {found}, {known}, it is {wanted}, {there}"
    truth = {at: outcome for first, end, outcome in partition["ranges"] for at in range(first, end)}
    exact = [(at, row) for row in rows if row.positions == row.end - row.first for at in range(row.first, row.end)]
    for at, row in exact:
        if truth.get(at) != named(row):
            yield f"{partition['topic_id']}-{partition['partition']}, {at} is {named(row)}, it is {truth.get(at)}"


def test_the_ledger_is_what_happened_when_a_fleet_has_every_fault(spark: Any, tmp_path: Path) -> None:
    truth = make(tmp_path, PLAN, workers=1)
    rows, findings = ledger_of(spark, {"fleet": list(records_of(tmp_path))})
    of: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        of[row.key[3], row.key[4]].append(row)
    partitions = truth["partitions"]
    assert of.keys() <= {(one["topic_id"], one["partition"]) for one in partitions}
    assert [text for one in partitions for text in wrong(of[one["topic_id"], one["partition"]], one)] == []
    conflicts = {(one["topic_id"], one["partition"], one["first"], one["end"]) for one in truth["conflicts"]}
    assert conflicts
    assert {(*one.key[3:], one.first, one.end) for one in findings} == conflicts
    outcomes = {row.name for row in rows}
    assert outcomes >= {"delivered", "expired", "dead_lettered", "skipped", "discarded", "truncated", "unrecorded"}
