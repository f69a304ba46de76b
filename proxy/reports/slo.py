"""Whether each class held what is promised of it: overall, inside and outside of congestion, and when it did worst.

Never too good: a bucket counts by its highest value, so an event is in time only if all of its bucket is. Events of the
bucket in which the target lies count as missed, and as `unsure`: of `missed` so many were perhaps in time.
An event counts in the minute (of the clock, UTC) in which its record ends, which is up to one interval of the records
later than it was confirmed; one that was consumed, in the minute of that.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from proxy.reports.latency import BRIDGE

KEYS = ("run", "class")
_TARGET = (*KEYS, "judges", "within_s", "share", "targets")
_COUNTS = ("judged", "missed", "unsure")
_MINUTE_MS = 60_000
_LEAST_BUDGET = 1e-9
"""What is left to miss; a record that leaves less is none of ours."""


def targets(plans: DataFrame) -> DataFrame:
    """Return run, class, judges, within_s, share: what was promised last, by whichever process promised anything.

    `plans`: as `changes.plans` gives them. `targets` is how many different promises the processes of the run made.
    """
    return (
        plans.select("run", "at_ms", "is_later", fn.explode("slos").alias("class", "slo"))
        .where((fn.col("slo.within_s") > 0) & fn.col("slo.share").between(0, 1 - _LEAST_BUDGET))
        .groupBy(*KEYS)
        .agg(fn.max(fn.struct("at_ms", "is_later", "slo")).alias("last"), fn.count_distinct("slo").alias("targets"))
        .select(*KEYS, *[f"last.slo.{name}" for name in ("judges", "within_s", "share")], "targets")
    )


def bridge_times(latencies: DataFrame, promised: DataFrame) -> DataFrame:
    """Return the bridge times of classes as `slo` takes them, from `latency.measured` by a minute or less.

    What was not confirmed has none.
    """
    of_class = latencies.where((fn.col("source") == "class") & (fn.col("measure") == BRIDGE))
    held = of_class.join(fn.broadcast(_judged_by(promised, "bridge")), [*KEYS], "left_semi")
    by_minute = held.withColumn("minute", fn.ceil(fn.col("at_ms") / _MINUTE_MS) - 1)
    counts = by_minute.groupBy(*KEYS, "minute", "value").agg(fn.sum("count").alias("count"))
    return counts.select(*KEYS, fn.lit("bridge").alias("judges"), "minute", fn.col("value").alias("value_us"), "count")


def consumed_times(seen: DataFrame, promised: DataFrame, ends_ms: Mapping[str, int]) -> DataFrame:
    """Return the consumed times of events as `slo` takes them.

    One that never came counts in the minute of its timestamp, if it was late already when its run ended (`ends_ms`).
    """
    held = seen.join(fn.broadcast(_judged_by(promised, "consumed")), [*KEYS])
    is_overdue = fn.col("due_ms") + fn.col("within_s") * 1000 < _by_run(ends_ms)
    return (
        held.where((fn.col("deliveries") > 0) | is_overdue)
        .withColumn("minute", fn.floor(fn.coalesce("read_ms", "due_ms") / _MINUTE_MS))
        .groupBy(*KEYS, fn.lit("consumed").alias("judges"), "minute", (fn.col("consumed_ms") * 1000).alias("value_us"))
        .agg(fn.count(fn.lit(1)).alias("count"))
    )


def inside(episodes: DataFrame, serving: DataFrame, starts_ms: Mapping[str, int]) -> DataFrame:
    """Return run, class and every minute that an episode touches of a route that serves the class.

    `episodes` have run, route, from_s and to_s since the run's start; `serving` run, class and route.
    """
    begin, end = (fn.round(_by_run(starts_ms) + fn.col(name) * 1000) / _MINUTE_MS for name in ("from_s", "to_s"))
    minutes = fn.sequence(fn.floor(begin), fn.greatest(fn.floor(begin), fn.ceil(end) - 1))
    return episodes.join(serving, ["run", "route"]).select(*KEYS, fn.explode(minutes).alias("minute")).distinct()


def slo(judged: DataFrame, promised: DataFrame, touched: DataFrame) -> DataFrame:
    """Return run, class and scope (all, inside, outside of episodes) with what was promised and what held of it.

    `judged` is of `by_minute`, `promised` of `targets`. An event is inside if its minute is one of `touched`, which are
    run, class and minute. Where nothing is measured there is one row of nothing judged.

    `allowed` misses are the error budget, `burn` is missed / allowed: 1 uses up the budget of just this time. A minute
    or hour is worst by its burn, then by its misses, then the first.
    """
    minutes = _with_burn(_in_scopes(judged, touched))
    by_hour = minutes.groupBy(*_TARGET, "scope", fn.floor(fn.col("minute") / 60).alias("hour")).agg(
        *_sums(*_COUNTS),
        fn.count(fn.lit(1)).alias("minutes"),
        fn.count_if(~fn.col("holds")).alias("minutes_missed"),
        fn.max(_worse("minute")).alias("worst_minute"),
    )
    overall = (
        _with_burn(by_hour)
        .groupBy(*_TARGET, "scope")
        .agg(
            *_sums(*_COUNTS, "minutes", "minutes_missed"),
            fn.max("worst_minute").alias("worst_minute"),
            fn.max(_worse("hour")).alias("worst_hour"),
        )
    )
    found = promised.join(_with_burn(overall), [*_TARGET], "left")
    return found.select(
        *KEYS,
        fn.coalesce("scope", fn.lit("all")).alias("scope"),
        *_TARGET[len(KEYS) :],
        *[fn.coalesce(name, fn.lit(0)).alias(name) for name in _COUNTS],
        fn.round(1 - fn.col("missed") / fn.col("judged"), 9).alias("kept"),
        "allowed",
        fn.round("burn", 4).alias("burn"),
        "holds",
        *[fn.coalesce(name, fn.lit(0)).alias(name) for name in ("minutes", "minutes_missed")],
        *_told("worst_minute", 60),
        *_told("worst_hour", 3600),
    )


def _judged_by(promised: DataFrame, judges: str) -> DataFrame:
    return promised.where(fn.col("judges") == judges).select(*KEYS, "within_s")


def by_minute(measured: DataFrame, promised: DataFrame) -> DataFrame:
    """Return what was promised, minute, judged, missed and unsure: how many events, as few rows as minutes of classes.

    `measured` are run, class, judges, minute (since 1970), value_us (the highest of a bucket; null: it never came) and
    count.
    """
    within_us = fn.round(fn.col("within_s") * 1e6)
    is_missed = ~fn.coalesce(fn.col("value_us") <= within_us, fn.lit(col=False))
    # The highest value of the bucket in which the target lies; consumed times are no buckets.
    width = fn.pow(fn.lit(2.0), fn.greatest(fn.floor(fn.log2(within_us)) - 7, fn.lit(0)))
    is_unsure = is_missed & (fn.col("judges") == "bridge") & (fn.col("value_us") < within_us + width)
    return (
        measured.join(fn.broadcast(promised), [*KEYS, "judges"])
        .groupBy(*_TARGET, "minute")
        .agg(
            fn.sum("count").alias("judged"),
            fn.sum(fn.when(is_missed, fn.col("count")).otherwise(0)).alias("missed"),
            fn.sum(fn.when(is_unsure, fn.col("count")).otherwise(0)).alias("unsure"),
        )
    )


def _in_scopes(judged: DataFrame, touched: DataFrame) -> DataFrame:
    """Return each minute twice: as one of all, and as one inside or outside."""
    known = judged.join(touched.withColumn("is_inside", fn.lit(col=True)), [*KEYS, "minute"], "left")
    side = fn.when(fn.col("is_inside"), "inside").otherwise("outside")
    return known.withColumn("scope", fn.explode(fn.array(fn.lit("all"), side)))


def _with_burn(counts: DataFrame) -> DataFrame:
    budget = fn.round(1 - fn.col("share"), 9)  # else 0.9 of 10 events would not allow a whole one
    allowed = fn.col("judged") * budget
    return counts.select(
        "*",
        fn.round(allowed, 6).alias("allowed"),
        (fn.col("missed") / fn.col("judged") / budget).alias("burn"),
        (fn.col("missed") <= fn.round(allowed, 6)).alias("holds"),
    )


def _worse(at: str) -> Column:
    """Return what the worst stretch of time has the greatest of; null where nothing was missed."""
    return fn.when(fn.col("missed") > 0, fn.struct("burn", "missed", (-fn.col(at)).alias("before"), "judged"))


def _told(worst: str, seconds: int) -> list[Column]:
    at = fn.timestamp_seconds(-fn.col(f"{worst}.before") * seconds)
    return [
        fn.date_format(at, "yyyy-MM-dd HH:mm").alias(worst),
        *[fn.col(f"{worst}.{name}").alias(f"{worst}_{name}") for name in ("judged", "missed")],
        fn.round(f"{worst}.burn", 4).alias(f"{worst}_burn"),
    ]


def _sums(*names: str) -> list[Column]:
    return [fn.sum(name).alias(name) for name in names]


def _by_run(values: Mapping[str, int]) -> Column:
    return fn.create_map(*[fn.lit(part) for item in values.items() for part in item])[fn.col("run")]
