"""What was read: lines that are no records, and the processes in each run."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from proxy.reports.records import REJECTED, SAMPLE

CUT_SHORT = "can't be read to its end"
"""The reason of a file that a store left out whole."""


def rejected_lines(judged: DataFrame) -> DataFrame:
    """Return run, file, reason, lines and the beginning of one of them."""
    return (
        judged.where(fn.col(REJECTED).isNotNull())
        .groupBy("run", "file", fn.col(REJECTED).alias("reason"))
        .agg(fn.count(fn.lit(1)).alias("lines"), fn.min(SAMPLE).alias("sample"))
    )


def processes(starts: DataFrame, stops: DataFrame, drops: DataFrame) -> DataFrame:
    """Return each process that wrote records of its own life: version, start and end, what it says it lost.

    `confirmed` is what it said at its end; null if it left no stop record.
    """
    keys = ["run", "instance"]
    lives = starts.select(
        *keys,
        fn.col("at_s").alias("started_s"),
        "version",
        fn.to_json("routes").alias("routes"),
        *[fn.to_json(name).alias(name) for name in ("classes", "slos")],
    )
    ends = stops.select(*keys, fn.col("at_s").alias("stopped_s"), "unresolved", "confirmed")
    losses = drops.select(*keys, fn.col("records").alias("dropped_records"), fn.col("files").alias("dropped_files"))
    told = lives.unionByName(ends, allowMissingColumns=True).unionByName(losses, allowMissingColumns=True)
    return told.groupBy(*keys).agg(
        *[fn.min(name).alias(name) for name in ("started_s", "version", "routes", "classes", "slos")],
        fn.max("stopped_s").alias("stopped_s"),
        *[fn.sum(name).alias(name) for name in ("unresolved", "confirmed")],
        *[fn.coalesce(fn.sum(name), fn.lit(0)).alias(name) for name in ("dropped_records", "dropped_files")],
    )
