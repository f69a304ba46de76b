"""What each record says of which positions: a claim is a range of one partition and how many events it is about.

Every claim has `kind`, `first` and `end` (it holds `first` to `end - 1`; a mark holds nothing), and of what follows
what its kind has; what it lacks is null.

| column | of | is |
|---|---|---|
| count | read, letter, skip, discard | events: delivered ones of `read`; null: one at each position |
| elsewhere | read | dead letters of the range by reason of which no place is told |
| lettered | read | dead letters |
| repeated | read | events counted beyond the positions that there are |
| reason | letter | of the dead letters; letters of one reason are disjoint |
| is_full | letter | each of its positions holds a letter |
| is_redriven | letter | these were sent again |
| sure | read, other | 1: each position was delivered but where a claim `other` says -1 |
| through, jump, began | mark | all before `first` was committed; what lies just before was not; an epoch begins |
| done | read, skip, discard, mark | all before this was done with when the record was written |
| log_end | mark | one past the last position that there was |
| is_current | mark | the topic had not been made anew, as far as is known |
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from proxy.reports.ledger.redriven import with_redriven

KEY = ("run", "group", "topic", "topic_id", "partition")
"""What has positions of its own: a partition of one topic, as one consumer group reads it."""
PLACE = ("run", "group", "topic", "partition")
"""What a topic that was made anew shares with the one before."""


@dataclass(frozen=True)
class Told:
    """The records of each kind that tell of positions, of all runs."""

    assigned: DataFrame
    committed: DataFrame
    incident: DataFrame
    skip: DataFrame
    rewind: DataFrame
    discard: DataFrame
    redrive: DataFrame


def claims(told: Told) -> DataFrame:
    """Return all claims: `KEY`, instance, epoch, at_ms, and the columns above."""
    ranges = _ranges(told.committed)
    some = ranges.where(~fn.col("is_plain")).withColumn("is_sure", _is_sure())
    letters = _letters(some)
    fates = with_redriven(letters, _keyed(told.redrive), KEY).withColumn("kind", fn.lit("letter"))
    people = [
        _moved(told.skip, "skip").withColumn("done", fn.col("end")),
        _moved(told.discard, "discard").withColumn("done", fn.col("end")),
        _moved(told.rewind, "rewind").drop("count"),
        _moved(told.redrive, "redrive").where(fn.col("count") >= fn.col("end") - fn.col("first")),
    ]
    others = letters.where("is_sure").select(
        *KEY, fn.lit("other").alias("kind"), "first", "end", fn.lit(-1).alias("sure")
    )
    frames = [
        _plain(ranges, told.assigned),
        _read(some),
        fates,
        others,
        _marks(told.assigned),
        _truncated(told.incident, told.assigned),
        *people,
    ]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def _keyed(frame: DataFrame) -> DataFrame:
    return frame.withColumn("group", fn.coalesce("group", fn.lit("")))


def _ranges(committed: DataFrame) -> DataFrame:
    """Return each committed range with its dead letters; a plain one has none, and an event at each position."""
    is_full = fn.col("delivered") == fn.col("end") - fn.col("first")
    is_plain = is_full & (fn.size("dead_lettered") == 0) & (fn.size("letters") == 0)
    return (
        _keyed(committed)
        .select("run", "group", "topic", "instance", "at_ms", fn.explode("ranges").alias("one"))
        .select("run", "group", "topic", "instance", "at_ms", "one.*")
        .where(fn.col("first") < fn.col("end"))
        .withColumn("is_plain", fn.coalesce(is_plain, fn.lit(col=False)))
    )


def _is_sure() -> Column:
    """Return whether so much was delivered that no position but those of its letters can be absent."""
    places = _summed(fn.col("letters"), lambda one: one["end"] - one["first"])
    return (fn.col("delivered") >= fn.col("end") - fn.col("first") - places) & (fn.size(_elsewhere()) == 0)


def _elsewhere() -> Column:
    """Return how many dead letters of each reason stand where nobody is told: a record names 50 ranges at most."""

    def left(reason: Column, count: Column) -> Column:
        return count - _summed(fn.filter("letters", lambda one: one["reason"] == reason), lambda one: one["count"])

    return fn.map_filter(fn.transform_values("dead_lettered", left), lambda _, count: count > 0)


def _summed(parts: Column, number: Callable[[Column], Column]) -> Column:
    return fn.aggregate(parts, fn.lit(0).cast("long"), lambda total, one: total + number(one))


def _plain(ranges: DataFrame, assigned: DataFrame) -> DataFrame:
    """Return the plain ones of all ranges, neighbours as one: nearly all are, and the sweep has little left to do.

    Of two ranges in the sweep's order the second joins the first if the same epoch committed both, the first was told
    earlier and ends where the second begins, none before reaches into either, and no epoch begins in the first. So
    whoever overlaps them comes before or behind as before, what an epoch went back by ends where it did, and the end of
    the joined range was told last, as its time says.
    """
    of_epoch = (*KEY, "instance", "epoch")
    in_order = Window.partitionBy(*KEY).orderBy("first", fn.col("end").desc(), "instance", "epoch", "is_plain", "at_ms")
    reached = fn.max("end").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    is_clear = fn.coalesce(reached <= fn.col("first"), fn.lit(col=True))
    before = fn.lag(fn.struct("is_plain", "is_clear", "instance", "epoch", "end", "at_ms")).over(in_order)
    joins = fn.col("is_plain") & fn.col("is_clear") & before["is_plain"] & before["is_clear"]
    joins &= (before["end"] == fn.col("first")) & (before["at_ms"] <= fn.col("at_ms"))
    for name in ("instance", "epoch"):
        joins &= before[name] == fn.col(name)
    begun = _keyed(assigned).withColumns({"end": fn.col("first"), "is_plain": fn.lit(col=False)})
    columns = (*of_epoch, "first", "end", "at_ms", "is_plain")
    laid = ranges.select(*columns).unionByName(begun.select(*columns)).withColumn("is_clear", is_clear)
    is_new = ~fn.coalesce("joins", fn.lit(col=False))
    stretches = laid.withColumn("joins", joins).withColumn("stretch", fn.count_if(is_new).over(in_order))
    one = (
        stretches.where("is_plain")
        .groupBy(*of_epoch, "stretch")
        .agg(fn.min("first").alias("first"), fn.max("end").alias("end"), fn.max("at_ms").alias("at_ms"))
    )
    return one.select(
        *of_epoch,
        fn.lit("read").alias("kind"),
        "first",
        "end",
        "at_ms",
        (fn.col("end") - fn.col("first")).alias("count"),
        fn.lit(0).cast("long").alias("lettered"),
        fn.lit(0).cast("long").alias("repeated"),
        fn.lit(1).alias("sure"),
        fn.col("end").alias("done"),
    )


def _read(ranges: DataFrame) -> DataFrame:
    letters = fn.aggregate(fn.map_values("dead_lettered"), fn.lit(0).cast("long"), lambda total, one: total + one)
    repeated = fn.col("delivered") + letters - (fn.col("end") - fn.col("first"))
    return ranges.select(
        *KEY,
        fn.lit("read").alias("kind"),
        "first",
        "end",
        "instance",
        "epoch",
        "at_ms",
        fn.col("delivered").alias("count"),
        fn.map_entries(_elsewhere()).alias("elsewhere"),
        letters.alias("lettered"),
        fn.greatest(repeated, fn.lit(0)).alias("repeated"),
        fn.col("is_sure").cast("int").alias("sure"),
        fn.col("end").alias("done"),
    )


def _letters(ranges: DataFrame) -> DataFrame:
    """Return the dead letters with a place."""
    one = ranges.select(*KEY, "instance", "epoch", "is_sure", fn.explode("letters").alias("letter"))
    return (
        one.select(*KEY, "instance", "epoch", "is_sure", "letter.*")
        .where(fn.col("first") < fn.col("end"))
        .withColumn("is_full", fn.col("count") >= fn.col("end") - fn.col("first"))
    )


def _moved(frame: DataFrame, kind: str) -> DataFrame:
    return (
        _keyed(frame)
        .where(fn.col("first") < fn.col("end"))
        .select(*KEY, fn.lit(kind).alias("kind"), "first", "end", "instance", "at_ms", "count")
    )


def _marks(assigned: DataFrame) -> DataFrame:
    """Return where each epoch begins, and up to where the group was done before it."""
    no, yes = fn.lit(col=False), fn.lit(col=True)
    jumps = fn.coalesce(fn.col("committed") < fn.col("first"), yes)
    begin = fn.struct(fn.col("first").alias("at"), (~jumps).alias("through"), jumps.alias("jump"), yes.alias("began"))
    before = fn.struct(fn.col("committed").alias("at"), yes.alias("through"), no.alias("jump"), no.alias("began"))
    marks = fn.when(jumps & fn.col("committed").isNotNull(), fn.array(begin, before)).otherwise(fn.array(begin))
    return (
        _with_current(_keyed(assigned))
        .withColumn("mark", fn.explode(marks))
        .select(
            *KEY,
            fn.lit("mark").alias("kind"),
            fn.col("mark.at").alias("first"),
            fn.col("mark.at").alias("end"),
            "instance",
            "epoch",
            "at_ms",
            "mark.through",
            "mark.jump",
            "mark.began",
            fn.col("mark.at").alias("done"),
            fn.col("end").alias("log_end"),
            "is_current",
        )
    )


def _with_current(assigned: DataFrame) -> DataFrame:
    """Say of each topic's id whether it is the latest of its name.

    What a process was given last counts, by its own order; between processes the clock decides.
    """
    of_process = Window.partitionBy(*PLACE, "instance").orderBy(fn.col("epoch").desc())
    is_last = fn.row_number().over(of_process) == 1
    told = fn.when(is_last, fn.struct("at_ms", "topic_id"))
    last = fn.max("told").over(Window.partitionBy(*PLACE))["topic_id"]
    return assigned.withColumn("told", told).withColumn("is_current", fn.col("topic_id") == last).drop("told")


def _truncated(incident: DataFrame, assigned: DataFrame) -> DataFrame:
    """Return what the log dropped unread; where the record names no topic's id, that of the epoch that it is of."""
    dropped = _keyed(incident).where(
        (fn.col("name") == "truncated") & fn.col("first").isNotNull() & (fn.col("first") < fn.col("end"))
    )
    shared = (*PLACE, "instance", "at_ms", "topic_id")
    both = dropped.select(*shared, "first", "end").unionByName(
        _keyed(assigned).select(*shared), allowMissingColumns=True
    )
    so_far = Window.partitionBy(*PLACE, "instance").orderBy("at_ms", fn.col("end").isNotNull())
    return (
        both.withColumn("known", fn.last("topic_id", ignorenulls=True).over(so_far))
        .where(fn.col("end").isNotNull())
        .withColumn("topic_id", fn.coalesce("topic_id", "known", fn.lit("")))
        .select(*KEY, fn.lit("truncated").alias("kind"), "first", "end", "instance", "at_ms")
    )
