"""How long publishing took and how long the bridge took, from merged buckets."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from proxy.reports.buckets import summed_buckets, with_percentiles

MEASURES = {"publish latency": "publish_us", "bridge time": "bridge_us"}
"""Publish latency is write to confirm; bridge time is event timestamp to confirm."""


def latency(records: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return keys, measure, samples, p50_ms, p99_ms, p999_ms, max_ms of class or type records."""
    measures = fn.create_map(*[part for name, column in MEASURES.items() for part in (fn.lit(name), fn.col(column))])
    measured = records.select(*keys, fn.explode(measures).alias("measure", "distribution"))
    by_measure = [*keys, "measure"]
    return with_percentiles(summed_buckets(measured, "distribution", by_measure), by_measure, unit_ms=0.001)
