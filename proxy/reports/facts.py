"""Facts: what records come to, minute by minute. All tables but a few are made from them.

A fact is a commutative monoid: rows with equal keys are merged by sums, greatest, least or unions. So it does not
matter how records were cut into batches, in which order files came, or whether they were merged before.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from proxy.reports import activity, episodes, incidents, latency, timeline, traffic
from proxy.reports.records import no_records, planned_by

MINUTE_MS = 60_000
BY_MINUTE = "latencies by minute"
"""The fact `latencies` by a minute or less, whatever a point of a graph stands for."""
MERGED = {"sum": fn.sum, "max": fn.max, "min": fn.min}


class Fact(NamedTuple):
    """A table of facts: run, at_ms (the end of the minute that a row tells of), its keys and what is merged."""

    kinds: Sequence[str]
    """Of records that it is made from, as far as there are any."""
    rows: Callable[[Mapping[str, DataFrame]], DataFrame]
    """Each record's own rows, with the instant of the record."""
    merge: Callable[[DataFrame], DataFrame]
    """Rows with equal run, at_ms and keys merged."""


def _grouped(keys: Sequence[str], values: Mapping[str, str], rows: DataFrame) -> DataFrame:
    merged: list[Column] = [MERGED[how](name).alias(name) for name, how in values.items()]
    return rows.groupBy("run", "at_ms", *keys).agg(*merged)


def _of(
    kinds: Sequence[str],
    rows: Callable[[Mapping[str, DataFrame]], DataFrame],
    keys: Sequence[str],
    values: Mapping[str, str],
) -> Fact:
    return Fact(kinds, rows, partial(_grouped, keys, values))


FACTS: Mapping[str, Fact] = {
    "traffic": _of(("class", "type", "route"), traffic.counted, traffic.KEYS, dict.fromkeys(traffic.SUMMED, "sum")),
    "letters": _of(
        ("class",), lambda records: traffic.letters(records["class"]), ("class", "reason"), {"dead_lettered": "sum"}
    ),
    "latencies": _of(("class", "type", "route"), latency.measured, latency.KEYS, {"count": "sum"}),
    "routes": _of(
        ("route", "verdict"), timeline.of_routes, ("route",), dict.fromkeys(("depth", "delay_us", "drain"), "max")
    ),
    "in flight": _of(
        ("route",),
        lambda records: activity.in_flight(records["route"]),
        ("route", "instance"),
        {"in_flight": "max", "consumers": "min"},
    ),
    "last": _of(("class", "verdict"), timeline.last_known, timeline.LAST_KEYS, {"last": "max"}),
    "pieces": Fact(
        ("verdict",),
        lambda records: episodes.pieces(records["verdict"]),
        lambda rows: episodes.merged_pieces(rows, ["run", "at_ms", *episodes.KEYS]),
    ),
    "incidents": _of(
        ("incident",),
        lambda records: incidents.placed(records["incident"]),
        ("name", "place"),
        {"times": "sum", "count": "sum", "first_ms": "min", "last_ms": "max", "last": "max"},
    ),
}


def rows_of(name: str, records: Mapping[str, DataFrame]) -> DataFrame | None:
    """Return a fact's rows from records by kind; None if there are none that tell of it."""
    own = {kind: records[kind] for kind in FACTS[name].kinds if kind in records}
    return FACTS[name].rows(own) if own else None


def by_grain(name: str, rows: DataFrame, grain_ms: int = MINUTE_MS) -> DataFrame:
    """Return a fact's rows merged: at_ms is the end of the minute, hour or day that it lies in."""
    end = fn.ceil(fn.col("at_ms") / grain_ms) * grain_ms
    return FACTS[name].merge(rows.withColumn("at_ms", end.cast("long")))


class Facts:
    """The facts that a report is made of, with the instant that is 0 s in each run."""

    def __init__(self, spark: SparkSession, frames: Mapping[str, DataFrame], start_ms: Mapping[str, int]) -> None:
        self._spark, self._frames, self._start_ms = spark, frames, start_ms

    def of(self, name: str) -> DataFrame:
        """Return a fact's rows, merged or not; beside each column of an instant its seconds since the run's start."""
        name = name if name in self._frames or name != BY_MINUTE else "latencies"
        frame = self._frames.get(name)
        if frame is None:
            kind = FACTS[name].kinds[0]
            frame = FACTS[name].rows({kind: no_records(self._spark, kind)})
        starts = fn.create_map(*[fn.lit(part) for item in self._start_ms.items() for part in item])
        instants = [column for column in ("at_ms", "from_ms", "first_ms", "last_ms") if column in frame.columns]
        seconds = {column.replace("_ms", "_s"): (fn.col(column) - starts[fn.col("run")]) / 1000 for column in instants}
        return frame.withColumns(seconds)


def facts_of(spark: SparkSession, records: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Return the facts of records that were read, each record by itself.

    Distributions are for this session to take apart: of few records, too, their buckets are many.
    """
    found = {name: rows_of(name, records) for name in FACTS}
    told = {name: frame for name, frame in found.items() if frame is not None}
    return told | {name: planned_by(spark, told[name]) for name in ("latencies",) if name in told}
