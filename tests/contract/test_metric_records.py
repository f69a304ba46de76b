"""What the metric log writes, the reports read: every kind of record, through real files."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from proxy.congestion.buckets import DIGITS, HIGHEST_US, LOWEST_US, index_of
from proxy.metric_log.log import SCHEMA_VERSION, MetricLog
from proxy.reports.files import log_files
from proxy.reports.overview import rejected_lines
from proxy.reports.records import Records, read_lines, with_records
from proxy.reports.schema import KINDS, VERSION
from proxy.reports.session import spark_session
from proxy.settings import MetricLogSettings

DOCUMENT = Path(__file__).parents[2] / "docs" / "metric-log.md"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    if active := SparkSession.getActiveSession():  # that of tests/reports; Java takes one at a time
        yield active
        return
    with spark_session("local[2]", tmp_path_factory.mktemp("spark") / "spark.log") as session:
        yield session


def examples() -> list[dict[str, Any]]:
    """The records of docs/metric-log.md, one of each kind."""
    blocks = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return [json.loads(line) for block in blocks for line in block.splitlines() if line]


def test_the_documented_examples_are_one_of_each_kind() -> None:
    assert sorted(example["kind"] for example in examples()) == sorted(KINDS)
    assert SCHEMA_VERSION == VERSION
    (start,) = [example for example in examples() if example["kind"] == "start"]
    assert start["layout"] == {"unit": "us", "lowest": LOWEST_US, "highest": HIGHEST_US, "digits": DIGITS}


@pytest.mark.timeout(300)
async def test_every_documented_record_is_read_as_it_was_written(tmp_path: Path, spark: SparkSession) -> None:
    log = MetricLog(MetricLogSettings(folder=str(tmp_path)), lambda: 1_763_700_000.5, "host-7-1763700000")
    written = {}
    for example in examples():
        fields = {name: value for name, value in example.items() if name not in {"v", "at_ms", "instance"}}
        log.write(fields)
        written[example["kind"]] = fields
    await log.close()
    records = Records(with_records(read_lines(spark, {"run": log_files([str(tmp_path)])})), {"run": 1_763_700_000_000})
    assert rejected_lines(records.parsed).collect() == []
    for kind, fields in written.items():
        (row,) = records.of(kind).collect()
        found = row.asDict(recursive=True)
        assert (found["instance"], found["at_ms"], found["at_s"]) == ("host-7-1763700000", 1_763_700_000_500, 0.5)
        assert {name: found[name] for name in fields if name != "kind"} == {
            name: value for name, value in fields.items() if name != "kind"
        }


@pytest.mark.timeout(300)
async def test_bucket_counts_are_read_when_they_are_written_with_whole_numbers_as_keys(
    tmp_path: Path, spark: SparkSession
) -> None:
    (example,) = [example for example in examples() if example["kind"] == "class"]
    buckets = Counter(index_of(us) for us in (1, 300, 300, 5_000_000, HIGHEST_US))
    log = MetricLog(MetricLogSettings(folder=str(tmp_path)), lambda: 0.0, "one")
    log.write(example | {"publish_us": buckets})
    await log.close()
    records = Records(with_records(read_lines(spark, {"run": log_files([str(tmp_path)])})), {"run": 0})
    (row,) = records.of("class").select("publish_us").collect()
    assert {int(index): count for index, count in row["publish_us"].items()} == buckets
