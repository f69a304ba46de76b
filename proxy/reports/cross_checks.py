"""Sums that must agree because two kinds of records tell of the same events; each is shown, agreeing or not."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from proxy.reports.buckets import summed_buckets

_FIELDS = ("received", "confirmed", "nacked", "unknown", "dead_lettered", "possible_duplicates")


def cross_checks(checks: list[DataFrame]) -> DataFrame:
    """Return all checks as rows: run, check, subject, left, right, difference."""
    return reduce(DataFrame.unionByName, checks).withColumn("difference", fn.col("left") - fn.col("right"))


def classes_against_types(by_class: DataFrame, by_type: DataFrame) -> DataFrame:
    """Compare each count of a class with the sum over its event types; runs without type records are left out."""
    sums = by_type.groupBy("run", "class").agg(*[fn.sum(name).alias(f"types_{name}") for name in _FIELDS])
    told = by_type.select("run").distinct()
    both = by_class.join(told, "run").join(sums, ["run", "class"], "left")
    pairs = fn.explode(fn.array(*[_pair(name, fn.col(name), fn.col(f"types_{name}")) for name in _FIELDS]))
    return both.select("run", "class", pairs.alias("pair")).select(
        "run",
        fn.lit("class records = sum of type records").alias("check"),
        fn.concat_ws(" ", "class", "pair.name").alias("subject"),
        "pair.left",
        "pair.right",
    )


def counts_against_buckets(classes: DataFrame, by_class: DataFrame) -> DataFrame:
    """Compare the events confirmed with the samples in the buckets of publish latency."""
    keys = ["run", "class"]
    samples = summed_buckets(classes, "publish_us", keys).groupBy(*keys).agg(fn.sum("count").alias("samples"))
    return by_class.join(samples, keys, "left").select(
        "run",
        fn.lit("confirmed = samples of publish latency").alias("check"),
        fn.col("class").alias("subject"),
        fn.col("confirmed").alias("left"),
        _or_zero("samples").alias("right"),
    )


def routes_against_classes(routes: DataFrame, by_class: DataFrame) -> DataFrame:
    """Compare what all routes confirmed with what all classes confirmed."""
    left = routes.groupBy("run").agg(fn.sum("confirmed").alias("left"))
    right = by_class.groupBy("run").agg(fn.sum("confirmed").alias("right"))
    return left.join(right, "run").select(
        "run",
        fn.lit("route records = class records").alias("check"),
        fn.lit("confirmed").alias("subject"),
        "left",
        "right",
    )


def stops_against_classes(stops: DataFrame, classes: DataFrame) -> DataFrame:
    """Compare what a process that ended in order says it confirmed with the sum of its intervals."""
    keys = ["run", "instance"]
    left = stops.groupBy(*keys).agg(fn.sum("confirmed").alias("left"))
    right = classes.groupBy(*keys).agg(fn.sum("confirmed").alias("confirmed"))
    return left.join(right, keys, "left").select(
        "run",
        fn.lit("stop record = sum of class records").alias("check"),
        fn.concat(fn.lit("confirmed, "), "instance").alias("subject"),
        "left",
        _or_zero("confirmed").alias("right"),
    )


def bridge_against_proof(by_class: DataFrame, proven: DataFrame) -> DataFrame:
    """Compare what the bridge did with what was produced and consumed, where that is known.

    What is produced is done with by the bridge or still in the log; what it received and did not finish is in the log,
    too. Each event consumed counts once here. What was sent again after a restart, or waits in a queue, makes a
    difference.
    """
    both = proven.join(by_class.select("run", "class", "confirmed"), ["run", "class"], "left")
    settled = fn.coalesce("confirmed", fn.lit(0)) + fn.col("dead_lettered") + fn.col("left_in_log")
    pairs = fn.explode(
        fn.array(
            _pair("confirmed + dead-lettered + still in the log = produced", settled, fn.col("produced")),
            _pair("events confirmed = consumed", fn.col("confirmed"), fn.col("delivered") + fn.col("unexpected")),
        )
    )
    return both.select("run", "class", pairs.alias("pair")).select(
        "run", fn.col("pair.name").alias("check"), fn.col("class").alias("subject"), "pair.left", "pair.right"
    )


def _pair(name: str, left: Column, right: Column) -> Column:
    zero = fn.lit(0)
    return fn.struct(
        fn.lit(name.replace("_", " ")).alias("name"),
        fn.coalesce(left, zero).cast("long").alias("left"),
        fn.coalesce(right, zero).cast("long").alias("right"),
    )


def _or_zero(name: str) -> Column:
    return fn.coalesce(name, fn.lit(0))
