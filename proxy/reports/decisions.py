"""What control cost: was it right to slow down, did growth lead to congestion, did rates hold anybody back.

Verdicts, routes and event types are brought to seconds of a route in one process, so that none is joined with another.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

SOON_MS = 1_500
"""A rate that grew at most so long before a route became congested is said to have led to it."""
USED_UP = 0.9
"""Share of its rate that a process has sent when the rate holds it back."""
_SECOND = ("run", "route", "instance", "second")


def decisions(plans: DataFrame, verdicts: DataFrame, routes: DataFrame, types: DataFrame) -> DataFrame:
    """Return for each run, route and policy in force what it decided and what that cost, of all processes together.

    `plans`: as `changes.plans` gives them. A second counts for the policy that was in force at its end: that of the
    process, or where that told of none, the one that another had told of last. Null: nobody had.

    - `slowed`, how often it was decided to slow down (under `per_type` each congested verdict, `static` never): of
      these `needed` with messages in the queue or events refused, `empty` in front of an empty queue, `unseen` where
      neither is known. `least_delay_ms` is the least queue delay at a cut.
    - `stretches` of congestion, each process's own; of these `after_growth`: a rate had grown just before.
    - `backlog_s`, seconds in which events waited, and `used`, which share of the drain rate was used in them, 0 to 1.
    - `held_s`, seconds in which some process had events waiting and its rate used up while the queue was empty.
    """
    per_policy = ("run", "route", "policy")
    found = [_of_verdicts(verdicts), _of_routes(routes), _of_types(types), _of_plans(plans)]
    told = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), found)
    counted = told.groupBy(*_SECOND).agg(
        *[
            fn.sum(name).alias(name)
            for name in ("slowed", "refused", "stretches", "after_growth", "confirmed", "waiting")
        ],
        *[fn.max(name).alias(name) for name in ("depth_at_cut", "depth", "drain_rate", "interval_s")],
        *[fn.min(name).alias(name) for name in ("rate", "delay_us")],
        fn.max_by("policy", "planned").alias("policy"),
        fn.count_if(fn.col("planned").isNull()).alias("told"),
    )
    in_process = _under_policies(counted)
    depth = fn.coalesce("depth_at_cut", "depth")
    needed = (fn.col("refused") > 0) | (depth > 0)
    is_held = (fn.col("depth") == 0) & (fn.col("confirmed") >= USED_UP * fn.col("rate") * fn.col("interval_s"))
    in_route = in_process.groupBy(*per_policy, "second").agg(
        *[fn.sum(name).alias(name) for name in ("slowed", "stretches", "after_growth", "confirmed", "waiting")],
        fn.sum(fn.when(needed, fn.col("slowed"))).alias("needed"),
        fn.sum(fn.when((fn.col("refused") == 0) & (depth == 0), fn.col("slowed"))).alias("empty"),
        fn.max(fn.when((fn.col("waiting") > 0) & is_held, fn.col("interval_s"))).alias("held_s"),
        fn.max("interval_s").alias("interval_s"),
        fn.max("drain_rate").alias("drain_rate"),
        fn.min("delay_us").alias("delay_us"),
    )
    has_backlog = fn.col("waiting") > 0
    room = fn.sum(fn.when(has_backlog, fn.col("drain_rate") * fn.col("interval_s")))
    taken = fn.sum(fn.when(has_backlog & fn.col("drain_rate").isNotNull(), fn.col("confirmed")))
    summed = in_route.groupBy(*per_policy).agg(
        *[_or_zero(fn.sum(name)).alias(name) for name in ("slowed", "needed", "empty", "stretches", "after_growth")],
        fn.round(fn.min("delay_us") / 1000, 3).alias("least_delay_ms"),
        fn.round(_or_zero(fn.sum(fn.when(has_backlog, fn.col("interval_s")))), 3).alias("backlog_s"),
        fn.round(fn.when(room > 0, taken / room), 4).alias("used"),
        fn.round(_or_zero(fn.sum("held_s")), 3).alias("held_s"),
    )
    decides = ~fn.coalesce(fn.col("policy") == "static", fn.lit(col=False))
    for name in ("slowed", "needed", "empty"):
        summed = summed.withColumn(name, fn.when(decides, fn.col(name)).otherwise(0))
    return summed.select(
        *per_policy,
        *("slowed", "needed", "empty", (fn.col("slowed") - fn.col("needed") - fn.col("empty")).alias("unseen")),
        *("least_delay_ms", "stretches", "after_growth", "backlog_s", "used", "held_s"),
    )


def _under_policies(counted: DataFrame) -> DataFrame:
    """Return the seconds in which something was told, each with the policy that was in force."""
    upto = Window.partitionBy("run", "route", "instance").orderBy("second")
    of_any = Window.partitionBy("run", "route").orderBy("second")  # all that are told of in the same second are in it
    planned = fn.when(fn.col("policy").isNotNull(), fn.struct("second", "policy"))
    return (
        counted.withColumn("own", fn.last("policy", ignorenulls=True).over(upto))
        .withColumn("of_any", fn.max(planned).over(of_any)["policy"])
        .withColumn("policy", fn.coalesce("own", "of_any"))
        .where(fn.col("told") > 0)
    )


def _of_plans(plans: DataFrame) -> DataFrame:
    each = plans.select("run", "instance", "at_s", "is_later", fn.explode("routes").alias("route", "plan"))
    return each.select(*_place(), fn.col("plan.policy").alias("policy"), fn.struct("at_s", "is_later").alias("planned"))


def _of_verdicts(verdicts: DataFrame) -> DataFrame:
    """Return a row for each verdict: whether it cut and what it saw, whether congestion began, and the lowest rate.

    The lowest class's rate is the least, as it counts everything that is sent.
    """
    by_time = Window.partitionBy("run", "route", "instance").orderBy("at_ms")
    spoken = by_time.rowsBetween(Window.unboundedPreceding, -1)
    is_cut = fn.when(fn.col("threshold_us").isNotNull(), fn.col("congested")).otherwise(fn.col("cuts") > 0)
    return (
        verdicts.select(
            *("run", "route", "instance", "at_ms", "at_s", "congested", "errors", "drain_rate", "depth"),
            "queue_delay_us",
            fn.coalesce(is_cut, fn.lit(col=False)).alias("is_cut"),
            fn.array_min(fn.map_values("rates")).alias("rate"),
        )
        .withColumn("was", fn.last("congested", ignorenulls=True).over(spoken))
        .withColumn("rate_before", fn.lag("rate").over(by_time))
        .withColumn("grown", fn.col("rate") > fn.col("rate_before"))
        .withColumn("grown_before", fn.lag("grown").over(by_time))
        .withColumn("soon", fn.col("at_ms") - fn.lag("at_ms").over(by_time) <= SOON_MS)
        .withColumn("begins", fn.col("congested") & ~fn.coalesce("was", fn.lit(col=False)))
        .select(
            *_place(),
            _count(fn.col("is_cut")).alias("slowed"),
            fn.when(fn.col("is_cut"), fn.col("errors")).otherwise(0).alias("refused"),
            fn.when(fn.col("is_cut"), fn.col("depth")).alias("depth_at_cut"),
            fn.when(fn.col("is_cut"), fn.col("queue_delay_us")).alias("delay_us"),
            _count(fn.col("begins")).alias("stretches"),
            _count(fn.col("begins") & fn.col("grown_before") & fn.col("soon")).alias("after_growth"),
            "depth",
            "drain_rate",
            "rate",
        )
    )


def _of_routes(routes: DataFrame) -> DataFrame:
    return routes.select(*_place(), "depth", "confirmed", "interval_s")


def _of_types(types: DataFrame) -> DataFrame:
    """Return a row for each second of an interval at whose end events waited, with how many did."""
    undone = fn.greatest("waiting", fn.col("lag") - fn.coalesce("ahead", fn.lit(0)))
    last = _second(fn.col("at_s"))
    first = fn.least(last, _second(fn.col("at_s") - fn.col("interval_s")) + 1)
    return (
        types.withColumn("waiting", undone)
        .where(fn.col("waiting") > 0)
        .groupBy("run", "route", "instance", "at_s")
        .agg(fn.sum("waiting").alias("waiting"), fn.max("interval_s").alias("interval_s"))
        .select("run", "route", "instance", fn.explode(fn.sequence(first, last)).alias("second"), "waiting")
    )


def _place() -> list[Column]:
    return [fn.col("run"), fn.col("route"), fn.col("instance"), _second(fn.col("at_s")).alias("second")]


def _second(at_s: Column) -> Column:
    """Return the number of the second that a record belongs to; it tells of the time before it."""
    return (fn.ceil(at_s) - 1).cast("long")


def _count(holds: Column) -> Column:
    return fn.coalesce(holds, fn.lit(col=False)).cast("long")


def _or_zero(value: Column) -> Column:
    return fn.coalesce(value, fn.lit(0))
