"""How many events: plain sums of the interval counts."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

COUNTS = (
    "received",
    "received_bytes",
    "confirmed",
    "confirmed_bytes",
    "nacked",
    "unknown",
    "resent",
    "overtaken",
)


def traffic(records: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the sums of class or type records for each key; `possible_duplicates` are resends of unknown outcome."""
    return (
        records.withColumn("dead_letters", _all_reasons(fn.col("dead_lettered")))
        .groupBy(*keys)
        .agg(
            *[fn.sum(name).alias(name) for name in COUNTS],
            # Older records lack these.
            *[fn.sum(fn.coalesce(name, fn.lit(0))).alias(name) for name in ("ahead_of_clock", "old")],
            fn.sum("resent_unknown").alias("possible_duplicates"),
            fn.sum("dead_letters").alias("dead_lettered"),
        )
    )


def dead_letters(records: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return keys, reason and number of the events that were dead-lettered."""
    return (
        records.select(*keys, fn.explode("dead_lettered").alias("reason", "number"))
        .groupBy(*keys, "reason")
        .agg(fn.sum("number").alias("dead_lettered"))
        .where(fn.col("dead_lettered") > 0)
    )


def _all_reasons(counts: Column) -> Column:
    return fn.aggregate(
        fn.map_values(counts), fn.lit(0).cast("long"), lambda total, count: total + fn.coalesce(count, fn.lit(0))
    )
