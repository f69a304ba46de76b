"""When a route was congested or blind: from the verdict that said so first to the one that took it back."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

JOINED_S = 3.0
"""Stretches at most so many seconds apart are one episode: steady control finds a route congested every few ticks."""
KEYS = ("route", "instance", "file")
"""Whose verdicts follow one another."""


def pieces(verdicts: DataFrame) -> DataFrame:
    """Return verdicts as pieces of time, each with what one verdict says: so several can be merged, see `KEYS`.

    run, at_ms, `KEYS`, from_ms and last_ms (of the first and the last verdict in it), verdicts, causes, queues, the
    worst p50_us and queue_delay_us, errors, cuts. Cut by file, as only verdicts of one file surely have no others
    between them.
    """
    return verdicts.select(
        "run",
        "at_ms",
        "route",
        "instance",
        "file",
        "congested",
        fn.coalesce(fn.col("cause") == "blind", fn.lit(col=False)).alias("is_blind"),
        fn.col("at_ms").alias("from_ms"),
        fn.col("at_ms").alias("last_ms"),
        fn.lit(1).cast("long").alias("verdicts"),
        fn.array_compact(fn.array("cause")).alias("causes"),
        fn.array_compact(fn.array("ruled_by")).alias("queues"),
        "p50_us",
        "queue_delay_us",
        "errors",
        "cuts",
    )


def merged_pieces(some: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return neighbours that say the same as one piece, where they have equal `keys`."""
    by_time = Window.partitionBy(*keys).orderBy("from_ms")
    said = fn.struct("congested", "is_blind")
    is_new = ~fn.lag(said).over(by_time).eqNullSafe(said)
    return (
        some.withColumn("is_new", is_new.cast("int"))
        .withColumn("number", fn.sum("is_new").over(by_time))
        .groupBy(*keys, "number", "congested", "is_blind")
        .agg(
            fn.min("from_ms").alias("from_ms"),
            fn.max("last_ms").alias("last_ms"),
            *[fn.sum(name).alias(name) for name in ("verdicts", "errors", "cuts")],
            *[fn.array_distinct(fn.flatten(fn.collect_list(name))).alias(name) for name in ("causes", "queues")],
            *[fn.max(name).alias(name) for name in ("p50_us", "queue_delay_us")],
        )
        .drop("number")
    )


def episodes(some: DataFrame) -> DataFrame:
    """Return run, route, from_s, to_s, how long what lasted, causes, ruling queues and the worst of each episode.

    `some`: pieces, with from_s and last_s. A verdict that says nothing changes nothing. Replicas judge for themselves:
    a route counts as congested while any of them says so. Such `stretches` that are close make an episode; of its
    `seconds` the route was congested for `congested_s`. `ended` is false where the log stops first; the episode then
    lasts to the last verdict.
    """
    spoken = some.where(fn.col("congested").isNotNull())
    united = _united(_per_replica(spoken, fn.col("congested")), apart_s=0.0)
    return _told(_united(_alone(united), apart_s=JOINED_S))


def blind_time(some: DataFrame) -> DataFrame:
    """Return run, route, how often and how many seconds in all any replica judged it without knowing its queues.

    `some`: pieces. Such a verdict has the cause `blind`; it holds until the replica's next one.
    """
    stretches = _told(_united(_per_replica(some, fn.col("is_blind")), apart_s=0.0))
    return stretches.groupBy("run", "route").agg(
        fn.count(fn.lit(1)).alias("times"),
        fn.round(fn.sum("seconds"), 3).alias("seconds"),
        fn.max("seconds").alias("longest_s"),
        fn.min("from_s").alias("first_s"),
    )


def _per_replica(some: DataFrame, holds: Column) -> DataFrame:
    """Return the unbroken runs of pieces of each replica for which it holds, up to the verdict that ended them."""
    replica = ["run", "route", "instance"]
    by_time = Window.partitionBy(*replica).orderBy("from_s")
    calm_before = fn.sum(fn.when(~fn.col("holds"), 1).otherwise(0)).over(
        by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        some.withColumn("holds", holds)
        .withColumn("calm_before", calm_before)
        .withColumn("next_s", fn.lead("from_s").over(by_time))
        .where("holds")
        .groupBy(*replica, "calm_before")
        .agg(
            fn.min("from_s").alias("from_s"),
            fn.max("last_s").alias("last_s"),
            fn.max_by("next_s", "from_s").alias("ended_s"),
            *[fn.sum(name).alias(name) for name in ("verdicts", "errors", "cuts")],
            *[fn.array_distinct(fn.flatten(fn.collect_list(name))).alias(name) for name in ("causes", "queues")],
            *[fn.max(name).alias(name) for name in ("p50_us", "queue_delay_us")],
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
