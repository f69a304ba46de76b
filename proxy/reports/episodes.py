"""When a route was congested or blind: from the verdict that said so first to the one that took it back."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

JOINED_S = 3.0
"""Stretches at most so many seconds apart are one episode: steady control finds a route congested every few ticks."""


def episodes(verdicts: DataFrame) -> DataFrame:
    """Return run, route, from_s, to_s, how long what lasted, causes, ruling queues and the worst of each episode.

    A verdict that says nothing changes nothing. Replicas judge for themselves: a route counts as congested while any of
    them says so. Such `stretches` that are close make an episode; of its `seconds` the route was congested
    for `congested_s`. `ended` is false where the log stops first; the episode then lasts to the last verdict.
    """
    spoken = verdicts.where(fn.col("congested").isNotNull())
    united = _united(_per_replica(spoken, fn.col("congested")), apart_s=0.0)
    return _told(_united(_alone(united), apart_s=JOINED_S))


def blind_time(verdicts: DataFrame) -> DataFrame:
    """Return run, route, how often and how many seconds in all any replica judged it without knowing its queues.

    Such a verdict has the cause `blind`; it holds until the replica's next one.
    """
    stretches = _told(_united(_per_replica(verdicts, fn.col("cause") == "blind"), apart_s=0.0))
    return stretches.groupBy("run", "route").agg(
        fn.count(fn.lit(1)).alias("times"),
        fn.round(fn.sum("seconds"), 3).alias("seconds"),
        fn.max("seconds").alias("longest_s"),
        fn.min("from_s").alias("first_s"),
    )


def _per_replica(verdicts: DataFrame, holds: Column) -> DataFrame:
    """Return the unbroken runs of verdicts of each replica for which it holds, up to the verdict that ended them."""
    replica = ["run", "route", "instance"]
    by_time = Window.partitionBy(*replica).orderBy("at_ms")
    calm_before = fn.sum(fn.when(~fn.col("holds"), 1).otherwise(0)).over(
        by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        verdicts.withColumn("holds", holds)
        .withColumn("calm_before", calm_before)
        .withColumn("next_s", fn.lead("at_s").over(by_time))
        .where("holds")
        .groupBy(*replica, "calm_before")
        .agg(
            fn.min("at_s").alias("from_s"),
            fn.max("at_s").alias("last_s"),
            fn.max_by("next_s", "at_s").alias("ended_s"),
            fn.count(fn.lit(1)).alias("verdicts"),
            fn.collect_set("cause").alias("causes"),
            fn.collect_set("ruled_by").alias("queues"),
            fn.max("p50_us").alias("p50_us"),
            fn.sum("errors").alias("errors"),
            fn.max("queue_delay_us").alias("queue_delay_us"),
            fn.sum("cuts").alias("cuts"),
        )
        .withColumn("to_s", fn.coalesce("ended_s", "last_s"))
        .withColumn("ended", fn.col("ended_s").isNotNull())
        .transform(_alone)
    )


def _alone(stretches: DataFrame) -> DataFrame:
    """Return each as a stretch by itself, congested from its first instant to its last."""
    return stretches.withColumn("stretches", fn.lit(1)).withColumn("congested_s", fn.col("to_s") - fn.col("from_s"))


def _united(stretches: DataFrame, *, apart_s: float) -> DataFrame:
    """Return the stretches of a route, those that overlap or are at most so far apart as one."""
    by_start = Window.partitionBy("run", "route").orderBy("from_s", "to_s")
    before = by_start.rowsBetween(Window.unboundedPreceding, -1)
    begins = fn.coalesce(fn.col("from_s") - fn.max("to_s").over(before) > apart_s, fn.lit(col=True))
    return (
        stretches.withColumn("begins", begins.cast("int"))
        .withColumn("number", fn.sum("begins").over(by_start))
        .groupBy("run", "route", "number")
        .agg(
            fn.min("from_s").alias("from_s"),
            fn.max("to_s").alias("to_s"),
            fn.max_by("ended", "to_s").alias("ended"),
            *[fn.sum(name).alias(name) for name in ("stretches", "congested_s", "verdicts", "errors", "cuts")],
            *[fn.array_distinct(fn.flatten(fn.collect_list(name))).alias(name) for name in ("causes", "queues")],
            *[fn.max(name).alias(name) for name in ("p50_us", "queue_delay_us")],
        )
    )


def _told(united: DataFrame) -> DataFrame:
    return united.select(
        "run",
        "route",
        "from_s",
        "to_s",
        fn.round(fn.col("to_s") - fn.col("from_s"), 3).alias("seconds"),
        fn.round("congested_s", 3).alias("congested_s"),
        "stretches",
        "ended",
        "verdicts",
        fn.array_join(fn.array_sort("causes"), ", ").alias("causes"),
        fn.array_join(fn.array_sort("queues"), ", ").alias("queues"),
        fn.round(fn.col("p50_us") / 1000, 3).alias("worst_p50_ms"),
        fn.round(fn.col("queue_delay_us") / 1000, 3).alias("worst_delay_ms"),
        "errors",
        "cuts",
    )
