"""Whether added consumers helped: the drain rate of a route before and after their number changed."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

AROUND_S = 30
"""So many seconds before and after are compared, or up to the next change."""
SETTLING_S = 3
"""So many seconds behind a change are left out: a drain rate needs them to be seen."""
BUSY = 0.5
"""In so great a share of the seconds messages must have been in the queue: else nobody sees what consumers could do."""


def scaling(routes: DataFrame, verdicts: DataFrame) -> DataFrame:
    """Return each change of the number of a route's consumers that is known.

    run, route, at_s, consumers_before, consumers_after, drain_before, drain_after (events of cost 1 a second, the mean
    of what replicas estimated), confirmed_before, confirmed_after (events a second), busy_before, busy_after (share of
    the seconds with messages in the queue), gain: what an added consumer brought, in those of before: 1 is as much as
    each of them, 0 nothing; what a removed one took, likewise. It is null where the queue was mostly empty before or
    after, or nobody consumed before.
    """
    segment = ["run", "route", "number"]
    by_time, by_number = (Window.partitionBy("run", "route").orderBy(by) for by in ("second", "number"))
    changes = fn.coalesce(fn.col("consumers") != fn.lag("consumers").over(by_time), fn.lit(col=False)).cast("int")
    in_segment = Window.partitionBy(*segment)
    begun = fn.col("second") - fn.min("second").over(in_segment)
    left = fn.max("second").over(in_segment) - fn.col("second")
    segments = (
        _seconds(routes, verdicts)
        .withColumn("changes", changes)
        .withColumn("number", fn.sum("changes").over(by_time))
        .withColumn("is_early", begun.between(SETTLING_S, SETTLING_S + AROUND_S - 1))
        .withColumn("is_late", left < AROUND_S)
        .groupBy(*segment)
        .agg(
            fn.min("at_s").alias("at_s"),
            fn.first("consumers").alias("consumers_after"),
            *_means("is_early", "after"),
            *_means("is_late", "tail"),
        )
    )
    before = [
        fn.lag(old).over(by_number).alias(new)
        for old, new in (
            ("consumers_after", "consumers_before"),
            *((f"{name}_tail", f"{name}_before") for name in ("drain", "confirmed", "busy")),
        )
    ]
    paired = segments.select("*", *before).where(fn.col("consumers_before").isNotNull())
    each = (fn.col("drain_after") - fn.col("drain_before")) / (fn.col("consumers_after") - fn.col("consumers_before"))
    is_seen = (fn.col("busy_before") >= BUSY) & (fn.col("busy_after") >= BUSY) & (fn.col("consumers_before") > 0)
    gain = each / (fn.col("drain_before") / fn.col("consumers_before"))
    return paired.select(
        *("run", "route", "at_s", "consumers_before", "consumers_after"),
        *(f"{name}_{when}" for name in ("drain", "confirmed", "busy") for when in ("before", "after")),
        fn.when(is_seen & (fn.col("drain_before") > 0), fn.round(gain, 3)).alias("gain"),
    )


def _seconds(routes: DataFrame, verdicts: DataFrame) -> DataFrame:
    """Return run, route, second, at_s and what all replicas knew of it; only seconds of which consumers are known."""
    second = (fn.ceil("at_s") - 1).cast("long").alias("second")
    told = routes.select("run", "route", second, "at_s", "consumers", "depth", "confirmed", "interval_s").unionByName(
        verdicts.where(fn.col("drain_rate").isNotNull()).select("run", "route", second, "depth", "drain_rate"),
        allowMissingColumns=True,
    )
    return (
        told.groupBy("run", "route", "second")
        .agg(
            *[fn.max(name).alias(name) for name in ("consumers", "depth", "interval_s")],
            fn.min("at_s").alias("at_s"),
            fn.sum("confirmed").alias("confirmed"),
            fn.avg("drain_rate").alias("drain_rate"),
        )
        .where(fn.col("consumers").isNotNull())
    )


def _means(when: str, name: str) -> list[Column]:
    def chosen(column: str) -> Column:
        return fn.when(fn.col(when), fn.col(column))

    busy = fn.when(fn.col(when) & fn.col("depth").isNotNull(), (fn.col("depth") > 0).cast("int"))
    return [
        fn.round(fn.avg(chosen("drain_rate")), 3).alias(f"drain_{name}"),
        fn.round(fn.sum(chosen("confirmed")) / fn.sum(chosen("interval_s")), 3).alias(f"confirmed_{name}"),
        fn.round(fn.avg(busy), 3).alias(f"busy_{name}"),
    ]
