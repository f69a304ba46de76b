"""Who waited: how evenly event types of a class were served, and how old what waits becomes, by event type.

Both go by stretches of `STRETCH_S`, the same for all replicas, in which each one's last word counts.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from proxy.reports.traffic import all_reasons

STRETCH_S = 10.0
"""The usual interval of type records."""
HORIZON_S = 86_400.0
"""A day: the age from which on one should know what the log keeps. Kafka keeps seven days unless told otherwise."""
LATEST = 6
"""So many of the last stretches of a type tell the present rate."""
_TYPE = ("run", "class", "type")


def fairness(types: DataFrame) -> DataFrame:
    """Return for each run and class how its event types were served while any of the class had events left.

    A type's share is what was done with of what was there: done with in the stretch, and left at its end. `jain` is
    Jain's index of these shares over types, (Σx)² / nΣx², 1 if all have the same and 1/n if one has all: the mean over
    stretches, and the least. `served` is the class's own share, `of_done` its part of what all classes got done in
    these stretches, `of_demand` its part of what was there.
    """
    stretch = ["run", "stretch"]
    share = fn.col("done") / (fn.col("done") + fn.col("left"))
    by_class = (
        _stretches(types)
        .where(fn.col("done") + fn.col("left") > 0)
        .withColumn("share", share)
        .groupBy(*stretch, "class")
        .agg(
            *[fn.sum(name).alias(name) for name in ("done", "left", "share")],
            fn.sum(fn.col("share") * fn.col("share")).alias("squares"),
            fn.count(fn.lit(1)).alias("types"),
            fn.max("interval_s").alias("interval_s"),
        )
        .withColumn("all_done", fn.sum("done").over(Window.partitionBy(*stretch)))
        .withColumn("all_left", fn.sum("left").over(Window.partitionBy(*stretch)))
        .where(fn.col("left") > 0)
    )
    even = fn.col("share") * fn.col("share") / (fn.col("types") * fn.col("squares"))
    jain = fn.when(fn.col("squares") > 0, even).otherwise(1.0)
    done, left = fn.sum("done"), fn.sum("left")
    return by_class.groupBy("run", "class").agg(
        fn.round(fn.sum("interval_s"), 3).alias("backlog_s"),
        fn.max("types").alias("types"),
        fn.round(fn.avg(jain), 4).alias("jain"),
        fn.round(fn.min(jain), 4).alias("least_jain"),
        fn.round(done / (done + left), 4).alias("served"),
        fn.round(_part(done, fn.sum("all_done")), 4).alias("of_done"),
        fn.round((done + left) / fn.sum(fn.col("all_done") + fn.col("all_left")), 4).alias("of_demand"),
    )


def waiting(types: DataFrame) -> DataFrame:
    """Return for each event type that ever had events left: how many, how old, and where that leads.

    run, class, type, route, worst_left, left, worst_age_s, age_s (of the oldest that waits; the last known),
    age_growth (seconds a second over the last `LATEST` stretches, by least squares), day_in_s: seconds until the oldest
    is `HORIZON_S` old at that rate, null if it does not grow older.
    """
    by_type = Window.partitionBy(*_TYPE).orderBy(fn.col("stretch").desc())
    last = fn.col("back") == 1
    present = fn.when(fn.col("back") <= LATEST, fn.col("age_s"))
    summed = (
        _stretches(types)
        .withColumn("back", fn.row_number().over(by_type))
        .groupBy(*_TYPE)
        .agg(
            fn.first("route").alias("route"),
            fn.max("left").alias("worst_left"),
            fn.max(fn.when(last, fn.col("left"))).alias("left"),
            fn.max("age_s").alias("worst_age_s"),
            fn.max(fn.when(last, fn.col("age_s"))).alias("age_s"),
            fn.round(fn.regr_slope(present, fn.col("at_s")), 4).alias("age_growth"),
        )
    )
    day_in_s = (HORIZON_S - fn.col("age_s")) / fn.col("age_growth")
    return summed.where(fn.col("worst_left") > 0).withColumn(
        "day_in_s", fn.when((fn.col("age_growth") > 0) & (fn.col("left") > 0), fn.round(day_in_s, 1))
    )


def _stretches(types: DataFrame) -> DataFrame:
    """Return run, class, type, route, stretch, at_s, interval_s, done, left and age_s, of all replicas together.

    `left`: in the log and not done with, where the log told its end, else in the inboxes; `age_s` of the oldest, 0 if
    nothing waits in an inbox. A type of which nothing is recorded in a stretch has no row.
    """
    undone = fn.greatest("waiting", fn.col("lag") - fn.coalesce("ahead", fn.lit(0)))
    dead = all_reasons(fn.col("dead_lettered"))
    in_replica = (
        types.withColumn("left", undone)
        .withColumn("dead", dead)
        .groupBy(*_TYPE, "instance", (fn.ceil(fn.col("at_s") / STRETCH_S) - 1).alias("stretch"))
        .agg(
            fn.first("route").alias("route"),
            fn.max("at_s").alias("at_s"),
            fn.sum("interval_s").alias("interval_s"),
            fn.sum(fn.col("confirmed") + fn.col("dead")).alias("done"),
            fn.max_by("left", "at_ms").alias("left"),
            fn.max_by(fn.coalesce("lag_age_s", fn.lit(0.0)), "at_ms").alias("age_s"),
        )
    )
    return in_replica.groupBy(*_TYPE, "stretch").agg(
        fn.first("route").alias("route"),
        *[fn.max(name).alias(name) for name in ("at_s", "interval_s", "age_s")],
        *[fn.sum(name).alias(name) for name in ("done", "left")],
    )


def _part(part: Column, whole: Column) -> Column:
    return fn.when(whole > 0, part / whole)
