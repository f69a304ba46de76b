"""The graphs as numbers: one row for each stretch of time."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from proxy.reports.buckets import summed_buckets, with_percentiles

POINTS = 300
"""A graph has about so many points."""
REMEMBERED = 3
"""A replica's last known value counts for so many stretches after it was recorded."""
_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)


def width_for(seconds: float, interval_s: float) -> int:
    """Return how many seconds one point stands for: no less than an interval of the records."""
    wanted = max(seconds / POINTS, interval_s)
    return next((width for width in _WIDTHS_S if width >= wanted), int(wanted) + 1)


def depth_over_time(routes: DataFrame, width_s: int) -> DataFrame:
    """Return run, route, t_s and the greatest depth seen in each stretch; replicas see the same queues."""
    return (
        routes.groupBy("run", "route", _stretch(width_s).alias("stretch"))
        .agg(fn.max("depth").alias("depth"))
        .where(fn.col("depth").isNotNull())
        .select("run", "route", _middle(width_s).alias("t_s"), "depth")
    )


def bridge_time_over_time(classes: DataFrame, width_s: int) -> DataFrame:
    """Return run, class, t_s and the percentiles of the bridge time of what was confirmed in each stretch."""
    keys = ["run", "class", "stretch"]
    counts = summed_buckets(classes.withColumn("stretch", _stretch(width_s)), "bridge_us", keys)
    return with_percentiles(counts, keys, unit_ms=0.001).withColumn("t_s", _middle(width_s)).drop("stretch")


def lag_over_time(classes: DataFrame, width_s: int) -> DataFrame:
    """Return run, class, t_s and the log backlog: the sum of what each replica last knew of its own partitions."""
    return _sum_of_replicas(classes, ["run", "class"], "lag", width_s)


def control_over_time(verdicts: DataFrame, width_s: int) -> DataFrame:
    """Return run, route, t_s, the longest queue delay seen in each stretch and the drain rate, the last known.

    Replicas see the same queues; of what they make of them the greater counts.
    """
    return (
        verdicts.where(fn.col("drain_rate").isNotNull())
        .groupBy("run", "route", _stretch(width_s).alias("stretch"))
        .agg(
            fn.round(fn.max("queue_delay_us") / 1000, 3).alias("delay_ms"),
            fn.round(fn.max_by("drain_rate", "at_ms"), 3).alias("drain_rate"),
        )
        .select("run", "route", _middle(width_s).alias("t_s"), "delay_ms", "drain_rate")
    )


def rates_over_time(verdicts: DataFrame, width_s: int) -> DataFrame:
    """Return run, route, class, t_s and how many events a second all replicas together allowed themselves.

    A class stands for itself and those above it; one without a limit has no row.
    """
    rates = verdicts.select("run", "route", "instance", "at_ms", "at_s", fn.explode("rates").alias("class", "rate"))
    return _sum_of_replicas(rates, ["run", "route", "class"], "rate", width_s)


def _sum_of_replicas(values: DataFrame, keys: list[str], name: str, width_s: int) -> DataFrame:
    """Return the keys, t_s and in each stretch the sum of what each replica last knew."""
    last = (
        values.where(fn.col(name).isNotNull())
        .groupBy(*keys, "instance", _stretch(width_s).alias("stretch"))
        .agg(fn.max_by(name, "at_ms").alias(name))
    )
    by_replica = Window.partitionBy(*keys, "instance").orderBy("stretch")
    until_next = fn.lead("stretch").over(by_replica) - 1
    until = fn.least(fn.coalesce(until_next, fn.col("stretch")), fn.col("stretch") + REMEMBERED)
    return (
        last.withColumn("until", until)
        .withColumn("stretch", fn.explode(fn.sequence("stretch", "until")))
        .groupBy(*keys, "stretch")
        .agg(fn.sum(name).alias(name))
        .select(*keys, _middle(width_s).alias("t_s"), name)
    )


def left_in_log(classes: DataFrame, width_s: int) -> DataFrame:
    """Return run, class and the events in the log of which nothing had become when the lag was last known."""
    left = classes.withColumn("lag", fn.col("lag") - fn.coalesce("ahead", fn.lit(0)))  # older records lack it
    last = fn.max_by("lag", "t_s").alias("left_in_log")
    return lag_over_time(left, width_s).groupBy("run", "class").agg(last)


def _stretch(width_s: int) -> Column:
    """Return the number of the stretch that an interval record belongs to; it tells of the time before it."""
    return fn.ceil(fn.col("at_s") / width_s) - 1


def _middle(width_s: int) -> Column:
    return (fn.col("stretch") + 0.5) * width_s
