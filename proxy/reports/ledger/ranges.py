"""Ranges that overlap made disjoint: what two say of one position counts once."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn


def with_start(claims: DataFrame, keys: Sequence[str], *ties: str) -> DataFrame:
    """Say of each range from which of its positions on it is the first one there (`start`), of those with equal keys.

    The one that begins first is, of several the longest, then by the ties: what lies within another adds nothing, and
    starts behind its end. One sort of each key's ranges.
    """
    before = (
        Window.partitionBy(*keys)
        .orderBy("first", fn.col("end").desc(), *ties)
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    return claims.withColumn("start", fn.greatest("first", fn.max("end").over(before)))
