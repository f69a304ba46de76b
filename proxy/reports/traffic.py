"""How many events: plain sums of the interval counts."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
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
TROUBLES = {
    "confirmed": "confirmed",
    "nacked": "nacked",
    "unknown outcome": "unknown",
    "resent": "resent",
    "perhaps twice": "resent_unknown",
    "overtaken": "overtaken",
    "before its timestamp": "ahead_of_clock",
}
"""What may happen to an event, and where it is counted; `confirmed` is what the others are compared with."""


def traffic(records: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the sums of class or type records for each key; `possible_duplicates` are resends of unknown outcome."""
    return (
        records.withColumn("dead_letters", all_reasons(fn.col("dead_lettered")))
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


def troubles(types: DataFrame) -> DataFrame:
    """Return run, class, type, route, what, events, per_thousand (confirmed): all that went other than it should.

    `what` is nacked, unknown outcome, resent, perhaps twice, overtaken, before its timestamp, or the reason of a dead
    letter; only what happened has a row. What RabbitMQ returned is dead-lettered as unroutable.
    """
    keys = ["run", "class", "type", "route"]
    counts = [_what(fn.lit(what), fn.coalesce(name, fn.lit(0))) for what, name in TROUBLES.items()]
    reasons = fn.transform(
        fn.map_entries("dead_lettered"),
        lambda one: _what(fn.concat(fn.lit("dead letter: "), one["key"]), one["value"]),
    )
    told = types.select(*keys, fn.inline(fn.concat(fn.array(*counts), reasons)))
    confirmed = fn.sum(fn.when(fn.col("what") == "confirmed", fn.col("events"))).over(Window.partitionBy(*keys))
    return (
        told.groupBy(*keys, "what")
        .agg(fn.sum("events").alias("events"))
        .withColumn("confirmed", confirmed)
        .where((fn.col("what") != "confirmed") & (fn.col("events") > 0))
        .withColumn(
            "per_thousand",
            fn.when(fn.col("confirmed") > 0, fn.round(1000 * fn.col("events") / fn.col("confirmed"), 3)),
        )
        .drop("confirmed")
    )


def _what(what: Column, events: Column) -> Column:
    return fn.struct(what.alias("what"), events.alias("events"))


def all_reasons(counts: Column) -> Column:
    """Return the events of all reasons together."""
    return fn.aggregate(
        fn.map_values(counts), fn.lit(0).cast("long"), lambda total, count: total + fn.coalesce(count, fn.lit(0))
    )
