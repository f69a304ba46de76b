"""The verdicts that were recorded while each congestion episode lasted: what was decided, and upon what."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

EPISODES = 100
"""Of so many episodes, the longest of all runs, verdicts are told."""
FIRST, LAST = 40, 20
"""Of an episode with more verdicts, the first and the last."""
BEFORE_S = 1.0
"""What was decided so long before it is told, too: how it came to it."""


def episode_verdicts(verdicts: DataFrame, episodes: DataFrame) -> DataFrame:
    """Return run, route, from_s (of the episode), `of` (verdicts in it), t_s, and what each saw and did.

    At most EPISODES x (FIRST + LAST) rows.
    """
    longest = episodes.select("run", "route", "from_s", "to_s").orderBy(fn.desc("seconds"), "run", "route", "from_s")
    place = ["run", "route", "from_s"]
    within = (fn.col("at_s") >= fn.col("from_s") - BEFORE_S) & (fn.col("at_s") <= fn.col("to_s"))
    of_episode = Window.partitionBy(*place)
    return (
        verdicts.join(fn.broadcast(longest.limit(EPISODES)), ["run", "route"])
        .where(within)
        .withColumn("number", fn.row_number().over(of_episode.orderBy("at_ms", "instance")))
        .withColumn("of", fn.count(fn.lit(1)).over(of_episode))
        .where((fn.col("number") <= FIRST) | (fn.col("number") > fn.col("of") - LAST))
        .select(
            *place,
            "number",
            "of",
            fn.col("at_s").alias("t_s"),
            "instance",
            "congested",
            "cause",
            fn.round(fn.col("p50_us") / 1000, 3).alias("p50_ms"),
            "errors",
            "samples",
            fn.round(fn.col("queue_delay_us") / 1000, 3).alias("delay_ms"),
            fn.round("drain_rate", 1).alias("drain_rate"),
            "depth",
            "cuts",
            fn.array_join("hot", ", ").alias("hot"),
            _rates().alias("rates"),
            "ruled_by",
        )
    )


def _rates() -> Column:
    """Return each class with its rate as one text, `P2 315.1, P3 241.9`."""
    each = fn.transform(
        fn.array_sort(fn.map_entries("rates")),
        lambda entry: fn.concat_ws(" ", entry["key"], fn.round(entry["value"], 1)),
    )
    return fn.array_join(each, ", ")
