"""What went wrong and was worth a record of its own."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn


def incidents(records: DataFrame) -> DataFrame:
    """Return one row for each kind of incident and what it concerns: how often, from when to when, the last detail."""
    place = fn.concat_ws(
        ", ",
        *[
            fn.when(fn.col(name).isNotNull(), fn.concat(fn.lit(f"{name} "), fn.col(name).cast("string")))
            for name in ("route", "type", "topic", "partition")
        ],
    )
    return (
        records.withColumn("place", place)
        .groupBy("run", "name", "place")
        .agg(
            fn.count(fn.lit(1)).alias("times"),
            fn.sum("count").alias("count"),
            fn.min("at_s").alias("first_s"),
            fn.max("at_s").alias("last_s"),
            fn.max_by("detail", "at_ms").alias("last_detail"),
        )
    )
