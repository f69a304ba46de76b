"""The reports in their order: each one's table is written as Parquet and handed to those that build on it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.storagelevel import StorageLevel

from proxy.reports import activity, changes, ledger, overview, slo, timeline
from proxy.reports import cross_checks as checks
from proxy.reports import layers as layered
from proxy.reports.episode_verdicts import episode_verdicts
from proxy.reports.episodes import blind_time, episodes
from proxy.reports.facts import BY_MINUTE, Facts, facts_of
from proxy.reports.incidents import incidents
from proxy.reports.latency import merged
from proxy.reports.latency_tables import of_latencies
from proxy.reports.layers import Layers, Span
from proxy.reports.places import Places, join
from proxy.reports.proof import alike, events, proof_by_level, with_whereabouts
from proxy.reports.questions import NAMES, answers
from proxy.reports.records import Records
from proxy.reports.shadow import shadow
from proxy.reports.tables import BY_CLASS, BY_TYPE, Part, Tables, same
from proxy.reports.together import together
from proxy.reports.traffic import SUMMED, dead_letters, traffic_by_level

_PROVEN = ("produced", "delivered", "missing", "duplicated", "unexpected")
_CONSUMED = ("consumed_p50_ms", "consumed_p99_ms", "consumed_p999_ms", "consumed_max_ms")
EPISODE = "run string, route string, from_s double, to_s double, seconds double"
CHECKED = {"run": "string", "check": "string", "subject": "string", "left": "int64", "right": "int64"}
SOMETIMES = (
    *("ledger", "ledger_by_topic", "ledger_findings", "proof_by_class", "proof_by_type", "consumed_time_over_time"),
    *("slo", "shadow", "settings"),
)
"""Tables that a report has where there are records of positions, of producers and consumers, targets, of policies in
shadow, or of settings that changed."""
_SCRATCH = "_layers"
"""Beside the tables; what begins so is no table for Spark."""

Task = Callable[[], object]


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
    going_on: frozenset[str]
    """See `Layers`."""


def analyse(
    spark: SparkSession, runs: Mapping[str, Sequence[str]], folder: str, say: Callable[[str], None]
) -> Analysis:
    """Read every run's files and make all tables under `folder`, which keeps their records meanwhile.

    Raises `ReportError` if no line is a record, whatever Spark raises if a file can't be read to its end.
    """
    scratch = join(folder, _SCRATCH)
    try:
        return tabled(spark, layered.read(spark, runs, scratch, say), folder, say)
    finally:
        Places(spark).delete(scratch)


def tabled(spark: SparkSession, layers: Layers, folder: str, say: Callable[[str], None]) -> Analysis:
    """Make all tables of the layers under `folder`."""
    told = layers.taken.kinds
    tables = Tables(spark, folder, say)
    start_ms = {run: span.start_ms for run, span in layers.spans.items()}
    facts = Facts(spark, facts_of(spark, layers.records) if layers.facts is None else layers.facts, start_ms)
    records = Records(layers.records, start_ms)
    rejected = dict.fromkeys(("run", "file", "reason"), "string") | {"lines": "int64", "sample": "string"}
    tables.put_rows("rejected_lines", layers.taken.rejected, rejected)
    tables.remove(*SOMETIMES)
    kinds = {kind["kind"] for kind in told} & set(layers.records)
    runs_of = {name: {row["run"] for row in told if row["kind"] == name} for name in ("produced", "consumed")}
    proven = sorted(set.intersection(*runs_of.values())) if kinds >= runs_of.keys() else []
    seen = _seen(records, proven)
    over_time = facts.of("latencies")
    latencies = merged(over_time).persist(StorageLevel.MEMORY_AND_DISK)
    together(
        [
            *([lambda: _add_ledger(tables, records)] if kinds & {"assigned", "committed"} else []),
            *(_of_proof(tables, records, seen, proven, layers.width_s) if seen is not None else []),
            *of_latencies(tables, latencies, over_time, layers),
            *_of_records(tables, layers, records, kinds, latencies, seen),
            *_of_facts(tables, facts, layers.width_s),
        ]
    )
    _add_checks(tables, is_cut=layers.is_cut)
    verdicts = episode_verdicts(records.of("verdict"), tables.frame("episodes", EPISODE))
    tables.add("episode_verdicts", verdicts, ["run", "from_s", "route", "number"])
    changed = tables.rows.get("settings", ())
    if any(row["slos"] for row in tables.rows["processes"]) or any(map(changes.is_target, changed)):
        by_minute = facts.of(BY_MINUTE)
        serving = latencies.where("source = 'type'").select("run", "class", "route").distinct()
        _add_slo(tables, layers, records, by_minute, serving, seen)
    for frame in filter(None, (latencies, seen)):
        frame.unpersist()
    lines = {run: {k["kind"]: k["lines"] for k in told if k["run"] == run} for run in layers.spans}
    return Analysis(tables, layers.spans, _classes(tables), lines, layers.width_s, layers.going_on)


def _seen(records: Records, runs: Sequence[str]) -> DataFrame | None:
    if not runs:
        return None
    produced, consumed = (records.of(name).where(fn.col("run").isin(*runs)) for name in ("produced", "consumed"))
    return events(produced, consumed).persist(StorageLevel.MEMORY_AND_DISK)


def _of_records(
    tables: Tables,
    layers: Layers,
    records: Records,
    kinds: set[str],
    latencies: DataFrame,
    seen: DataFrame | None,
) -> list[Task]:
    """Return what makes the tables that facts do not hold."""

    def lives() -> None:
        told = overview.processes(records.of("start"), records.of("stop"), records.of("drops"))
        tables.add("processes", told, ["run", "started_s", "instance"])

    are_several = any(row["kind"] == "start" and row["lines"] > 1 for row in layers.taken.kinds)
    watched, plans = records.of("shadow"), changes.plans(records.of("start"), records.of("settings"))
    order = ["run", "route", "class", "from_s"]
    sometimes: list[Task] = [lambda: tables.add("shadow", shadow(watched), order)] if "shadow" in kinds else []
    if "settings" in layers.records:  # what came before a window counts, too
        sometimes.append(lambda: tables.put_rows("settings", changes.changes(plans), changes.COLUMNS))
    asked = answers(records, kinds, latencies, seen, are_several=are_several)
    tables.remove(*set(NAMES).difference(one.name for one in asked))
    return [
        lives,
        *sometimes,
        *[lambda one=one: tables.add(one.name, one.make(), one.order, many=one.many) for one in asked],
    ]


def _of_facts(tables: Tables, facts: Facts, width_s: int) -> list[Task]:
    """Return what makes the tables of the other facts; where nobody told of one, its tables are empty."""

    def alone(name: str, make: Callable[[DataFrame], DataFrame], fact: str, *order: str) -> Task:
        return lambda: tables.add(name, make(facts.of(fact)), order)

    def rates(rows: DataFrame) -> DataFrame:
        return activity.traffic_over_time(rows.where("source = 'class'"), width_s)

    def in_flight(rows: DataFrame) -> DataFrame:
        return activity.routes_over_time(rows, width_s)

    makers: list[Task] = [
        lambda: _add_traffic(tables, facts),
        alone("traffic_over_time", rates, "traffic", *BY_CLASS, "t_s"),
        alone("routes_over_time", in_flight, "in flight", "run", "route", "t_s"),
        lambda: _add_last(tables, facts, width_s),
        lambda: _add_routes(tables, facts, width_s),
        alone("episodes", episodes, "pieces", "run", "route", "from_s"),
        alone("blind_time", blind_time, "pieces", "run", "route"),
        alone("dead_letters", lambda rows: dead_letters(rows, BY_CLASS), "letters", *BY_CLASS, "reason"),
        alone("incidents", incidents, "incidents", "run", "first_s", "name", "place"),
    ]
    return makers


def _add_traffic(tables: Tables, facts: Facts) -> None:
    sums = {name: name for name in SUMMED}
    parts = [
        Part("traffic_by_class", ("level", "class"), same(*BY_CLASS) | sums, BY_CLASS),
        Part("traffic_by_type", ("level", "type"), same(*BY_TYPE) | sums, BY_TYPE),
        Part("_types_of_class", ("level", "types of class"), same(*BY_CLASS) | sums, BY_CLASS),
        Part("_instances", ("level", "instance"), same("run", "instance", "confirmed"), ["run", "instance"]),
        Part("_routes", ("level", "route"), same("run", "confirmed"), ["run"]),
    ]
    tables.add_parts(traffic_by_level(facts.of("traffic")), parts)


def _add_routes(tables: Tables, facts: Facts, width_s: int) -> None:
    place = same("run", "route", "t_s")
    parts = [
        Part("depth_over_time", ("depth", None), place | same("depth"), list(place)),
        Part("control_over_time", ("drain_rate", None), place | same("delay_ms", "drain_rate"), list(place)),
    ]
    tables.add_parts(timeline.routes_over_time(facts.of("routes"), width_s), parts)


def _add_last(tables: Tables, facts: Facts, width_s: int) -> None:
    place = same(*BY_CLASS, "t_s")
    rate = same("run", "route", "class", "t_s")
    parts = [
        Part("lag_over_time", ("measure", timeline.LAG), place | {"lag": "whole"}, list(place)),
        Part("_left_over_time", ("measure", timeline.LEFT), place | {"left": "whole"}, list(place)),
        Part("rates_over_time", ("measure", timeline.RATE), rate | {"rate": "value"}, list(rate)),
    ]
    tables.add_parts(timeline.last_over_time(facts.of("last"), width_s), parts)


def _of_proof(tables: Tables, records: Records, seen: DataFrame, runs: Sequence[str], width_s: int) -> list[Task]:
    """Return what makes the tables of what producers and consumers told."""
    consumed = records.of("consumed").where(fn.col("run").isin(*runs))

    def over_time() -> None:
        told = activity.consumed_time_over_time(consumed, width_s)
        tables.add("consumed_time_over_time", told, [*BY_CLASS, "t_s"])

    return [lambda: _add_proof(tables, seen), over_time]


def _add_proof(tables: Tables, seen: DataFrame) -> None:
    figures = same(*_PROVEN, *_CONSUMED)
    parts = [
        Part("proof_by_type", ("level", "type"), same(*BY_CLASS) | {"type": "of"} | figures, BY_TYPE),
        Part("proof_by_class", ("level", "class"), same(*BY_CLASS) | figures, BY_CLASS),
    ]
    tables.add_parts(proof_by_level(alike(seen)), parts)


def _add_checks(tables: Tables, *, is_cut: bool) -> None:
    """Add the sums that must agree, and what became of the missing, from tables that are there."""
    rows = tables.rows
    by_class = rows.get("traffic_by_class", [])
    types_of_class, instances = tables.taken("_types_of_class"), tables.taken("_instances")
    found = [
        checks.counts_against_buckets(by_class, rows.get("latency_by_class", [])),
        checks.routes_against_classes(tables.taken("_routes"), by_class),
    ]
    if not is_cut:
        found.append(checks.classes_against_types(by_class, types_of_class))
        found.append(checks.stops_against_classes(rows["processes"], instances))
    left = tables.taken("_left_over_time")
    if "proof_by_class" in rows:
        told = with_whereabouts(rows["proof_by_class"], by_class, left)
        columns = (
            dict.fromkeys(BY_CLASS, "string") | dict.fromkeys(_PROVEN, "int64") | dict.fromkeys(_CONSUMED, "double")
        )
        tables.put_rows(
            "proof_by_class", told, columns | dict.fromkeys(("dead_lettered", "left_in_log", "lost"), "int64")
        )
        if not is_cut:
            found.append(checks.bridge_against_proof(by_class, told))
    rows_of_checks = checks.cross_checks(check for some in found for check in some)
    tables.put_rows("cross_checks", rows_of_checks, CHECKED | {"difference": "int64"})


def _add_slo(
    tables: Tables,
    layers: Layers,
    records: Records,
    by_minute: DataFrame,
    serving: DataFrame,
    seen: DataFrame | None,
) -> None:
    """Add whether what is promised of a class held.

    `by_minute`: latencies; `serving`: run, class and route; `seen`: the events of producers and consumers, if any.
    """
    promised = slo.targets(changes.plans(records.of("start"), records.of("settings")))
    touched = slo.inside(tables.frame("episodes", EPISODE), serving, records.start_ms)
    measured = slo.bridge_times(by_minute, promised)
    if seen is not None:
        ends_ms = {run: span.end_ms for run, span in layers.spans.items()}
        measured = measured.unionByName(slo.consumed_times(seen, promised, ends_ms))
    # Two queries, as they are run apart: buckets are many, minutes are few. What is kept is worked out by the session
    # that asks first: by the second query, which is one of few records, buckets would be interpreted.
    judged = slo.by_minute(measured, promised).persist(StorageLevel.MEMORY_AND_DISK)
    judged.count()
    tables.add("slo", slo.slo(judged, promised, touched), [*BY_CLASS, "scope"])
    judged.unpersist()


def _add_ledger(tables: Tables, records: Records) -> None:
    """Add what became of every position."""
    told = ledger.Told(**{name: records.of(name) for name in ledger.Told.__dataclass_fields__})
    found = ledger.accounts(told).persist(StorageLevel.MEMORY_AND_DISK)
    place = ["run", "group", "topic", "topic_id", "partition", "first", "end"]
    tables.add("ledger", ledger.ledger_rows(found), [*place, "outcome"])
    tables.add("ledger_by_topic", ledger.by_topic(found), ["run", "group", "topic", "outcome", "reason"])
    tables.add("ledger_findings", ledger.finding_rows(found), [*place, "finding"])
    found.unpersist()


def _classes(tables: Tables) -> list[str]:
    """Return the classes in the bridge's order, those it did not tell of behind them by name."""
    rows = [row for name in ("traffic_by_class", "proof_by_class") for row in tables.rows.get(name, [])]
    present = {row["class"] for row in rows}
    told = [json.loads(classes) for classes in {row["classes"] for row in tables.rows["processes"] if row["classes"]}]
    ordered = dict.fromkeys(
        name for classes in sorted(told, key=lambda c: (-len(c), json.dumps(c))) for name in classes
    )
    return [name for name in ordered if name in present] + sorted(present - set(ordered))
