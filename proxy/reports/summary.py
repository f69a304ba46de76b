"""What a report says of a run in short: a sentence for each class, one on its congestion, one on the ledger."""

from proxy.reports.figures import count, milliseconds, seconds
from proxy.reports.findings import Findings
from proxy.reports.ledger import sentence
from proxy.reports.tables import Row


def summary(found: Findings, run: str) -> list[tuple[str, str]]:
    """Return what a sentence is of (a class, `ledger` or nothing) and the sentence, the most important class first."""
    of_classes = [(row["class"], _of_class(row)) for row in found.per_class if row["run"] == run and _has_events(row)]
    totals, doubts = found.of("ledger_by_topic", run=run), len(found.of("ledger_findings", run=run))
    of_ledger = [("ledger", sentence(totals, doubts))] if totals else []
    return [*of_classes, ("", _of_episodes(found.of("episodes", run=run))), *of_ledger]


def _has_events(row: Row) -> bool:
    return any(row[name] for name in ("received", "confirmed", "produced", "dead_lettered"))


def _of_class(row: Row) -> str:
    proven = row["produced"] is not None
    told = [f"{count(row['produced'])} events" if proven else f"{count(row['confirmed'])} events confirmed"]
    told += [
        f"{measure} time P99 {milliseconds(row[field])}"
        for measure, field in (("consumed", "consumed_p99_ms"), ("bridge", "bridge_p99_ms"))
        if row[field] is not None
    ]
    if row["left_in_log"]:
        told.append(f"{count(row['left_in_log'])} still in the log")
    if row["dead_lettered"]:
        told.append(f"{count(row['dead_lettered'])} dead-lettered")
    if row["duplicated"]:
        told.append(f"{count(row['duplicated'])} delivered more than once")
    if proven:
        told.append(f"{count(row['lost'])} lost" if row["lost"] else "nothing lost")
    return ", ".join(told)


def _of_episodes(episodes: list[Row]) -> str:
    if not episodes:
        return "Never congested."
    worst = max(episodes, key=lambda row: row["seconds"])
    number = "One episode" if len(episodes) == 1 else f"{count(len(episodes))} episodes"
    longest = "" if len(episodes) == 1 else "the longest "
    place = f"{longest}from {seconds(worst['from_s'])} to {seconds(worst['to_s'])} on route {worst['route']}"
    queues = f" of {worst['queues']}" if worst["queues"] else ""
    return f"{number} of congestion, {place}, cause: {worst['causes']}{queues}."
