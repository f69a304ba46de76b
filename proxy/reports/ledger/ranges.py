"""Ranges that overlap made disjoint: what two say of one position counts once."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as fn


def earlier(keys: Sequence[str], *ties: str | Column) -> WindowSpec:
    """Return the ranges of equal keys that come before a range: what begins first does, of several the longest."""
    in_order = Window.partitionBy(*keys).orderBy("first", fn.col("end").desc(), *ties)
    return in_order.rowsBetween(Window.unboundedPreceding, -1)


def with_start(claims: DataFrame, keys: Sequence[str], *ties: str | Column) -> DataFrame:
    """Say of each range from which of its positions on it is the first one there (`start`), of those with equal keys.

    What lies within another adds nothing, and starts behind its end. One sort of each key's ranges.
    """
    return claims.withColumn("start", fn.greatest("first", fn.max("end").over(earlier(keys, *ties))))
