"""How long publishing took and how long the bridge took, from merged buckets."""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from proxy.reports.buckets import highest_of, with_percentiles

PUBLISH, BRIDGE = "publish latency", "bridge time"
MEASURES = {PUBLISH: "publish_us", BRIDGE: "bridge_us"}
"""Publish latency is write to confirm; bridge time is event timestamp to confirm."""
KEYS = ("source", "class", "type", "route", "measure", "value")
_NAMED = {"class": ("class",), "type": ("class", "type", "route"), "route": ("route",)}
"""What records of a kind name."""


def measured(records: Mapping[str, DataFrame]) -> DataFrame:
    """Return run, at_ms, `KEYS` and count: each bucket of class, type and route records, by its highest value in µs."""
    return reduce(DataFrame.unionAll, [_measured(records[kind], kind) for kind in _NAMED if kind in records])


def merged(rows: DataFrame) -> DataFrame:
    """Return the rows of all instants merged: run, `KEYS` and count; `rows` as `measured` gives them."""
    return rows.groupBy("run", *KEYS).agg(fn.sum("count").alias("count"))


def latency(records: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return keys, measure, samples, p50_ms, p99_ms, p999_ms, max_ms of class or type records."""
    kind = "type" if "type" in records.columns else "class"
    return percentiles(measured({kind: records}), keys)


def percentiles(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return keys, measure, samples and percentiles; `rows` as `measured` gives them."""
    by_measure = [*keys, "measure"]
    counts = rows.groupBy(*by_measure, "value").agg(fn.sum("count").alias("count"))
    return with_percentiles(counts, by_measure, unit_ms=0.001)


def _measured(records: DataFrame, kind: str) -> DataFrame:
    # A frame for each measure: of a map of both all buckets would be copied once more before they are taken apart.
    told = [_buckets(records, kind, name, column) for name, column in MEASURES.items() if column in records.columns]
    return reduce(DataFrame.unionAll, told)


def _buckets(records: DataFrame, kind: str, measure: str, column: str) -> DataFrame:
    nothing = fn.lit(None).cast("string")
    names = [(fn.col(name) if name in _NAMED[kind] else nothing).alias(name) for name in ("class", "type", "route")]
    return (
        records.select("run", "at_ms", *names, fn.explode(column).alias("index", "count"))
        .where(fn.col("count") > 0)
        .select(
            "run",
            "at_ms",
            fn.lit(kind).alias("source"),
            "class",
            "type",
            "route",
            fn.lit(measure).alias("measure"),
            highest_of(fn.col("index").cast("int")).alias("value"),
            "count",
        )
    )
