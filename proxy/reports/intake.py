"""Takes lines in: a folder of records for each kind, and what it counted of them meanwhile."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn

from proxy.reports.files import as_spark_path
from proxy.reports.overview import rejected_lines
from proxy.reports.places import Places, join, written_to
from proxy.reports.records import LINES, OTHER, REJECTED, SAMPLE, others, parsed, schema_of_records, with_kind
from proxy.reports.session import for_little
from proxy.reports.together import together

Row = dict[str, Any]
TEXT = "lines"
"""The folder of the lines, cut up by kind; it is not needed any more when they are taken in."""
_LITTLE_BYTES = 1024**2
"""So much of Parquet, some 10,000 lines, is parsed sooner than code is made for it."""
_TIMED = ("route", "class", "type")
"""Kinds that say how long an interval lasted."""


@dataclass
class Taken:
    """What was found in some lines; threads may add to it side by side."""

    kinds: list[Row] = field(default_factory=list)
    """run, kind, lines, first_ms, last_ms, interval_s (the longest; null where there is none): of records."""
    rejected: list[Row] = field(default_factory=list)
    """run, file, reason, lines, sample: of lines that are no records."""


def take_in(lines: DataFrame, runs: Sequence[str], folder: str, say: Callable[[str], None]) -> Taken:
    """Write the records of lines (run, file, value) into `folder`, over what a killed attempt may have left there.

    Each line is parsed once, by the schema of its kind alone: of all kinds in one query Java would compile nothing.
    """
    spark, taken = lines.sparkSession, Taken()
    little = for_little(spark)
    places, text = Places(spark), join(folder, TEXT)
    tasks = spark.sparkContext.defaultParallelism
    cut_up = with_kind(lines).coalesce(tasks).write.partitionBy("kind")
    # No two lines are alike, so a dictionary of them is only work; of runs and files it is most of the saving.
    cut_up = cut_up.option("parquet.enable.dictionary#value", "false")
    cut_up.mode("overwrite").parquet(written_to(text))
    sizes: dict[str, int] = {}
    for entry in places.files(text):
        kind = entry.place.rsplit("/", 2)[-2].removeprefix("kind=")
        sizes[kind] = sizes.get(kind, 0) + entry.size
    kinds = sorted((kind for kind, size in sizes.items() if kind != TEXT), key=lambda kind: -sizes[kind])

    def take(kind: str) -> None:
        session = little if sizes[kind] <= _LITTLE_BYTES else spark
        own = session.read.schema(LINES).parquet(as_spark_path(join(text, f"kind={kind}")))
        if kind == OTHER:
            _take_others(own, taken)
        else:
            say(f"records: {kind}")
            _take_kind(own, kind, runs, join(folder, kind), taken)

    together([lambda kind=kind: take(kind) for kind in kinds])  # type: ignore[misc]
    places.delete(text)
    taken.kinds.sort(key=lambda row: (row["run"], row["kind"]))
    taken.rejected = united(taken.rejected)
    return taken


def united(rejected: Iterable[Row]) -> list[Row]:
    """Return one row for each run, file and reason, in order, as rows of several kinds and batches tell of them."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rejected:
        key = row["run"], row["file"], row["reason"]
        before = found.setdefault(key, row | {"lines": 0})
        before["lines"] += row["lines"]
        before["sample"] = min(before["sample"], row["sample"])
    return [found[key] for key in sorted(found)]


def stored(spark: SparkSession, kind: str, folders: Sequence[str]) -> DataFrame:
    """Return the records of a kind that were taken in: run, file, at_ms, instance and its fields."""
    found = spark.read.schema(schema_of_records(kind)).parquet(
        *[as_spark_path(join(folder, kind)) for folder in folders]
    )
    return found.where(fn.col(REJECTED).isNull()).drop(REJECTED, SAMPLE)


def _take_kind(lines: DataFrame, kind: str, runs: Sequence[str], folder: str, taken: Taken) -> None:
    seen = Observation()
    of_runs = [_counts(kind, run) for run in runs]
    counts = [what.alias(f"{name}_{number}") for number, some in enumerate(of_runs) for name, what in some.items()]
    judged = parsed(lines, kind).observe(seen, *counts)
    judged.write.mode("overwrite").parquet(written_to(folder))
    counted = seen.get
    for number, run in enumerate(runs):
        row = {name: counted[f"{name}_{number}"] for name in of_runs[number]}
        if row["lines"]:
            told = {name: row[name] for name in ("lines", "first_ms", "last_ms")}
            taken.kinds.append({"run": run, "kind": kind, **told, "interval_s": row["interval_s"]})
    if any(counted[f"rejected_{number}"] for number in range(len(runs))):
        written = lines.sparkSession.read.schema(judged.schema).parquet(as_spark_path(folder))
        taken.rejected += [row.asDict() for row in rejected_lines(written).collect()]


def _counts(kind: str, run: str) -> dict[str, Column]:
    is_own, is_record = fn.col("run") == run, fn.col(REJECTED).isNull()
    at_ms = fn.when(is_own & is_record, fn.col("at_ms"))
    interval = fn.when(is_own & is_record, fn.col("interval_s")) if kind in _TIMED else fn.lit(None).cast("double")
    return {
        "lines": fn.count(at_ms),
        "rejected": fn.count_if(is_own & ~is_record),
        "first_ms": fn.min(at_ms),
        "last_ms": fn.max(at_ms),
        "interval_s": fn.max(interval),
    }


def _take_others(lines: DataFrame, taken: Taken) -> None:
    """Count lines that are no records, and records of kinds that the reports do not read."""
    rejected = fn.col(REJECTED)
    rows = (
        others(lines)
        .groupBy("run", "kind", fn.when(rejected.isNotNull(), fn.col("file")).alias("file"), rejected.alias("reason"))
        .agg(
            fn.count(fn.lit(1)).alias("lines"),
            fn.min(SAMPLE).alias("sample"),
            fn.min("at_ms").alias("first_ms"),
            fn.max("at_ms").alias("last_ms"),
        )
    )
    for row in rows.collect():
        if row.reason is None:
            told = {name: row[name] for name in ("run", "kind", "lines", "first_ms", "last_ms")}
            taken.kinds.append({**told, "interval_s": None})
        else:
            taken.rejected.append({name: row[name] for name in ("run", "file", "reason", "lines", "sample")})
