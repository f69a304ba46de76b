"""All claims on a partition laid over each other: segments between neighbouring edges, and which claims hold there.

A sweep: every claim has an edge where it begins and one where it ends; what holds between two edges is a running sum,
or the last that began. Each partition's edges are sorted and gone through once: n log n for n claims, however they
overlap, and no row is joined with another.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as fn

from proxy.reports.ledger.claims import KEY
from proxy.reports.ledger.ranges import earlier, with_start

COUNTED = ("read", "truncated", "skip", "rewind", "redrive")
"""Kinds of which it matters how many hold at a position: `n_read` and so on."""
OWNING = ("read", "letter", "skip", "discard")
"""Kinds of which the first at a position says what is there: `read`, `letter` and so on, null where there is none."""
_OWN = ("start", "end", "count", "elsewhere", "repeated", "reason", "is_full", "is_redriven", "instance", "epoch")


def segments(claims: DataFrame) -> DataFrame:
    """Return each segment: `KEY`, first, end, and what holds there.

    | column | is |
    |---|---|
    | `n_read` ... | how many claims of a kind hold |
    | `read` ... | the claim of a kind that counts |
    | sure | so many ranges say that each position was delivered |
    | latest | whose range began last |
    | is_jumped | nobody read it: the epoch behind it began there although nothing was committed |
    | is_behind | an epoch began at `first` although another had come further |
    | is_done | the group is done with it, by what was told last |
    | is_current | the topic was not made anew |
    """
    order = ([*KEY, "kind"], "reason", "instance", "epoch", fn.col("count").desc())
    claimed = with_start(claims.repartition(*KEY), *order)
    return _held(_edges(claimed.withColumn("count", _own_count(earlier(*order)))))


def _own_count(before: WindowSpec) -> Column:
    """Return the events of a claim that lie from `start` on.

    What lies before is in a range that reaches furthest. If that one is sure of its positions, they are events here,
    too, but for dead letters.
    """
    reaches = fn.max(fn.struct("end", fn.coalesce("sure", fn.lit(0)).alias("sure"))).over(before)
    others = fn.greatest(fn.col("start") - fn.col("first") - fn.col("lettered"), fn.lit(0))
    is_known = (fn.col("kind") == "read") & (reaches["sure"] > 0)
    return fn.when(is_known, fn.greatest(fn.col("count") - others, fn.lit(0))).otherwise(fn.col("count"))


def _edges(claims: DataFrame) -> DataFrame:
    """Return each position at which something begins or ends, once, with all that does."""
    at = claims.withColumn("owner", fn.struct(*_OWN)).withColumn("edge", fn.explode(_edges_of_one()))
    kind, delta, is_begin = fn.col("kind"), fn.col("edge.delta"), fn.col("edge.delta") > 0

    def told(name: str, condition: Column) -> Column:
        return fn.max(fn.when(condition, fn.col(name))).alias(name)

    return at.groupBy(*KEY, fn.col("edge.at").alias("at")).agg(
        *[fn.sum(fn.when(kind == name, delta).otherwise(0)).alias(f"n_{name}") for name in COUNTED],
        fn.sum(fn.coalesce("sure", fn.lit(0)) * delta).alias("sure"),
        *[
            fn.first(fn.when((kind == name) & fn.col("edge.owns"), fn.col("owner")), ignorenulls=True).alias(name)
            for name in OWNING
        ],
        fn.max(fn.when((kind == "read") & is_begin, fn.struct("at_ms", "instance"))).alias("latest"),
        *[told(name, kind == "mark") for name in ("through", "jump", "began", "log_end", "is_current")],
        fn.max("done").alias("done"),
        fn.max(fn.when(fn.col("done").isNotNull(), fn.struct("at_ms", "done"))).alias("last_done"),
    )


def _edges_of_one() -> Column:
    """Return the positions at which a claim begins, ends, and begins to count; of a mark the only one."""
    no, yes = fn.lit(col=False), fn.lit(col=True)

    def edge(at: str, delta: int, owns: Column) -> Column:
        return fn.struct(fn.col(at).alias("at"), fn.lit(delta).alias("delta"), owns.alias("owns"))

    begin, end = edge("first", 1, fn.col("start") <= fn.col("first")), edge("end", -1, no)
    starts_late = (fn.col("start") > fn.col("first")) & (fn.col("start") < fn.col("end"))
    return (
        fn.when(fn.col("kind") == "mark", fn.array(begin))
        .when(starts_late, fn.array(begin, end, edge("start", 0, yes)))
        .otherwise(fn.array(begin, end))
    )


def _held(edges: DataFrame) -> DataFrame:
    """Return the segment behind each edge with what holds in it: one pass over each partition's edges."""
    in_order, whole = Window.partitionBy(*KEY).orderBy("at"), Window.partitionBy(*KEY)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    is_jump = fn.coalesce("jump", fn.lit(col=False)) & ~fn.coalesce("through", fn.lit(col=False))
    rewound, last = fn.max(fn.col("n_rewind")).over(whole) > 0, fn.max("last_done").over(whole)["done"]
    held = edges.select(
        *KEY,
        "began",
        fn.col("at").alias("first"),
        fn.coalesce(fn.lead("at").over(in_order), fn.max("log_end").over(whole)).alias("end"),
        *[fn.sum(f"n_{name}").over(so_far).alias(f"n_{name}") for name in COUNTED],
        fn.sum("sure").over(so_far).alias("sure"),
        *[fn.last(name, ignorenulls=True).over(so_far).alias(name) for name in OWNING],
        fn.last("latest", ignorenulls=True).over(so_far)["instance"].alias("latest"),
        fn.coalesce(fn.lead(is_jump).over(in_order), fn.lit(col=False)).alias("is_jumped"),
        # What was rewound is to be read again: then the last position told counts, else the furthest.
        fn.when(rewound, last).otherwise(fn.max("done").over(whole)).alias("done"),
        fn.coalesce(fn.max("is_current").over(whole), fn.lit(col=True)).alias("is_current"),
    )
    here = {name: fn.when(fn.col(f"{name}.end") > fn.col("first"), fn.col(name)) for name in OWNING}
    owned = held.withColumns(here)
    before, same = fn.lag("read").over(Window.partitionBy(*KEY).orderBy("first")), fn.lit(col=True)
    for name in ("instance", "epoch"):
        same = same & (before[name] == fn.col(f"read.{name}"))
    is_behind = fn.coalesce(fn.col("began") & same & (fn.col("n_rewind") == 0), fn.lit(col=False))
    return owned.withColumns(
        {"is_behind": is_behind, "is_done": fn.coalesce(fn.col("first") < fn.col("done"), fn.lit(col=False))}
    ).where(fn.col("first") < fn.col("end"))
