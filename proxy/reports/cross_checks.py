"""Sums that must agree because two kinds of records tell of the same events; each is shown, agreeing or not.

At the edges of a window records of different intervals do not tell of the same events: there only those are compared
that are written together.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proxy.reports.latency import PUBLISH

Row = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]

CLASSES_AGAINST_TYPES = "class records = sum of type records"
_FIELDS = ("received", "confirmed", "nacked", "unknown", "dead_lettered", "possible_duplicates")


def cross_checks(checks: Iterator[Row]) -> list[Row]:
    """Return all checks as rows in order: run, check, subject, left, right, difference."""
    rows = [one | {"difference": one["left"] - one["right"]} for one in checks]
    return sorted(rows, key=lambda row: (row["run"], row["check"], row["subject"]))


def classes_against_types(by_class: Rows, types_of_class: Rows) -> Iterator[Row]:
    """Compare each count of a class with the sum over its event types; runs without type records are left out."""
    sums = {(row["run"], row["class"]): row for row in types_of_class}
    told = {run for run, _ in sums}
    for row in by_class:
        for name in _FIELDS if row["run"] in told else ():
            right = sums.get((row["run"], row["class"]), {}).get(name, 0)
            subject = f"{row['class']} {name.replace('_', ' ')}"
            yield _check(row["run"], CLASSES_AGAINST_TYPES, subject, row[name], right)


def counts_against_buckets(by_class: Rows, latency_by_class: Rows) -> Iterator[Row]:
    """Compare the events confirmed with the samples in the buckets of publish latency."""
    samples = {(row["run"], row["class"]): row["samples"] for row in latency_by_class if row["measure"] == PUBLISH}
    for row in by_class:
        right = samples.get((row["run"], row["class"]), 0)
        yield _check(row["run"], "confirmed = samples of publish latency", row["class"], row["confirmed"], right)


def routes_against_classes(routes: Rows, by_class: Rows) -> Iterator[Row]:
    """Compare what all routes confirmed with what all classes confirmed."""
    sums = _sums(by_class, "run")
    for row in routes:
        if (row["run"],) in sums:
            yield _check(row["run"], "route records = class records", "confirmed", row["confirmed"], sums[row["run"],])


def stops_against_classes(processes: Rows, by_instance: Rows) -> Iterator[Row]:
    """Compare what a process that ended in order says it confirmed with the sum of its intervals.

    One of which no start is there has told of more than is read.
    """
    sums = _sums(by_instance, "run", "instance")
    for row in processes:
        if row["started_s"] is not None and row["confirmed"] is not None:
            right = sums.get((row["run"], row["instance"]), 0)
            subject = f"confirmed, {row['instance']}"
            yield _check(row["run"], "stop record = sum of class records", subject, row["confirmed"], right)


def bridge_against_proof(by_class: Rows, proven: Rows) -> Iterator[Row]:
    """Compare what the bridge did with what was produced and consumed, where that is known.

    What is produced is done with by the bridge or still in the log; what it received and did not finish is in the log,
    too. Each event consumed counts once here. What was sent again after a restart, or waits in a queue, makes a
    difference.
    """
    sums = _sums(by_class, "run", "class")
    for row in proven:
        confirmed = sums.get((row["run"], row["class"]), 0)
        settled = confirmed + row["dead_lettered"] + row["left_in_log"]
        name = "confirmed + dead-lettered + still in the log = produced"
        yield _check(row["run"], name, row["class"], settled, row["produced"])
        seen = row["delivered"] + row["unexpected"]
        yield _check(row["run"], "events confirmed = consumed", row["class"], confirmed, seen)


def _sums(rows: Rows, *keys: str) -> dict[tuple[str, ...], int]:
    """Return what was confirmed, by keys."""
    sums: dict[tuple[str, ...], int] = defaultdict(int)
    for row in rows:
        sums[tuple(row[key] for key in keys)] += row["confirmed"]
    return sums


def _check(run: str, check: str, subject: str, left: int, right: int) -> Row:
    return {"run": run, "check": check, "subject": subject, "left": left, "right": right}
