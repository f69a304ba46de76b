"""The findings as one plain document: what report.json holds, and what page, graphs and terminal are made from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from proxy.reports.analysis import Analysis
from proxy.reports.changes import policies
from proxy.reports.cross_checks import CLASSES_AGAINST_TYPES
from proxy.reports.ledger import sentence
from proxy.reports.overview import CUT_SHORT
from proxy.reports.records import UNKNOWN
from proxy.reports.sentences import of_targets
from proxy.reports.shadow import sentences as of_shadow
from proxy.reports.tables import Row

VERSION = 1
NAMED = 5
"""So many event types, or settings, are named in a notice."""


@dataclass(frozen=True)
class Findings:
    """The document, with its parts at hand."""

    made_at: str
    runs: Sequence[Row]
    classes: Sequence[str]
    per_class: Sequence[Row]
    """One row for each class and run: counts, bridge time and, where known, consumed time; in order of class."""
    tables: Mapping[str, Sequence[Row]]
    totals: Mapping[str, int]
    sentences: Sequence[str]
    """For each class and run that something is promised of, and of what a policy in shadow would have held back."""
    notices: Sequence[str]
    width_s: int

    def of(self, table: str, **wanted: Any) -> list[Row]:
        """Return a table's rows with these values; none if the table was not made."""
        return [row for row in self.tables.get(table, []) if all(row[key] == value for key, value in wanted.items())]

    @property
    def has_proof(self) -> bool:
        """Whether producers' and consumers' records were there."""
        return "proof_by_class" in self.tables

    def as_document(self) -> dict[str, Any]:
        """Return what report.json holds."""
        return {
            "v": VERSION,
            "made_at": self.made_at,
            "runs": self.runs,
            "classes": self.classes,
            "per_class": self.per_class,
            "sentences": self.sentences,
            "notices": self.notices,
            "seconds_per_point": self.width_s,
            "tables": {name: {"total": self.totals[name], "rows": rows} for name, rows in self.tables.items()},
        }


def findings(analysis: Analysis, unreadable: Mapping[str, Sequence[str]], made_at: datetime) -> Findings:
    """Gather what was found; `unreadable` are the files of each run that could not be read to their end."""
    rows = analysis.tables.rows
    rank = {name: number for number, name in enumerate(analysis.classes)}
    order = list(analysis.spans)
    for table in rows.values():
        if table and "class" in table[0]:
            table.sort(key=lambda row: (rank.get(row["class"], len(rank)), order.index(row["run"])))
    runs = [_run(analysis, run) for run in analysis.spans]
    return Findings(
        made_at=made_at.astimezone(UTC).isoformat(timespec="seconds"),
        runs=runs,
        classes=analysis.classes,
        per_class=[_of_class(rows, run, name) for name in analysis.classes for run in analysis.spans],
        tables=rows,
        totals=analysis.tables.totals,
        sentences=[*of_targets(rows.get("slo", []), runs), *of_shadow(rows.get("shadow", []), runs)],
        notices=[text for run in analysis.spans for text in _notices(analysis, run, unreadable.get(run, ()))],
        width_s=analysis.width_s,
    )


def _run(analysis: Analysis, run: str) -> Row:
    span = analysis.spans[run]
    processes = [row for row in analysis.tables.rows["processes"] if row["run"] == run]
    routes = next((row["routes"] for row in processes if row["routes"]), None)
    changed = [row for row in analysis.tables.rows.get("settings", ()) if row["run"] == run]
    return {
        "name": run,
        "started_at": _utc(span.start_ms),
        "ended_at": _utc(span.end_ms),
        "seconds": (span.end_ms - span.start_ms) / 1000,
        "processes": len(processes),
        "versions": sorted({row["version"] for row in processes if row["version"]}),
        "routes": routes,
        "policies": policies(json.loads(routes or "{}"), changed),
        "records": dict(analysis.lines[run]),
    }


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _of_class(rows: Mapping[str, Sequence[Row]], run: str, name: str) -> Row:
    key = {"run": run, "class": name}
    traffic = _one(rows, "traffic_by_class", **key)
    bridge = _one(rows, "latency_by_class", **key, measure="bridge time")
    proof = _one(rows, "proof_by_class", **key)
    counts = ("received", "confirmed", "dead_lettered", "nacked", "possible_duplicates", "overtaken")
    proven = ("produced", "delivered", "missing", "left_in_log", "lost", "duplicated", "unexpected")
    figures = ("p50_ms", "p99_ms", "p999_ms", "max_ms")
    return {
        **key,
        **{count: traffic.get(count, 0) for count in counts},
        **{count: proof.get(count) for count in proven},
        **{f"bridge_{figure}": bridge.get(figure) for figure in figures},
        **{f"consumed_{figure}": proof.get(f"consumed_{figure}") for figure in figures},
    }


def _one(rows: Mapping[str, Sequence[Row]], table: str, **wanted: str) -> Row:
    found = (row for row in rows.get(table, ()) if all(row[key] == value for key, value in wanted.items()))
    return next(found, {})


def _notices(analysis: Analysis, run: str, unreadable: Sequence[str]) -> list[str]:
    """Return what a reader must know before believing the figures of a run."""
    tables, kinds = analysis.tables.rows, analysis.lines[run]
    told = []
    rejected = [row for row in tables["rejected_lines"] if row["run"] == run]
    now = {path.rpartition("/")[2] for path in unreadable}  # a store has just noted them by name, too
    noted = {row["file"] for row in rejected if row["reason"] == CUT_SHORT}
    if cut := [*unreadable, *sorted(noted - now)]:
        told.append(f"could not be read to the end and were left out: {', '.join(cut)}")
    told += _left_out(rejected)
    processes = [row for row in tables["processes"] if row["run"] == run]
    if dropped := sum(row["dropped_records"] for row in processes):
        told.append(f"the bridge dropped {dropped:,} records (buffer full or disk error): counts are too low")
    if files := sum(row["dropped_files"] for row in processes):
        told.append(f"the bridge dropped {files:,} finished files to stay within its bytes: counts are too low")
    if not kinds.get("class"):
        told.append("no class records: there is nothing to say of traffic and bridge time")
    unended = sum(row["started_s"] is not None and row["stopped_s"] is None for row in processes)
    if unended and run not in analysis.going_on:
        told.append(f"{unended} of {len(processes)} processes left no stop record; their last interval may be missing")
    if not (kinds.get("produced") and kinds.get("consumed")):
        told.append("no records of producers and consumers: lost, duplicated and consumed time are not known")
    if ahead := sum(row["ahead_of_clock"] for row in tables["traffic_by_class"] if row["run"] == run):
        told.append(f"{ahead:,} events were confirmed before their own timestamp: a producer's clock is ahead")
    by_class = [row for row in tables["traffic_by_class"] if row["run"] == run and row["old"]]
    if by_class:
        old = ", ".join(f"{row['old']:,} of {row['confirmed']:,} of {row['class']}" for row in by_class)
        told.append(f"events of an old backlog went behind what is live; bridge time has their age: {old}")
    told += [*_of_ledger(tables, run), *_of_stuck(tables, run), *_of_settings(tables, run), *_of_people(tables, run)]
    wrong = [row for row in tables["cross_checks"] if row["run"] == run and row["difference"]]
    if wrong:
        some = [f"{row['check']}, of {row['subject']}: {row['left']:,}, {row['right']:,}" for row in wrong]
        is_expected = unended and all(row["check"] == CLASSES_AGAINST_TYPES for row in wrong)
        why = ", as records of types tell of longer intervals, and some last ones are missing" if is_expected else ""
        told.append(f"{len(wrong)} cross-checks differ{why} ({'; '.join(_few(some))})")
    return [f"{run}: {text}" for text in told]


def _of_ledger(tables: Mapping[str, Sequence[Row]], run: str) -> list[str]:
    totals = [row for row in tables.get("ledger_by_topic", ()) if row["run"] == run]
    findings = sum(row["run"] == run for row in tables.get("ledger_findings", ()))
    return [f"ledger: {sentence(totals, findings)}"] if totals else []


def _of_stuck(tables: Mapping[str, Sequence[Row]], run: str) -> list[str]:
    stuck = sorted({row["type"] for row in tables.get("stuck", ()) if row["run"] == run})
    names = ", ".join(stuck[:NAMED]) + (" ..." if len(stuck) > NAMED else "")
    return [f"event types that stood still while events waited: {len(stuck)} ({names})"] if stuck else []


def _of_people(tables: Mapping[str, Sequence[Row]], run: str) -> list[str]:
    """Return what people did, one after the other."""
    told = []
    for row in tables.get("actions", ()):
        if row["run"] == run:
            events = "" if row["events"] is None else f", {row['events']:,} events"
            why = f" ({row['why']})" if row["why"] else ""
            told.append(f"{row['action']} of {row['subject']}{events} by {row['by']}{why}")
    return [f"what people did: {len(told)} ({'; '.join(_few(told))}; table actions)"] if told else []


def _few(told: Sequence[str]) -> list[str]:
    return [*told[:NAMED], *(["..."] if len(told) > NAMED else [])]


def _of_settings(tables: Mapping[str, Sequence[Row]], run: str) -> list[str]:
    """Return which settings came into force in the time that is told of, those of several replicas once."""
    found: dict[str, None] = {}
    for row in tables.get("settings", ()):
        if row["run"] == run and row["at_s"] >= 0:
            found.setdefault(f"{row['what']} {row['before'] or 'none'} -> {row['after'] or 'none'}")
    if not found:
        return []
    named = ", ".join(list(found)[:NAMED]) + (" ..." if len(found) > NAMED else "")
    return [
        f"settings that changed meanwhile: {len(found)} ({named}; table settings); a target judges all, the last one"
    ]


def _left_out(rows: Sequence[Row]) -> list[str]:
    told = []
    if rejected := sum(row["lines"] for row in rows if row["reason"] != UNKNOWN):
        told.append(f"{rejected:,} lines are no records and were left out (listed below)")
    if unknown := sum(row["lines"] for row in rows if row["reason"] == UNKNOWN):
        told.append(f"{unknown:,} records are of kinds that this version does not know; nothing is made of them")
    return told
