"""What the page draws beside timeline.py's graphs: consumed time, throughput and routes over time, and event types."""

from math import ceil

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from proxy.reports.buckets import with_percentiles
from proxy.reports.latency import BRIDGE

TYPES_OF_CLASS = 20
"""So many event types of a class, those with the longest bridge time P99, are told of over time."""
_OF_TYPE = ("class", "type")
COLUMNS = 60
"""A run is about so many columns wide in the heat map of event types."""


def consumed_time_over_time(consumed: DataFrame, width_s: int) -> DataFrame:
    """Return run, class, t_s, samples and the percentiles of the consumed time of what was consumed in each stretch.

    Each delivery counts, so that what was delivered twice does twice.
    """
    keys = ["run", "class", "stretch"]
    took = consumed.withColumn("took_ms", fn.col("at_ms") - fn.col("event_ms")).withColumn("stretch", _of(width_s))
    counts = took.groupBy(*keys, fn.col("took_ms").alias("value")).agg(fn.count(fn.lit(1)).alias("count"))
    times = with_percentiles(counts, keys, unit_ms=1.0)
    return times.withColumn("t_s", _middle(width_s)).drop("stretch")


def traffic_over_time(classes: DataFrame, width_s: int) -> DataFrame:
    """Return run, class, t_s and the events a second that were received and confirmed in each stretch.

    `classes`: class records, or what `traffic.counted` makes of them.
    """
    keys = ["run", "class", "stretch"]
    counts = classes.groupBy("run", "class", _of(width_s).alias("stretch")).agg(
        *[fn.round(fn.sum(name) / width_s, 3).alias(f"{name}_rate") for name in ("received", "confirmed")]
    )
    return counts.select(*keys, "received_rate", "confirmed_rate").withColumn("t_s", _middle(width_s)).drop("stretch")


def in_flight(routes: DataFrame) -> DataFrame:
    """Return run, at_ms, route, instance, in_flight (with its instant) and consumers of route records."""
    last = fn.struct("at_ms", "in_flight").alias("in_flight")
    return routes.select("run", "at_ms", "route", "instance", last, "consumers")


def routes_over_time(rows: DataFrame, width_s: int) -> DataFrame:
    """Return run, route, t_s, what was in flight in each stretch and the queues' consumers.

    In flight is what each replica last said, summed; of consumers, which all replicas see, the fewest count. `rows`: as
    `in_flight` gives them.
    """
    keys = ["run", "route", "stretch"]
    last = rows.groupBy("run", "route", "instance", _of(width_s).alias("stretch")).agg(
        fn.max("in_flight")["in_flight"].alias("in_flight"), fn.min("consumers").alias("consumers")
    )
    told = last.groupBy(*keys).agg(fn.sum("in_flight").alias("in_flight"), fn.min("consumers").alias("consumers"))
    return told.withColumn("t_s", _middle(width_s)).drop("stretch")


def heat_width(longest_s: float, width_s: int, interval_s: float) -> int:
    """Return how many seconds a column of the heat map stands for: whole points, no less than an interval of types."""
    return width_s * ceil(max(longest_s / COLUMNS, interval_s, width_s) / width_s)


def slowest_types(latencies: DataFrame) -> DataFrame:
    """Return class, type, rank (from 1) of the `TYPES_OF_CLASS` types of each class that were slowest in any run.

    `latencies`: as `latency.merged` gives them.
    """
    own = latencies.where((fn.col("source") == "type") & (fn.col("measure") == BRIDGE))
    counts = own.groupBy("run", *_OF_TYPE, "value").agg(fn.sum("count").alias("count"))
    slow = (
        with_percentiles(counts, ["run", *_OF_TYPE], unit_ms=0.001)
        .groupBy(*_OF_TYPE)
        .agg(fn.max("p99_ms").alias("p99_ms"))
    )
    rank = fn.row_number().over(Window.partitionBy("class").orderBy(fn.desc("p99_ms"), "type"))
    return slow.withColumn("rank", rank).where(fn.col("rank") <= TYPES_OF_CLASS).select(*_OF_TYPE, "rank")


def types_over_time(latencies: DataFrame, slowest: DataFrame, width_s: int) -> DataFrame:
    """Return run, class, type, from_s, seconds, confirmed and bridge time P99 of the slowest types, in every run.

    `latencies`: as `latency.measured` gives them; `slowest`: class, type, rank.
    """
    keys = ["run", *_OF_TYPE, "stretch"]
    own = latencies.where((fn.col("source") == "type") & (fn.col("measure") == BRIDGE))
    own = own.join(fn.broadcast(slowest), [*_OF_TYPE], "left_semi")
    counts = own.groupBy("run", *_OF_TYPE, _of(width_s).alias("stretch"), "value").agg(fn.sum("count").alias("count"))
    cells = with_percentiles(counts, keys, unit_ms=0.001)
    return cells.join(fn.broadcast(slowest), [*_OF_TYPE]).select(
        "run",
        *_OF_TYPE,
        "rank",
        (fn.col("stretch") * width_s).alias("from_s"),
        fn.lit(width_s).alias("seconds"),
        fn.col("samples").alias("confirmed"),
        "p99_ms",
    )


def _of(width_s: int) -> Column:
    """Return the number of the stretch that a record belongs to; an interval's tells of the time before it."""
    return fn.ceil(fn.col("at_s") / width_s) - 1


def _middle(width_s: int) -> Column:
    return (fn.col("stretch") + 0.5) * width_s
