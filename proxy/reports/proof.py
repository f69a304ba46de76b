"""What producers and consumers saw: delivered, missing, duplicated, and the consumed time, event by event."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from proxy.reports.buckets import with_percentiles

KEYS = ("run", "class", "type")
_WITH_INSTANT = "^(.+-[0-9]+-[0-9]+)-(?:[a-z][0-9a-z]{7})?$"
"""A message id under `origin: id`, whose instant begins with a letter from 1997 to 2059."""


def events(produced: DataFrame, consumed: DataFrame) -> DataFrame:
    """Return each event once: run, class, type, whether it was produced, its deliveries, consumed_ms of the first one.

    `due_ms` is its timestamp if it was produced, `read_ms` the instant of its first consumption. Consumed time is event
    timestamp to first consumption. An event is known by class, type and id: one that consumers place elsewhere than its
    producer is missing there and unexpected here.
    """
    told = produced.select(*KEYS, _place(), fn.col("at_ms").alias("due_ms"), fn.lit(1).alias("produced")).unionByName(
        consumed.select(*KEYS, _place(), fn.col("at_ms").alias("read_ms"), "event_ms"), allowMissingColumns=True
    )
    # Keys are all that is text: else each side would be sorted by them instead of hashed.
    return (
        told.groupBy(*KEYS, "id")
        .agg(
            fn.coalesce(fn.max("produced"), fn.lit(0)).alias("produced"),
            fn.count("read_ms").alias("deliveries"),
            (fn.min("read_ms") - fn.min("event_ms")).alias("consumed_ms"),
            fn.min("due_ms").alias("due_ms"),
            fn.min("read_ms").alias("read_ms"),
        )
        .drop("id")
    )


def _place() -> Column:
    """Return the id without an instant: producers may not know it, and during an upgrade an event may have both."""
    return fn.regexp_replace("id", _WITH_INSTANT, "$1").alias("id")


def alike(seen: DataFrame) -> DataFrame:
    """Return how many events were alike: the columns of `events`, and `events`. So few rows that they pass twice."""
    return seen.groupBy(*KEYS, "produced", "deliveries", "consumed_ms").agg(fn.count(fn.lit(1)).alias("events"))


def proof_by_level(some: DataFrame) -> DataFrame:
    """Return run, level (class or type), class, type (null of a class) and what became of the events; see `proof`."""
    nothing = fn.lit(None).cast("string")
    levels = fn.create_map(fn.lit("class"), nothing, fn.lit("type"), fn.col("type"))
    return proof(
        some.select("*", fn.explode(levels).alias("level", "of")).drop("type"), ["run", "level", "class", "of"]
    )


def proof(some: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return for each key: produced, delivered (of those), missing, duplicated (extra deliveries), unexpected.

    `unexpected` were consumed and never produced, by these records. The consumed time's percentiles come with it.
    `some`: events as `alike` gives them.
    """
    produced, delivered, events = fn.col("produced") == 1, fn.col("deliveries") > 0, fn.col("events")

    def number(where: Any) -> Any:
        return fn.sum(fn.when(where, events).otherwise(0))

    counts = some.groupBy(*keys).agg(
        number(produced).alias("produced"),
        number(produced & delivered).alias("delivered"),
        number(produced & ~delivered).alias("missing"),
        fn.sum(fn.greatest(fn.col("deliveries") - 1, fn.lit(0)) * events).alias("duplicated"),
        number(~produced).alias("unexpected"),
    )
    values = (
        some.where(delivered).groupBy(*keys, fn.col("consumed_ms").alias("value")).agg(fn.sum("events").alias("count"))
    )
    times = with_percentiles(values, keys, unit_ms=1.0, prefix="consumed_").drop("consumed_samples")
    same = [counts[key].eqNullSafe(times[key]) for key in keys]
    return counts.join(times, same, "left").select(
        *[counts[name] for name in counts.columns], *times.columns[len(keys) :]
    )


def with_whereabouts(
    proven: Sequence[Mapping[str, Any]], traffic: Sequence[Mapping[str, Any]], lag: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Add what became of the missing of a class: dead-lettered (the bridge's count), left in the log at the end, lost.

    `lag`: rows of `timeline.left_over_time`, of which the last of a class counts.
    """
    lettered = {(row["run"], row["class"]): row["dead_lettered"] for row in traffic}
    left: dict[tuple[str, str], int] = defaultdict(int)
    for row in sorted(lag, key=lambda row: row["t_s"]):
        left[row["run"], row["class"]] = row["left"]
    told = []
    for row in proven:
        key = row["run"], row["class"]
        dead, in_log = lettered.get(key, 0), left[key]
        lost = max(0, row["missing"] - dead - in_log)
        told.append({**row, "dead_lettered": dead, "left_in_log": in_log, "lost": lost})
    return told
