"""The graphs as numbers: one row for each stretch of time."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from proxy.reports.buckets import with_percentiles
from proxy.reports.latency import BRIDGE

POINTS = 300
"""A graph has about so many points."""
REMEMBERED = 3
"""A replica's last known value counts for so many stretches after it was recorded."""
_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
LAG, LEFT, RATE = "lag", "left", "rate"
LAST_KEYS = ("measure", "route", "class", "instance")


def width_for(seconds: float, interval_s: float) -> int:
    """Return how many seconds one point stands for: no less than an interval of the records."""
    wanted = max(seconds / POINTS, interval_s)
    return next((width for width in _WIDTHS_S if width >= wanted), int(wanted) + 1)


def of_routes(records: Mapping[str, DataFrame]) -> DataFrame:
    """Return run, at_ms, route, depth, delay_us, drain (instant and rate) of route records and verdicts.

    The control loop that does not measure queues says nothing of delay and drain rate.
    """
    parts = []
    if "route" in records:
        parts.append(records["route"].select("run", "at_ms", "route", "depth"))
    if "verdict" in records:
        seen = records["verdict"].where(fn.col("drain_rate").isNotNull())
        drain = fn.struct("at_ms", "drain_rate").alias("drain")
        parts.append(seen.select("run", "at_ms", "route", fn.col("queue_delay_us").alias("delay_us"), drain))
    filled = _struct("drain_rate")
    told = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1], allowMissingColumns=True)
    for name, nothing in (("depth", _none("long")), ("delay_us", _none("long")), ("drain", filled)):
        told = told if name in told.columns else told.withColumn(name, nothing)
    return told.select("run", "at_ms", "route", "depth", "delay_us", "drain")


def routes_over_time(rows: DataFrame, width_s: int) -> DataFrame:
    """Return run, route, t_s and of each stretch the greatest depth, the longest queue delay, the last drain rate.

    Replicas see the same queues; of what they make of them the greater counts. What nobody tells of is null.
    """
    return (
        rows.groupBy("run", "route", _stretch(width_s).alias("stretch"))
        .agg(
            fn.max("depth").alias("depth"),
            fn.round(fn.max("delay_us") / 1000, 3).alias("delay_ms"),
            fn.round(fn.max("drain")["drain_rate"], 3).alias("drain_rate"),
        )
        .select("run", "route", _middle(width_s).alias("t_s"), "depth", "delay_ms", "drain_rate")
    )


def last_known(records: Mapping[str, DataFrame]) -> DataFrame:
    """Return run, at_ms, `LAST_KEYS` and last (instant and value): log backlog and allowed rates as replicas know them.

    Of class records `lag`, and `left`: events of the lag of which nothing had become. Of verdicts the `rate` of a class
    and those above it; one without a limit has no row.
    """
    parts = []
    if "class" in records:
        left = fn.col("lag") - fn.coalesce("ahead", fn.lit(0))  # older records lack it
        told = fn.create_map(fn.lit(LAG), fn.col("lag"), fn.lit(LEFT), left)
        known = records["class"].where(fn.col("lag").isNotNull())
        parts.append(
            known.select("run", "at_ms", _none("string").alias("route"), "class", "instance", fn.explode(told)).select(
                *_last(fn.col("key"), fn.col("value").cast("double"))
            )
        )
    if "verdict" in records:
        rates = records["verdict"].select(
            "run", "at_ms", "route", "instance", fn.explode("rates").alias("class", "rate")
        )
        parts.append(rates.where(fn.col("rate").isNotNull()).select(*_last(fn.lit(RATE), fn.col("rate"))))
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def last_over_time(rows: DataFrame, width_s: int) -> DataFrame:
    """Return run, measure, route, class, t_s, value: in each stretch the sum of what each replica last knew."""
    keys = ["run", "measure", "route", "class"]
    last = rows.groupBy(*keys, "instance", _stretch(width_s).alias("stretch")).agg(
        fn.max("last")["value"].alias("value")
    )
    by_replica = Window.partitionBy(*keys, "instance").orderBy("stretch")
    until_next = fn.lead("stretch").over(by_replica) - 1
    until = fn.least(fn.coalesce(until_next, fn.col("stretch")), fn.col("stretch") + REMEMBERED)
    return (
        last.withColumn("until", until)
        .withColumn("stretch", fn.explode(fn.sequence("stretch", "until")))
        .groupBy(*keys, "stretch")
        .agg(fn.round(fn.sum("value"), 3).alias("value"))  # else the last digits are those of the order of adding
        .select(*keys, _middle(width_s).alias("t_s"), "value", fn.col("value").cast("long").alias("whole"))
    )


def bridge_time_over_time(rows: DataFrame, width_s: int) -> DataFrame:
    """Return run, class, t_s and the percentiles of the bridge time of what was confirmed in each stretch.

    `rows`: as `latency.measured` gives them.
    """
    keys = ["run", "class", "stretch"]
    of_class = rows.where((fn.col("source") == "class") & (fn.col("measure") == BRIDGE))
    counts = of_class.groupBy("run", "class", _stretch(width_s).alias("stretch"), "value").agg(
        fn.sum("count").alias("count")
    )
    return with_percentiles(counts, keys, unit_ms=0.001).withColumn("t_s", _middle(width_s)).drop("stretch")


def _last(measure: Column, value: Column) -> Sequence[Column]:
    named = [fn.col(name) for name in ("route", "class", "instance")]
    last = fn.struct(fn.col("at_ms"), value.alias("value")).alias("last")
    return [fn.col("run"), fn.col("at_ms"), measure.alias("measure"), *named, last]


def _none(kind: str) -> Column:
    return fn.lit(None).cast(kind)


def _struct(name: str) -> Column:
    return fn.lit(None).cast(f"struct<at_ms:bigint,{name}:double>")


def _stretch(width_s: int) -> Column:
    """Return the number of the stretch that an interval record belongs to; it tells of the time before it.

    What a run begins with tells of its first stretch: before that there was none.
    """
    return fn.when(fn.col("at_s") == 0, 0).otherwise(fn.ceil(fn.col("at_s") / width_s) - 1)


def _middle(width_s: int) -> Column:
    return (fn.col("stretch") + 0.5) * width_s
