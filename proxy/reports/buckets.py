"""Exact percentiles of merged distributions: counts are added per value, then walked in order. Nothing is averaged.

A bucket stands for its highest value, so that a percentile of bucket counts is never too small, and less than 1/128 too
large above 256 µs (the layout of docs/metric-log.md).
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

_HALF_BITS = 7
_HALF = 1 << _HALF_BITS
"""Buckets of one width."""
PERCENTILES = {"p50": 500, "p99": 990, "p999": 999}
"""Name and thousandths of the samples that lie at or below."""


def highest_of(index: Column) -> Column:
    """Return the highest value in µs that falls into a bucket."""
    index = index.cast("long")
    shift = fn.shiftright(index, _HALF_BITS).cast("int") - 1
    top = index.bitwiseAND(_HALF - 1) + _HALF + 1
    return fn.when(shift <= 0, index).otherwise(fn.call_function("shiftleft", top, shift) - 1)


def with_percentiles(counts: DataFrame, keys: Sequence[str], *, unit_ms: float, prefix: str = "") -> DataFrame:
    """Return keys, samples, the percentiles and the largest value, in milliseconds; `unit_ms` is what 1 stands for."""
    in_order = Window.partitionBy(*keys).orderBy("value").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = counts.withColumn("up_to", fn.sum("count").over(in_order)).withColumn(
        "samples", fn.sum("count").over(Window.partitionBy(*keys))
    )
    in_ms = fn.round(fn.col("value") * unit_ms, 3)
    return ranked.groupBy(*keys).agg(
        fn.first("samples").alias(f"{prefix}samples"),
        *[
            fn.min(fn.when(fn.col("up_to") * 1000 >= fn.col("samples") * mille, in_ms)).alias(f"{prefix}{name}_ms")
            for name, mille in PERCENTILES.items()
        ],
        fn.max(in_ms).alias(f"{prefix}max_ms"),
    )
