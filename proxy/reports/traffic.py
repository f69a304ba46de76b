"""How many events: plain sums of the interval counts."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

COUNTS = (
    "received",
    "received_bytes",
    "confirmed",
    "confirmed_bytes",
    "nacked",
    "unknown",
    "resent",
    "overtaken",
)
TROUBLES = {
    "confirmed": "confirmed",
    "nacked": "nacked",
    "unknown outcome": "unknown",
    "resent": "resent",
    "perhaps twice": "resent_unknown",
    "overtaken": "overtaken",
    "before its timestamp": "ahead_of_clock",
}
"""What may happen to an event, and where it is counted; `confirmed` is what the others are compared with."""
SUMMED = (*COUNTS, "ahead_of_clock", "old", "possible_duplicates", "dead_lettered")
KEYS = ("source", "class", "type", "instance")
LEVELS: Mapping[str, Sequence[tuple[str, Sequence[str]]]] = {
    "class": (("class", ("class",)), ("instance", ("instance",))),
    "type": (("type", ("class", "type")), ("types of class", ("class",))),
    "route": (("route", ()),),
}
"""By whose records (`source`) which sums are told, and by which keys."""


def counted(records: Mapping[str, DataFrame]) -> DataFrame:
    """Return run, at_ms, `KEYS` and `SUMMED` of class, type and route records; a route counts `confirmed` only."""
    found = [_counted(records[kind], kind) for kind in ("class", "type") if kind in records]
    if "route" in records:
        found.append(_of_routes(records["route"]))
    first, *rest = found
    for other in rest:
        first = first.unionByName(other)
    return first


def traffic(records: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the sums of class or type records for each key; see `_counted` on `possible_duplicates`."""
    kind = "type" if "type" in records.columns else "class"
    return counted({kind: records}).groupBy(*keys).agg(*[fn.sum(name).alias(name) for name in SUMMED])


def traffic_by_level(rows: DataFrame) -> DataFrame:
    """Return run, level (see `LEVELS`), class, type, instance and the sums, all in one pass."""
    of_source = [
        fn.when(fn.col("source") == source, fn.array(*[_level(*level) for level in levels]))
        for source, levels in LEVELS.items()
    ]
    sums = [fn.sum(name).alias(name) for name in SUMMED]
    levels = rows.groupBy("run", *KEYS).agg(*sums).withColumn("of", fn.explode(fn.coalesce(*of_source)))
    return levels.select("run", "of.*", *SUMMED).groupBy("run", "level", "class", "type", "instance").agg(*sums)


def _level(name: str, keys: Sequence[str]) -> Column:
    nothing = fn.lit(None).cast("string")
    parts = [(fn.col(key) if key in keys else nothing).alias(key) for key in ("class", "type", "instance")]
    return fn.struct(fn.lit(name).alias("level"), *parts)


def _counted(records: DataFrame, kind: str) -> DataFrame:
    # Older records lack these.
    newer = [fn.coalesce(name, fn.lit(0)).alias(name) for name in ("ahead_of_clock", "old")]
    return records.select(
        "run",
        "at_ms",
        fn.lit(kind).alias("source"),
        "class",
        (fn.col("type") if kind == "type" else fn.lit(None).cast("string")).alias("type"),
        fn.when(fn.lit(kind == "class"), fn.col("instance")).alias("instance"),
        *COUNTS,
        *newer,
        # Sent again by the same replica, or by whoever was given the partition.
        (fn.col("resent_unknown") + fn.coalesce("uncommitted", fn.lit(0))).alias("possible_duplicates"),
        all_reasons(fn.col("dead_lettered")).alias("dead_lettered"),
    )


def _of_routes(routes: DataFrame) -> DataFrame:
    nothing = fn.lit(None).cast("string")
    return routes.select(
        "run",
        "at_ms",
        fn.lit("route").alias("source"),
        *[nothing.alias(name) for name in ("class", "type", "instance")],
        *[(fn.col("confirmed") if name == "confirmed" else fn.lit(0).cast("long")).alias(name) for name in SUMMED],
    )


def letters(records: DataFrame) -> DataFrame:
    """Return run, at_ms, class, reason, dead_lettered of class records."""
    return records.select("run", "at_ms", "class", fn.explode("dead_lettered").alias("reason", "dead_lettered")).where(
        fn.col("dead_lettered") > 0
    )


def dead_letters(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return keys, reason and number of the events that were dead-lettered; `rows` as `letters` gives them."""
    return rows.groupBy(*keys, "reason").agg(fn.sum("dead_lettered").alias("dead_lettered"))


def troubles(types: DataFrame) -> DataFrame:
    """Return run, class, type, route, what, events, per_thousand (confirmed): all that went other than it should.

    `what` is nacked, unknown outcome, resent, perhaps twice, overtaken, before its timestamp, or the reason of a dead
    letter; only what happened has a row. What RabbitMQ returned is dead-lettered as unroutable.
    """
    keys = ["run", "class", "type", "route"]
    counts = [_what(fn.lit(what), fn.coalesce(name, fn.lit(0))) for what, name in TROUBLES.items()]
    reasons = fn.transform(
        fn.map_entries("dead_lettered"),
        lambda one: _what(fn.concat(fn.lit("dead letter: "), one["key"]), one["value"]),
    )
    told = types.select(*keys, fn.inline(fn.concat(fn.array(*counts), reasons)))
    confirmed = fn.sum(fn.when(fn.col("what") == "confirmed", fn.col("events"))).over(Window.partitionBy(*keys))
    return (
        told.groupBy(*keys, "what")
        .agg(fn.sum("events").alias("events"))
        .withColumn("confirmed", confirmed)
        .where((fn.col("what") != "confirmed") & (fn.col("events") > 0))
        .withColumn(
            "per_thousand",
            fn.when(fn.col("confirmed") > 0, fn.round(1000 * fn.col("events") / fn.col("confirmed"), 3)),
        )
        .drop("confirmed")
    )


def _what(what: Column, events: Column) -> Column:
    return fn.struct(what.alias("what"), events.alias("events"))


def all_reasons(counts: Column) -> Column:
    """Return the events of all reasons together."""
    return fn.aggregate(
        fn.map_values(counts), fn.lit(0).cast("long"), lambda total, count: total + fn.coalesce(count, fn.lit(0))
    )
