"""From lines to records: each line is parsed once, by the schema of its kind; what is none gets a reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType, StructField, StructType

from proxy import records as declared
from proxy.reports.files import as_spark_path
from proxy.reports.schema import CORRUPT, ENVELOPE, KINDS, is_sound, with_corrupt

UNKNOWN = "unknown kind"
"""The reason of a line that a newer writer may have left: nothing is wrong with it, and nothing is made of it."""
SAMPLE_CHARACTERS = 120
"""So much of a line that is no record is shown."""
OTHER = "other"
"""What is said to be the kind of a line of which none of `KINDS` can be told."""
LINES = "run string, file string, value string"
REJECTED, SAMPLE = "_reason", "_sample"
"""Columns of what was parsed that say why a line is no record, and its beginning."""
_BEGINNING = r'^\{\s*"v"\s*:\s*[0-9]+\s*,\s*"kind"\s*:\s*"([a-z_]+)"'
"""How every writer of ours begins a line; of others the whole envelope is parsed."""
_BLANK = " \t\n\r\f\v"
_READABLE, _DECLARED = (f"({', '.join(map(repr, some))})" for some in (declared.READABLE, declared.KINDS))
_HEAD = f"from_json(value, '{with_corrupt(ENVELOPE).simpleString()}', map('columnNameOfCorruptRecord', '{CORRUPT}'))"
"""The envelope of a line, as SQL."""
_CUT_OFF = r"^\\s*\\{.*[^}\\s]\\s*$"
_REASON = f"""
CASE
    WHEN {_HEAD}.{CORRUPT} IS NOT NULL AND value RLIKE '{_CUT_OFF}' THEN 'cut off'
    WHEN NOT ({is_sound(ENVELOPE, _HEAD)}) THEN 'malformed'
    WHEN NOT {_HEAD}.v IN {_READABLE} THEN 'another version'
    WHEN NOT {_HEAD}.kind IN {_DECLARED} THEN '{UNKNOWN}'
END
"""
"""Why a line is no record of this version, by its envelope alone; null if that tells of nothing."""
_SAMPLED = f"CASE WHEN {REJECTED} IS NOT NULL THEN substring(value, 1, {SAMPLE_CHARACTERS}) END AS {SAMPLE}"
_REJECTED = [StructField(REJECTED, StringType()), StructField(SAMPLE, StringType())]


@dataclass(frozen=True)
class Records:
    """The records of every run, with the instant that is 0 s in each."""

    frames: Mapping[str, DataFrame]
    """Of each kind: run, file, instance, at_ms and its fields; kinds of which there is none may be absent."""
    start_ms: Mapping[str, int]

    def of(self, kind: str) -> DataFrame:
        """Return the records of one kind: run, file, instance, at_ms, at_s (since the start of the run), its fields."""
        frame = self.frames.get(kind)
        if frame is None:
            frame = no_records(next(iter(self.frames.values())).sparkSession, kind)
        return with_at_s(frame, self.start_ms)


def with_at_s(frame: DataFrame, start_ms: Mapping[str, int]) -> DataFrame:
    """Add at_s, the seconds since the start of the run, for at_ms."""
    starts = fn.create_map(*[fn.lit(part) for item in start_ms.items() for part in item])
    return frame.withColumn("at_s", (fn.col("at_ms") - starts[fn.col("run")]) / 1000)


def read_lines(spark: SparkSession, runs: Mapping[str, Sequence[str]]) -> DataFrame:
    """Return run, file, value: every line that is not blank of every run's files."""
    frames = [
        told_lines(spark.read.text([as_spark_path(path) for path in paths], lineSep="\n"), run).drop("path")
        for run, paths in runs.items()
    ]
    return reduce(DataFrame.unionAll, frames)


def told_lines(text: DataFrame, run: str) -> DataFrame:
    """Return run, file, value, path of a text source's lines that are not blank."""
    place = [fn.col(f"_metadata.file_{name}").alias(alias) for name, alias in (("name", "file"), ("path", "path"))]
    named = text.select(fn.lit(run).alias("run"), *place, "value")
    # Of a line that begins as a record does nothing needs to be trimmed to know that it is not blank.
    return named.where(fn.startswith("value", fn.lit("{")) | (fn.btrim("value", fn.lit(_BLANK)) != ""))


def with_kind(lines: DataFrame) -> DataFrame:
    """Add the kind by which a line is to be parsed, one of `KINDS`, or `OTHER`."""
    # In steps, for what a step uses twice is worked out once.
    begun = lines.withColumn("kind", fn.regexp_extract("value", _BEGINNING, 1))
    told = begun.withColumn("kind", fn.when(fn.col("kind") != "", fn.col("kind")).otherwise(_parsed(ENVELOPE)["kind"]))
    return told.withColumn("kind", fn.when(fn.col("kind").isin(*KINDS), fn.col("kind")).otherwise(OTHER))


def parsed(lines: DataFrame, kind: str) -> DataFrame:
    """Parse lines of one kind: run, file, at_ms, instance, the fields; of what is no record `REJECTED`, `SAMPLE`."""
    schema = StructType([*ENVELOPE.fields, *KINDS[kind].fields])
    is_record = f"{is_sound(schema, 'one')} AND one.v IN {_READABLE} AND one.kind = '{kind}'"
    reason = f"CASE WHEN NOT ({is_record}) THEN coalesce({_REASON}, 'malformed') END AS {REJECTED}"
    judged = lines.select("run", "file", "value", _parsed(schema).alias("one")).selectExpr("*", reason)
    return judged.selectExpr(
        "run",
        "file",
        "one.at_ms",
        "coalesce(one.instance, '') AS instance",
        *[f"one.`{field.name}`" for field in KINDS[kind].fields],
        REJECTED,
        _SAMPLED,
    )


def no_records(spark: SparkSession, kind: str) -> DataFrame:
    """Return the records of a kind of which there are none; Spark knows that without a job."""
    return _nothing(spark, schema_of_records(kind)).drop(REJECTED, SAMPLE)


def planned_by(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Return a frame as one of this session, whichever has read it: its settings decide, not those of the other."""
    return _nothing(spark, frame.schema).unionByName(frame)


def _nothing(spark: SparkSession, schema: StructType) -> DataFrame:
    fields = [fn.lit(None).cast(field.dataType).alias(field.name) for field in schema]
    return spark.range(1).where(fn.lit(col=False)).select(*fields)


def by_kind(lines: DataFrame) -> dict[str, DataFrame]:
    """Return the records of each kind: run, file, at_ms, instance and the fields; parsed when they are asked for.

    `lines`: with their kind, best persisted.
    """
    every = {kind: parsed(lines.where(fn.col("kind") == kind), kind) for kind in KINDS}
    return {kind: frame.where(fn.col(REJECTED).isNull()).drop(REJECTED, SAMPLE) for kind, frame in every.items()}


def schema_of_records(kind: str) -> StructType:
    """Return the schema of what `parsed` gives; nothing in it must be there, as it is not in a line that is none."""
    envelope = [StructField(name, ENVELOPE[name].dataType) for name in ("at_ms", "instance")]
    fields = [StructField(field.name, field.dataType) for field in KINDS[kind].fields]
    return StructType([*[StructField(name, StringType()) for name in ("run", "file")], *envelope, *fields, *_REJECTED])


def others(lines: DataFrame) -> DataFrame:
    """Return what becomes of lines of no kind that is read: run, file, kind (null: no record), at_ms and why."""
    judged = lines.selectExpr("run", "file", "value", f"{_HEAD} AS one", f"{_REASON} AS {REJECTED}")
    kind = f"CASE WHEN {REJECTED} IS NULL THEN one.kind END AS kind"
    return judged.selectExpr("run", "file", kind, "one.at_ms", REJECTED, _SAMPLED)


def _parsed(schema: StructType) -> Column:
    return fn.from_json("value", with_corrupt(schema), {"columnNameOfCorruptRecord": CORRUPT})
