"""Reads the records of a window of metric logs, by Spark: what tuning knows of how a log is read."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.storagelevel import StorageLevel

from proxy.reports.files import ReportError
from proxy.reports.records import by_kind, read_lines, with_kind
from proxy.tuning.recording import Recording

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("start", "settings", "class", "route", "type", "verdict", "committed")
"""What a load is rebuilt from."""
_ENVELOPE = ("run", "file", "instance", "at_ms")
MOST_RECORDS = 300_000
"""Records that are handed over; an hour of a few replicas."""
LONGEST = 3_600.0
"""Seconds that are replayed at most."""


def read(
    spark: "SparkSession", files: Sequence[str], since: datetime | None = None, until: datetime | None = None
) -> Recording:
    """Return what was recorded between two instants, by default from the first record to the last one.

    Raises `ReportError` if there is nothing to replay, or too much.
    """
    lines = with_kind(read_lines(spark, {"": files})).where(fn.col("kind").isin(*KINDS))
    every = by_kind(lines.persist(StorageLevel.MEMORY_AND_DISK))
    told = [
        every[kind].select(
            fn.lit(kind).alias("kind"),
            "instance",
            "at_ms",
            fn.to_json(fn.struct(*[name for name in every[kind].columns if name not in _ENVELOPE])).alias("fields"),
        )
        for kind in KINDS
    ]
    since_ms = None if since is None else round(since.timestamp() * 1000)
    until_ms = None if until is None else round(until.timestamp() * 1000)
    window = fn.lit(col=True)
    if since_ms is not None:
        window &= fn.col("at_ms") > since_ms
    if until_ms is not None:
        window &= fn.col("at_ms") <= until_ms
    kept = reduce(DataFrame.unionAll, told).where(window | fn.col("kind").isin("start", "settings"))
    rows = kept.limit(MOST_RECORDS + 1).collect()
    lines.unpersist()
    if len(rows) > MOST_RECORDS:
        raise ReportError(f"more than {MOST_RECORDS:,} records; choose a shorter window by --since and --until")
    kinds = {row.kind for row in rows}
    if "class" not in kinds:
        only = f" (only {', '.join(sorted(kinds))})" if kinds else ""
        when = " between --since and --until" if since or until else ""
        raise ReportError(f"no `class` records{when}{only}: what came is told there; give the folder of a whole log")
    recording = Recording.of(
        {"kind": row.kind, "instance": row.instance, "at_ms": row.at_ms} | _filled(json.loads(row.fields))
        for row in rows
    )
    if recording.seconds > LONGEST:
        raise ReportError(
            f"{recording.seconds / 3600:.1f} h are recorded, one is replayed at most; choose it by --since and --until"
        )
    return recording


def _filled(fields: dict[str, object]) -> dict[str, object]:
    """Return the fields with null for those that Spark leaves out."""
    return _NULLS | fields


_NULLS: dict[str, object] = dict.fromkeys(("lag", "lag_age_s", "depth", "consumers", "queues"))
