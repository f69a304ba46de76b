"""Which dead letters were sent again: letters and redrives of one reason laid over each other, before all the rest."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from proxy.reports.ledger.ranges import with_start


def with_redriven(letters: DataFrame, redrives: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Return the letters with `is_redriven`, disjoint for each reason, cut where a redrive of it begins or ends.

    A redrive's range holds no letter of its reason that was not sent again. Of a letter that is cut each piece has so
    many as there were, or as many as fit.
    """
    of_reason = [*key, "reason"]
    one = fn.struct(fn.col("end").alias("end"), "count", "is_full")
    nothing = fn.lit(None).cast(letters.select(one.alias("one")).schema["one"].dataType)
    kept = with_start(letters, of_reason, "instance", "epoch", fn.col("count").desc()).where(
        fn.col("start") < fn.col("end")
    )
    begun = kept.select(*of_reason, fn.col("start").alias("at"), one.alias("letter"), fn.lit(0).alias("delta"))
    over = kept.select(*of_reason, fn.col("end").alias("at"), nothing.alias("letter"), fn.lit(0).alias("delta"))
    edges = fn.explode(
        fn.array(
            fn.struct(fn.col("first").alias("at"), fn.lit(1).alias("delta")),
            fn.struct(fn.col("end").alias("at"), fn.lit(-1).alias("delta")),
        )
    )
    sent = (
        redrives.where(fn.col("first") < fn.col("end"))
        .withColumn("edge", edges)
        .select(*of_reason, "edge.at", nothing.alias("letter"), "edge.delta")
    )
    so_far = Window.partitionBy(*of_reason).orderBy("at")
    up_to = so_far.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    pieces = (
        begun.unionByName(over)
        .unionByName(sent)
        .groupBy(*of_reason, "at")
        .agg(fn.max("letter").alias("letter"), fn.sum("delta").alias("delta"))
        .select(
            *of_reason,
            fn.col("at").alias("first"),
            fn.lead("at").over(so_far).alias("end"),
            fn.last("letter", ignorenulls=True).over(up_to).alias("letter"),
            (fn.sum("delta").over(up_to) > 0).alias("is_redriven"),
        )
        .where(fn.col("letter.end") > fn.col("first"))
    )
    length = fn.col("end") - fn.col("first")
    return pieces.select(
        *of_reason,
        "first",
        "end",
        "is_redriven",
        "letter.is_full",
        fn.when(fn.col("letter.is_full"), length).otherwise(fn.least("letter.count", length)).alias("count"),
    )
