"""Tables: what people see of one is what its file holds."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from proxy.reports import tables


def test_the_rows_shown_are_those_written_when_there_are_too_many_to_show_all(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ROWS_COLLECTED", 5)
    drawn = spark.range(8).withColumn("one", fn.expr("uuid()"))  # another one each time that it is worked out
    made = tables.Tables(spark, str(tmp_path), lambda _: None)

    made.add("drawn", drawn, ["id"], many=True)

    written = [row.asDict() for row in spark.read.parquet(str(tmp_path / "drawn")).orderBy("id").collect()]
    assert made.rows["drawn"] == written[:5]
    assert made.totals["drawn"] == len(written) == 8
