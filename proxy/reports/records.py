"""From lines to records: parsed once, kept, and the lines that are none counted with their reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

from proxy import records as declared
from proxy.reports.files import as_spark_path
from proxy.reports.schema import CORRUPT, ENVELOPE, KINDS, is_sound, with_corrupt

UNKNOWN = "unknown kind"
"""The reason of a line that a newer writer may have left: nothing is wrong with it, and nothing is made of it."""
SAMPLE_CHARACTERS = 120
"""So much of a line that is no record is shown."""


@dataclass(frozen=True)
class Records:
    """The records of every run, with the instant that is 0 s in each."""

    parsed: DataFrame
    """run, file, kind (null: no record), reason and sample of what is none, at_ms, instance, a struct per kind read."""
    start_ms: Mapping[str, int]

    def of(self, kind: str) -> DataFrame:
        """Return the records of one kind: run, instance, at_ms, at_s (since the start of the run), and its fields."""
        start_ms = fn.create_map(*[fn.lit(part) for item in self.start_ms.items() for part in item])
        return (
            self.parsed.where(fn.col("kind") == kind)
            .withColumn("at_s", (fn.col("at_ms") - start_ms[fn.col("run")]) / 1000)
            .select("run", "instance", "at_ms", "at_s", f"{kind}.*")
            .drop(CORRUPT)
        )


def read_lines(spark: SparkSession, runs: Mapping[str, Sequence[str]]) -> DataFrame:
    """Return run, file, value: every line that is not blank of every run's files."""
    frames = [
        spark.read.text([as_spark_path(path) for path in paths], lineSep="\n").select(
            fn.lit(run).alias("run"), fn.col("_metadata.file_name").alias("file"), "value"
        )
        for run, paths in runs.items()
    ]
    return reduce(DataFrame.unionAll, frames).where(~fn.col("value").rlike(r"^\s*$"))


def with_records(lines: DataFrame) -> DataFrame:
    """Parse each line once by the schema of its kind; a line that is no record gets a reason and a sample instead."""
    head = lines.withColumn("head", _parsed(ENVELOPE))
    typed = head.select(
        "*",
        *[fn.when(fn.col("head.kind") == kind, _parsed(schema)).alias(kind) for kind, schema in KINDS.items()],
    ).withColumn("reason", _reason())
    is_record = fn.col("reason").isNull()
    return typed.select(
        "run",
        "file",
        fn.when(is_record, fn.col("head.kind")).alias("kind"),
        "reason",
        fn.when(~is_record, fn.substring("value", 1, SAMPLE_CHARACTERS)).alias("sample"),
        fn.col("head.at_ms").alias("at_ms"),
        fn.coalesce("head.instance", fn.lit("")).alias("instance"),
        *KINDS,
    )


def _parsed(schema: StructType) -> Column:
    return fn.from_json("value", with_corrupt(schema), {"columnNameOfCorruptRecord": CORRUPT})


def _reason() -> Column:
    """Return why a line is no record of this version; null if it is one."""
    head = fn.col("head")
    sound = reduce(
        lambda chain, item: chain.when(fn.col("head.kind") == item[0], is_sound(item[1], fn.col(item[0]))),
        KINDS.items(),
        fn.when(fn.lit(col=False), fn.lit(col=False)),
    ).otherwise(fn.lit(col=True))  # of a kind that is declared and not read here
    return (
        fn.when(head[CORRUPT].isNotNull() & fn.col("value").rlike(r"^\s*\{.*[^}\s]\s*$"), "cut off")
        .when(~is_sound(ENVELOPE, head), "malformed")
        .when(~head["v"].isin(list(declared.READABLE)), "another version")
        .when(~fn.col("head.kind").isin(list(declared.KINDS)), UNKNOWN)
        .when(~sound, "malformed")
    )
