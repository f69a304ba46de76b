"""What went wrong and was worth a record of its own."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn


def placed(records: DataFrame) -> DataFrame:
    """Return run, at_ms, name, place, times, count, first_ms, last_ms, last (instant and detail) of each incident."""
    place = fn.concat_ws(
        ", ",
        *[
            fn.when(fn.col(name).isNotNull(), fn.concat(fn.lit(f"{name} "), fn.col(name).cast("string")))
            for name in ("route", "type", "topic", "partition")
        ],
    )
    return records.select(
        "run",
        "at_ms",
        "name",
        place.alias("place"),
        fn.lit(1).cast("long").alias("times"),
        "count",
        fn.col("at_ms").alias("first_ms"),
        fn.col("at_ms").alias("last_ms"),
        fn.struct("at_ms", "detail").alias("last"),
    )


def incidents(rows: DataFrame) -> DataFrame:
    """Return one row for each kind of incident and what it concerns: how often, from when to when, the last detail.

    `rows`: as `placed` gives them, with first_s and last_s.
    """
    return rows.groupBy("run", "name", "place").agg(
        fn.sum("times").alias("times"),
        fn.sum("count").alias("count"),
        fn.min("first_s").alias("first_s"),
        fn.max("last_s").alias("last_s"),
        fn.max("last")["detail"].alias("last_detail"),
    )
