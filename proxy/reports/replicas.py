"""Replicas beside one another: who did how much, whose clock is off, and what stands still."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from proxy.reports.buckets import highest_of

APART_MS = 3_000
"""Changes of a route at most so far apart are one change; clocks that are off by more are not compared."""
SEEN_BY_ALL = ("depth", "no_consumers", "unacked")
"""Causes that every replica reads from the same queues at the same time. Others are a replica's own."""
STUCK_INTERVALS = 3
"""An event type that waits for so many intervals, and gets nothing done, is stuck."""


def replicas(classes: DataFrame) -> DataFrame:
    """Return for each run, class and process its counts, its share of the class, its lag, and what tells of its clock.

    `share` is of the events that all confirmed, 0 to 1; `lag` the last known. `least_bridge_ms` is the least bridge
    time of any event: where it differs between processes, so do their clocks (or producers'); it is 0 where events were
    confirmed before their own timestamp (`ahead_of_clock`).
    """
    keys = ["run", "class", "instance"]
    indexes = fn.transform(fn.map_keys("bridge_us"), lambda index: index.cast("int"))
    total = fn.sum("confirmed").over(Window.partitionBy("run", "class"))
    return (
        classes.groupBy(*keys)
        .agg(
            fn.round(fn.sum("interval_s"), 3).alias("seconds"),
            *[fn.sum(name).alias(name) for name in ("received", "confirmed")],
            fn.max_by("lag", fn.when(fn.col("lag").isNotNull(), fn.col("at_ms"))).alias("lag"),
            fn.max("lag").alias("worst_lag"),
            fn.max("lag_age_s").alias("worst_age_s"),
            fn.min(fn.array_min(indexes)).alias("least"),
            fn.sum(fn.coalesce("ahead_of_clock", fn.lit(0))).alias("ahead_of_clock"),
        )
        .select(
            *keys,
            "seconds",
            "received",
            "confirmed",
            fn.round(fn.when(total > 0, fn.col("confirmed") / total), 4).alias("share"),
            "lag",
            "worst_lag",
            "worst_age_s",
            fn.round(highest_of(fn.col("least")) / 1000, 3).alias("least_bridge_ms"),
            "ahead_of_clock",
        )
    )


def clocks(verdicts: DataFrame) -> DataFrame:
    """Return run, instance, reference, changes, offset_ms, least_ms and greatest_ms of processes that can be compared.

    Replicas read the same queues, so that they see a change at the same time, within a control tick and a look at the
    depth. How much later by its own clock than the reference (the process that saw most) one writes that its route
    became congested is the offset of its clock: the median over `changes`, with the least and greatest.
    """
    first = _first_seen(verdicts)
    in_run, by_instance = Window.partitionBy("run"), Window.partitionBy("run", "instance")
    rank = fn.struct(-fn.count(fn.lit(1)).over(by_instance), fn.col("instance"))
    reference = first.withColumn("rank", rank).withColumn("reference", fn.min("rank").over(in_run)["instance"])
    in_change = Window.partitionBy("run", "route", "change")
    theirs = fn.max(fn.when(fn.col("instance") == fn.col("reference"), fn.col("at_ms"))).over(in_change)
    return (
        reference.withColumn("offset", fn.col("at_ms") - theirs)
        .where((fn.col("instance") != fn.col("reference")) & fn.col("offset").between(-APART_MS, APART_MS))
        .groupBy("run", "instance", "reference")
        .agg(
            fn.count(fn.lit(1)).alias("changes"),
            fn.median("offset").alias("offset_ms"),
            fn.min("offset").alias("least_ms"),
            fn.max("offset").alias("greatest_ms"),
        )
    )


def _first_seen(verdicts: DataFrame) -> DataFrame:
    """Return run, route, change (its number), instance, at_ms: when each process first wrote of a change.

    One that began to watch the route in the midst of it is left out.
    """
    by_process = Window.partitionBy("run", "route", "instance")
    before = fn.lag("congested").over(by_process.orderBy("at_ms"))
    by_route = Window.partitionBy("run", "route").orderBy("at_ms")
    apart = fn.col("at_ms") - fn.lag("at_ms").over(by_route) > APART_MS
    in_change = Window.partitionBy("run", "route", "change")
    return (
        verdicts.where(fn.col("congested").isNotNull() & fn.col("hot").isNotNull())
        .select(
            *("run", "route", "instance", "at_ms", "congested", "cause"),
            before.alias("before"),
            fn.min("at_ms").over(by_process).alias("since"),
        )
        .where(fn.col("congested") & ~fn.col("before") & fn.col("cause").isin(*SEEN_BY_ALL))
        .withColumn("begins", fn.coalesce(apart, fn.lit(col=True)).cast("int"))
        .withColumn("change", fn.sum("begins").over(by_route))
        .withColumn("began", fn.min("at_ms").over(in_change))
        .where(fn.col("since") < fn.col("began") - APART_MS)
        .groupBy("run", "route", "change", "instance")
        .agg(fn.min("at_ms").alias("at_ms"))
    )


def stuck(types: DataFrame) -> DataFrame:
    """Return when an event type of a process had events and got nothing done for `STUCK_INTERVALS` or more.

    run, type, instance, class, route, from_s, to_s, seconds, intervals, lag, waiting, ended (something moved again).
    Nothing done: neither confirmed nor dead-lettered; records further apart than as many intervals belong to two.
    """
    keys = ["run", "type", "instance"]
    by_time = Window.partitionBy(*keys).orderBy("at_ms")
    gap_s = STUCK_INTERVALS * fn.col("interval_s")
    is_late = fn.col("at_s") - fn.lag("at_s").over(by_time) > gap_s
    return (
        types.withColumn("still", _has_work() & ~_moves())
        .withColumn("begins", (~fn.col("still") | fn.coalesce(is_late, fn.lit(col=False))).cast("int"))
        .withColumn("number", fn.sum("begins").over(by_time))
        .withColumn("moves_on", fn.lead(~fn.col("still")).over(by_time))
        .where("still")
        .groupBy(*keys, "number")
        .agg(
            *[fn.first(name).alias(name) for name in ("class", "route")],
            fn.round(fn.min(fn.col("at_s") - fn.col("interval_s")), 3).alias("from_s"),
            fn.max("at_s").alias("to_s"),
            fn.count(fn.lit(1)).alias("intervals"),
            *[fn.max(name).alias(name) for name in ("lag", "waiting")],
            fn.coalesce(fn.max_by("moves_on", "at_ms"), fn.lit(col=False)).alias("ended"),
        )
        .where(fn.col("intervals") >= STUCK_INTERVALS)
        .withColumn("seconds", fn.round(fn.col("to_s") - fn.col("from_s"), 3))
        .select(*keys, "class", "route", "from_s", "to_s", "seconds", "intervals", "lag", "waiting", "ended")
    )


def _has_work() -> Column:
    undone = fn.col("lag") - fn.coalesce("ahead", fn.lit(0))
    return (fn.col("waiting") > 0) | fn.coalesce(undone > 0, fn.lit(col=False))


def _moves() -> Column:
    dead = fn.exists(fn.map_values("dead_lettered"), lambda count: count > 0)
    return (fn.col("confirmed") > 0) | fn.coalesce(dead, fn.lit(col=False))
