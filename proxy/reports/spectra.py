"""Latency spectra: for each class, event type and route the percentiles from P30 to P99.99, and the largest.

All from merged distributions: counts are added value by value, and each sum is walked once.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from proxy.reports.latency import BRIDGE, PUBLISH

WHOLE = 100_000
ABOVE = (*(share * decade for decade in (10_000, 1_000, 100, 10) for share in (7, 5, 3, 2, 1)), 0)
"""Of so many samples in `WHOLE` a point lies below: P30, P50, P70, P80, P90, P93 ... P99.99, 100."""
PLACE = ("run", "level", "name", "measure")


def spectra(counts: DataFrame) -> DataFrame:
    """Return run, level, name, measure, percentile (100: the largest), ms, samples (all of the distribution).

    `counts`: run, level, name, measure, value in µs, count; a value may come more than once. A percentile is by nearest
    rank, and is given only where at least one sample lies above it: of 500 samples there is no P99.9.
    """
    by_value = Window.partitionBy(*PLACE).orderBy("value").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = (
        counts.groupBy(*PLACE, "value")
        .agg(fn.sum("count").alias("count"))
        .withColumn("samples", fn.sum("count").over(Window.partitionBy(*PLACE)))
        .withColumn("up_to", fn.sum("count").over(by_value) * WHOLE)
        .withColumn("before", fn.col("up_to") - fn.col("count") * WHOLE)
    )
    points = fn.filter(
        fn.array(*[fn.lit(above) for above in ABOVE]),
        lambda above: (
            (fn.col("up_to") >= fn.col("samples") * (WHOLE - above))
            & (fn.col("before") < fn.col("samples") * (WHOLE - above))
            & ((above == 0) | (fn.col("samples") * above >= WHOLE))
        ),
    )
    return ranked.select(*PLACE, "samples", "value", fn.explode(points).alias("above")).select(
        *PLACE,
        fn.round(100 - fn.col("above") * 100 / WHOLE, 3).alias("percentile"),
        fn.round(fn.col("value") / 1000, 3).alias("ms"),
        "samples",
    )


def recorded(latencies: DataFrame) -> DataFrame:
    """Return the counts of what the bridge recorded; a route's bridge time is that of its event types.

    `latencies`: as `latency.measured` gives them, or merged.
    """
    source, measure = fn.col("source"), fn.col("measure")
    places = (
        fn.when(source == "class", fn.array(_place("class")))
        .when((source == "type") & (measure == BRIDGE), fn.array(_place("type"), _place("route")))
        .when(source == "type", fn.array(_place("type")))
        .when((source == "route") & (measure == PUBLISH), fn.array(_place("route")))
    )
    return latencies.select("run", fn.inline(places), "measure", "value", "count")


def consumed(seen: DataFrame) -> DataFrame:
    """Return the counts of the consumed time of events (see `proof.events`), for each class and event type."""
    times = seen.where((fn.col("produced") == 1) & (fn.col("deliveries") > 0))
    levels = fn.create_map(fn.lit("class"), fn.col("class"), fn.lit("type"), fn.col("type"))
    return times.select(
        "run",
        fn.explode(levels).alias("level", "name"),
        fn.lit("consumed time").alias("measure"),
        (fn.col("consumed_ms") * 1000).alias("value"),
        fn.lit(1).cast("long").alias("count"),
    )


def _place(level: str) -> Column:
    return fn.struct(fn.lit(level).alias("level"), fn.col(level).alias("name"))
