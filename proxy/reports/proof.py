"""What producers and consumers saw: delivered, missing, duplicated, and the consumed time, event by event."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from proxy.reports.buckets import summed_values, with_percentiles


def events(produced: DataFrame, consumed: DataFrame) -> DataFrame:
    """Return each event once: run, class, type, whether it was produced, its deliveries, consumed_ms of the first one.

    `due_ms` is its timestamp if it was produced, `read_ms` the instant of its first consumption. Consumed time is event
    timestamp to first consumption. An event is known by its id, whoever tells of it.
    """
    written = produced.groupBy("run", "id").agg(
        fn.min("class").alias("class"),
        fn.min("type").alias("type"),
        fn.lit(1).alias("produced"),
        fn.min("at_ms").alias("due_ms"),
    )
    read = consumed.groupBy("run", "id").agg(
        fn.min("class").alias("read_class"),
        fn.min("type").alias("read_type"),
        fn.count(fn.lit(1)).alias("deliveries"),
        fn.min("at_ms").alias("read_ms"),
        (fn.min("at_ms") - fn.min("event_ms")).alias("consumed_ms"),
    )
    return written.join(read, ["run", "id"], "full_outer").select(
        "run",
        fn.coalesce("class", "read_class").alias("class"),
        fn.coalesce("type", "read_type").alias("type"),
        fn.coalesce("produced", fn.lit(0)).alias("produced"),
        fn.coalesce("deliveries", fn.lit(0)).alias("deliveries"),
        "consumed_ms",
        "due_ms",
        "read_ms",
    )


def proof(seen: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return for each key: produced, delivered (of those), missing, duplicated (extra deliveries), unexpected.

    `unexpected` were consumed and never produced, by these records. The consumed time's percentiles come with it.
    """
    produced, delivered = fn.col("produced") == 1, fn.col("deliveries") > 0
    counts = seen.groupBy(*keys).agg(
        fn.count_if(produced).alias("produced"),
        fn.count_if(produced & delivered).alias("delivered"),
        fn.count_if(produced & ~delivered).alias("missing"),
        fn.sum(fn.greatest(fn.col("deliveries") - 1, fn.lit(0))).alias("duplicated"),
        fn.count_if(~produced).alias("unexpected"),
    )
    times = with_percentiles(
        summed_values(seen.where(delivered), "consumed_ms", keys), keys, unit_ms=1.0, prefix="consumed_"
    )
    return counts.join(times.drop("consumed_samples"), [*keys], "left")


def with_whereabouts(proven: DataFrame, traffic: DataFrame, left_in_log: DataFrame) -> DataFrame:
    """Add what became of the missing: dead-lettered (the bridge's count), left in the log at the end, or lost."""
    keys = ["run", "class"]
    known = (
        proven.join(traffic.select(*keys, "dead_lettered"), keys, "left")
        .join(left_in_log, keys, "left")
        .na.fill(0, ["dead_lettered", "left_in_log"])
    )
    rest = fn.col("missing") - fn.col("dead_lettered") - fn.col("left_in_log")
    return known.withColumn("lost", fn.greatest(rest, fn.lit(0)))
