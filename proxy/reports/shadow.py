"""What a policy in shadow would have held back: when, to what rate, how much would have waited and for how long."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from proxy.reports.tables import Row

APART_S = 1.0
"""Intervals so many seconds apart at most belong to one stretch; they follow each other where nothing is lost."""
_TOLD = 3
"""Stretches of a class that have a sentence, the ones with the most events; the table has all."""


def shadow(told: DataFrame) -> DataFrame:
    """Return the stretches of time in which a class would have been held back on a route, by intervals of records.

    `passed_rate` is what would have gone in it, in events a second; `waiting` sums up what of each event type would
    have waited at its most, so it is an upper bound.
    """
    place = ["run", "route", "class"]
    by_time = Window.partitionBy(*place).orderBy("from_s", "at_s").rowsBetween(Window.unboundedPreceding, -1)
    upto = Window.partitionBy(*place).orderBy("from_s", "at_s").rowsBetween(Window.unboundedPreceding, 0)
    pieces = (
        told.where((fn.col("held") > 0) | (fn.coalesce("waiting", fn.lit(0)) > 0))
        .withColumn("class", fn.coalesce("class", fn.lit("")))
        .withColumn("from_s", fn.greatest(fn.lit(0.0), fn.col("at_s") - fn.col("interval_s")))
        .withColumn("before_s", fn.max("at_s").over(by_time))
        .withColumn("is_new", fn.coalesce(fn.col("from_s") > fn.col("before_s") + APART_S, fn.lit(col=True)))
        .withColumn("number", fn.sum(fn.col("is_new").cast("int")).over(upto))
    )
    per_type = pieces.groupBy(*place, "number", "instance", "type").agg(
        fn.min("from_s").alias("from_s"),
        fn.max("at_s").alias("to_s"),
        *[fn.sum(name).alias(name) for name in ("sent", "held", "passed")],
        fn.max("waiting").alias("waiting"),
        fn.max("longest_s").alias("longest_s"),
    )
    return (
        per_type.groupBy(*place, "number")
        .agg(
            fn.round(fn.min("from_s"), 3).alias("from_s"),
            fn.round(fn.max("to_s"), 3).alias("to_s"),
            *[fn.sum(name).alias(name) for name in ("sent", "held", "passed", "waiting")],
            fn.max("longest_s").alias("longest_s"),
        )
        .withColumn("passed_rate", fn.round(fn.col("passed") / (fn.col("to_s") - fn.col("from_s")), 3))
        .select(*place, "from_s", "to_s", "sent", "held", "passed", "passed_rate", "waiting", "longest_s")
    )


def sentences(rows: Sequence[Row], runs: Sequence[Row]) -> list[str]:
    """Return a sentence for the stretches of each class and run with most events; instants in UTC."""
    told = []
    for run in runs:
        start = datetime.fromisoformat(run["started_at"])
        prefix = f"{run['name']}: " if len(runs) > 1 else ""
        mine = [row for row in rows if row["run"] == run["name"] and row["held"]]
        for place in dict.fromkeys((row["route"], row["class"]) for row in mine):
            of_class = [row for row in mine if (row["route"], row["class"]) == place]
            most = sorted(of_class, key=lambda row: -row["held"])[:_TOLD]
            told += [prefix + _sentence(row, start) for row in sorted(most, key=lambda row: row["from_s"])]
            if len(of_class) > _TOLD:
                told.append(
                    f"{prefix}in shadow: {place[1]} on {place[0]}: {len(of_class) - _TOLD} more stretches, shorter"
                )
    return told


def _sentence(row: Row, start: datetime) -> str:
    begin, end = (f"{start + timedelta(seconds=row[name]):%H:%M:%S}" for name in ("from_s", "to_s"))
    rate = "" if row["passed_rate"] is None else f" to {row['passed_rate']:,.0f} events/s"
    longest = "" if row["longest_s"] is None else f", for up to {row['longest_s']:,.1f} s"
    waiting = "" if row["waiting"] is None else f"; at most {row['waiting']:,} at a time"
    return (
        f"in shadow: {row['class']} on {row['route']} would have been held{rate} from {begin} to {end} UTC; "
        f"{row['held']:,} of {row['sent']:,} events would have waited{longest}{waiting}"
    )
