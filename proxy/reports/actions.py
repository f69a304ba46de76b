"""What people did: interventions that replicas obeyed, and events passed over, sent again or discarded."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from proxy.reports.records import Records

MOVES = ("skip", "rewind", "redrive", "discard")
KINDS = frozenset(("intervention", *MOVES))
"""Of records that tell of it."""
NAMED = 5
"""So many event types of one action are named."""
_COLUMNS = (
    *("run", "from_s", "to_s", "action", "subject", "details", "by", "why", "until_s", "ended_by", "ended_why"),
    *("instances", "ranges", "positions", "events"),
)


def actions(records: Records) -> DataFrame:
    """Return one row for each intervention, and for all moves of one kind that one person made for one reason.

    `from_s` and `to_s` of an intervention are when the first replica obeyed it and when the last stopped, null where
    no record says so; of moves the first and the last. `positions` are all that the ranges span, `events` those
    counted; both null of an intervention.
    """
    parts = [_interventions(records.of("intervention")), *[_moves(records.of(kind), kind) for kind in MOVES]]
    return reduce(DataFrame.unionByName, parts)


def _interventions(told: DataFrame) -> DataFrame:
    begun, ended = (fn.when(fn.col("phase") == phase, fn.col("at_s")) for phase in ("begun", "ended"))
    named = [_named(name, fn.col(name)) for name in ("classes", "types", "routes")]
    rate = fn.when(fn.col("rate").isNotNull(), fn.concat(fn.col("rate").cast("string"), fn.lit(" events/s")))
    alike = told.withColumns(
        {
            "action": fn.col("mode"),
            "subject": fn.concat_ws("; ", *named),
            "details": fn.coalesce(rate, fn.col("policy"), fn.lit("")),
            "until_s": fn.col("at_s") + (fn.col("until_ms") - fn.col("at_ms")) / 1000,
        }
    )
    # Who took one back is told by its end alone, and by each replica the same.
    by_id = alike.groupBy("run", "id", "action", "subject", "details", "by", "why").agg(
        fn.min(begun).alias("from_s"),
        fn.max(ended).alias("to_s"),
        fn.max("until_s").alias("until_s"),
        fn.max("ended_by").alias("ended_by"),
        fn.max("ended_why").alias("ended_why"),
        fn.countDistinct("instance").alias("instances"),
        *[fn.lit(None).cast("long").alias(name) for name in ("ranges", "positions", "events")],
    )
    return by_id.select(*_COLUMNS)


def _moves(told: DataFrame, kind: str) -> DataFrame:
    reason = fn.col("reason") if kind == "redrive" else fn.lit("")
    alike = told.withColumns({"action": fn.lit(kind), "details": reason})
    nothing = {"until_s": "double", "ended_by": "string", "ended_why": "string"}
    by_person = alike.groupBy("run", "action", "details", "by", "why").agg(
        fn.min("at_s").alias("from_s"),
        fn.max("at_s").alias("to_s"),
        _named("types", fn.array_sort(fn.collect_set("type"))).alias("subject"),
        *[fn.lit(None).cast(what).alias(name) for name, what in nothing.items()],
        fn.countDistinct("instance").alias("instances"),
        fn.count(fn.lit(1)).alias("ranges"),
        fn.sum(fn.col("end") - fn.col("first")).alias("positions"),
        fn.sum("count").alias("events"),
    )
    return by_person.select(*_COLUMNS)


def _named(what: str, names: Column) -> Column:
    """Return `types: a, b` of an array of names, the first few; null if it is empty."""
    few = fn.concat_ws(", ", fn.slice(names, 1, NAMED))
    more = fn.when(fn.size(names) > NAMED, fn.concat(fn.lit(", "), fn.size(names) - NAMED, fn.lit(" more")))
    told = fn.concat(fn.lit(f"{what}: "), few, fn.coalesce(more, fn.lit("")))
    return fn.when(fn.size(names) > 0, told)
