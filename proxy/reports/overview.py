"""What was read: records by kind, lines that are no records, each run's span and the processes in it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn


def lines_by_kind(parsed: DataFrame) -> DataFrame:
    """Return run, kind (null: none), lines, first and last at_ms, longest interval_s, of types, `slos` with targets."""
    return parsed.groupBy("run", "kind").agg(
        fn.count(fn.lit(1)).alias("lines"),
        fn.min("at_ms").alias("first_ms"),
        fn.max("at_ms").alias("last_ms"),
        fn.max(fn.coalesce("route.interval_s", "class.interval_s")).alias("interval_s"),
        fn.max("type.interval_s").alias("type_interval_s"),
        fn.count("start.slos").alias("slos"),
    )


def rejected_lines(parsed: DataFrame) -> DataFrame:
    """Return run, file, reason, lines and the beginning of one of them."""
    return (
        parsed.where(fn.col("reason").isNotNull())
        .groupBy("run", "file", "reason")
        .agg(fn.count(fn.lit(1)).alias("lines"), fn.min("sample").alias("sample"))
    )


def processes(starts: DataFrame, stops: DataFrame, drops: DataFrame) -> DataFrame:
    """Return each process that wrote records of its own life: version, start and end, what it says it lost."""
    keys = ["run", "instance"]
    started = starts.groupBy(*keys).agg(
        fn.min("at_s").alias("started_s"),
        fn.min("version").alias("version"),
        fn.min(fn.to_json("routes")).alias("routes"),
    )
    stopped = stops.groupBy(*keys).agg(
        fn.max("at_s").alias("stopped_s"),
        fn.sum("unresolved").alias("unresolved"),
    )
    dropped = drops.groupBy(*keys).agg(
        fn.sum("records").alias("dropped_records"),
        fn.sum("files").alias("dropped_files"),
    )
    return (
        started.join(stopped, keys, "full_outer")
        .join(dropped, keys, "full_outer")
        .na.fill(0, ["dropped_records", "dropped_files"])
    )
