"""The reports in their order: each one's table is written as Parquet and handed to those that build on it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.storagelevel import StorageLevel

from proxy.reports import activity, ledger, overview, slo, timeline
from proxy.reports import cross_checks as checks
from proxy.reports.episode_verdicts import episode_verdicts
from proxy.reports.episodes import blind_time, episodes
from proxy.reports.files import ReportError
from proxy.reports.incidents import incidents
from proxy.reports.latency import latency
from proxy.reports.proof import events, proof, with_whereabouts
from proxy.reports.questions import NAMES, answers
from proxy.reports.records import Records, read_lines, with_records
from proxy.reports.tables import Row, Tables
from proxy.reports.together import together
from proxy.reports.traffic import dead_letters, traffic

BY_CLASS = ("run", "class")
BY_TYPE = ("run", "class", "type")


@dataclass(frozen=True)
class Span:
    """One run's first and last instant, in milliseconds since 1970."""

    start_ms: int
    end_ms: int


@dataclass(frozen=True)
class Analysis:
    """Everything the written report is made of."""

    tables: Tables
    spans: Mapping[str, Span]
    classes: Sequence[str]
    """From the most to the least important, as the bridge said; else by name."""
    lines: Mapping[str, Mapping[str, int]]
    """Records of each kind in each run."""
    width_s: int
    """Seconds that one point of a graph stands for."""


def analyse(
    spark: SparkSession, runs: Mapping[str, Sequence[str]], folder: str, say: Callable[[str], None]
) -> Analysis:
    """Read every run's files and make all tables under `folder`.

    Raises `ReportError` if no line is a record, whatever Spark raises if a file can't be read to its end.
    """
    tables = Tables(spark, folder, say)
    parsed = with_records(read_lines(spark, runs)).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        say("records")
        kinds = [row.asDict() for row in overview.lines_by_kind(parsed).collect()]
        spans = _spans(kinds, runs)
        records = Records(parsed, {run: span.start_ms for run, span in spans.items()})
        longest = max((span.end_ms - span.start_ms) / 1000 for span in spans.values())
        width_s = timeline.width_for(longest, max((kind["interval_s"] or 0.0 for kind in kinds), default=0.0))
        tables.add("rejected_lines", overview.rejected_lines(parsed), ["run", "file", "reason"])
        tables.add(
            "processes",
            overview.processes(records.of("start"), records.of("stop"), records.of("drops")),
            ["run", "started_s", "instance"],
        )
        heat_s = activity.heat_width(
            longest, width_s, max((kind["type_interval_s"] or 0.0 for kind in kinds), default=0.0)
        )
        _add_reports(tables, records, kinds, width_s, heat_s)
        starts = records.of("start").select("classes").distinct().limit(100).collect()
        lines = {run: {k["kind"]: k["lines"] for k in kinds if k["run"] == run and k["kind"]} for run in runs}
        return Analysis(tables, spans, _classes([row[0] for row in starts], tables), lines, width_s)
    finally:
        parsed.unpersist()


def _add_reports(tables: Tables, records: Records, kinds: list[Row], width_s: int, heat_s: int) -> None:
    classes, types, routes = records.of("class"), records.of("type"), records.of("route")
    verdicts = records.of("verdict")
    told = {name: {kind["run"] for kind in kinds if kind["kind"] == name} for name in ("produced", "consumed")}
    proven_runs = sorted(told["produced"] & told["consumed"])
    produced, consumed = (records.of(name).where(fn.col("run").isin(*proven_runs)) for name in told)
    seen = events(produced, consumed).persist(StorageLevel.MEMORY_AND_DISK)

    def add(name: str, make: Callable[[], DataFrame], order: Sequence[str]) -> Callable[[], object]:
        return lambda: tables.add(name, make(), order)

    processes = [row["run"] for row in tables.rows["processes"]]
    asked = answers(
        records,
        {kind["kind"] for kind in kinds},
        seen if proven_runs else None,
        are_several=len(processes) > len(set(processes)),
    )
    tables.remove(*set(NAMES).difference(one.name for one in asked))
    by_type = [*BY_TYPE, "measure"]
    over_time = [*BY_CLASS, "t_s"]
    proofs = (
        [
            add("proof_by_type", lambda: proof(seen, BY_TYPE), BY_TYPE),
            add("consumed_time_over_time", lambda: activity.consumed_time_over_time(consumed, width_s), over_time),
        ]
        if proven_runs
        else []
    )
    together(
        [
            lambda: _add_ledger(tables, records, {kind["kind"] for kind in kinds}),
            add("traffic_by_class", lambda: traffic(classes, BY_CLASS), BY_CLASS),
            add("traffic_by_type", lambda: traffic(types, BY_TYPE), BY_TYPE),
            *proofs,
            add("latency_by_type", lambda: latency(types, BY_TYPE), by_type),
            add("latency_by_class", lambda: latency(classes, BY_CLASS), [*BY_CLASS, "measure"]),
            add("dead_letters", lambda: dead_letters(classes, BY_CLASS), [*BY_CLASS, "reason"]),
            add("episodes", lambda: episodes(verdicts), ["run", "route", "from_s"]),
            add("blind_time", lambda: blind_time(verdicts), ["run", "route"]),
            add("incidents", lambda: incidents(records.of("incident")), ["run", "first_s", "name", "place"]),
            add("depth_over_time", lambda: timeline.depth_over_time(routes, width_s), ["run", "route", "t_s"]),
            add("bridge_time_over_time", lambda: timeline.bridge_time_over_time(classes, width_s), [*BY_CLASS, "t_s"]),
            add("control_over_time", lambda: timeline.control_over_time(verdicts, width_s), ["run", "route", "t_s"]),
            add(
                "rates_over_time", lambda: timeline.rates_over_time(verdicts, width_s), ["run", "route", "class", "t_s"]
            ),
            add("lag_over_time", lambda: timeline.lag_over_time(classes, width_s), over_time),
            add("traffic_over_time", lambda: activity.traffic_over_time(classes, width_s), over_time),
            add("routes_over_time", lambda: activity.routes_over_time(routes, width_s), ["run", "route", "t_s"]),
            add("types_over_time", lambda: activity.types_over_time(types, heat_s), ["class", "rank", "run", "from_s"]),
            *[add(*one) for one in asked],
        ]
    )
    by_episode = episode_verdicts(verdicts, tables.frames["episodes"])
    tables.add("episode_verdicts", by_episode, ["run", "from_s", "route", "number"])
    by_class = tables.frames["traffic_by_class"]
    all_checks = [
        checks.classes_against_types(by_class, tables.frames["traffic_by_type"]),
        checks.counts_against_buckets(classes, by_class),
        checks.routes_against_classes(routes, by_class),
        checks.stops_against_classes(records.of("stop"), classes),
    ]
    if proven_runs:
        whereabouts = with_whereabouts(proof(seen, BY_CLASS), by_class, timeline.left_in_log(classes, width_s))
        proven = tables.add("proof_by_class", whereabouts, BY_CLASS)
        all_checks.append(checks.bridge_against_proof(by_class, proven))
    else:
        tables.remove("proof_by_class", "proof_by_type", "consumed_time_over_time")
    if any(kind["slos"] for kind in kinds):
        _add_slo(tables, records, kinds, seen)
    else:
        tables.remove("slo")
    tables.add("cross_checks", checks.cross_checks(all_checks), ["run", "check", "subject"])
    seen.unpersist()


def _add_slo(tables: Tables, records: Records, kinds: list[Row], seen: DataFrame) -> None:
    """Add whether what is promised of a class held; `seen` are the events of producers and consumers."""
    promised = slo.targets(records.of("start"))
    serving = records.of("type").select("run", "class", "route").distinct()
    touched = slo.inside(tables.frames["episodes"], serving, records.start_ms)
    ends_ms = {
        run: max(kind["last_ms"] for kind in kinds if kind["run"] == run and kind["kind"]) for run in records.start_ms
    }
    measured = slo.bridge_times(records.of("class"), promised).unionByName(slo.consumed_times(seen, promised, ends_ms))
    tables.add("slo", slo.slo(measured, promised, touched), [*BY_CLASS, "scope"])


def _add_ledger(tables: Tables, records: Records, kinds: set[str]) -> None:
    """Add what became of every position, where there are records of positions."""
    names = ("ledger", "ledger_by_topic", "ledger_findings")
    if not kinds & {"assigned", "committed"}:
        tables.remove(*names)
        return
    told = ledger.Told(**{name: records.of(name) for name in ledger.Told.__dataclass_fields__})
    found = ledger.accounts(told).persist(StorageLevel.MEMORY_AND_DISK)
    place = ["run", "group", "topic", "topic_id", "partition", "first", "end"]
    for name, table, order in zip(
        names,
        (ledger.ledger_rows(found), ledger.by_topic(found), ledger.finding_rows(found)),
        ([*place, "outcome"], ["run", "group", "topic", "outcome", "reason"], [*place, "finding"]),
        strict=True,
    ):
        tables.add(name, table, order)
    found.unpersist()


def _spans(kinds: list[Row], runs: Mapping[str, Sequence[str]]) -> dict[str, Span]:
    """Return the span of each run: it starts with the first event due, where that is known, else the first record."""
    spans = {}
    for run in runs:
        found = [kind for kind in kinds if kind["run"] == run and kind["kind"]]
        if not found:
            rejected = sum(kind["lines"] for kind in kinds if kind["run"] == run)
            raise ReportError(f"{', '.join(runs[run])}: no metric records ({rejected} lines are none)")
        due = [kind["first_ms"] for kind in found if kind["kind"] == "produced"]
        start = due[0] if due else min(kind["first_ms"] for kind in found)
        spans[run] = Span(start, max(kind["last_ms"] for kind in found))
    return spans


def _classes(told: list[list[str]], tables: Tables) -> list[str]:
    """Return the classes in the bridge's order, those it did not tell of behind them by name."""
    rows = [row for name in ("traffic_by_class", "proof_by_class") for row in tables.rows.get(name, [])]
    present = {row["class"] for row in rows}
    ordered = dict.fromkeys(
        name for classes in sorted(told, key=lambda c: (-len(c), json.dumps(c))) for name in classes
    )
    return [name for name in ordered if name in present] + sorted(present - set(ordered))
