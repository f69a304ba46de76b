"""What only Spark can show of tuning: it reads what was written, and spreads runs without changing one."""

import gzip
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proxy.reports.files import ReportError
from proxy.simulation.scenario import Scenario
from proxy.simulation.scenario_run import EPOCH, simulate
from proxy.tuning.goals import ranked
from proxy.tuning.grid import Candidate
from proxy.tuning.recording import Recording
from proxy.tuning.runs import Run, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Write = Callable[[str, Sequence[Any]], Path]
DEADLINE = 630
"""Seconds for a process with a Spark of its own: three times what it has taken where thirty others wanted the cores."""

SCENARIO = Scenario.model_validate(
    {
        "name": "made",
        "why": "by hand",
        "seconds": 8,
        "warm_up": 2,
        "queues": {"work": {"capacity": 50}},
        "routes": {"shop": {"queues": ["work"]}},
        "streams": {"orders": {"priority": "P1", "rate": 10}, "campaign": {"priority": "P3", "rate": 60}},
        "expect": [{"figure": "use", "at_least": 0, "why": "so"}],
    }
)
NEEDED = {
    "start": ("classes", "routes", "settings"),
    "class": ("class", "interval_s", "received", "received_bytes", "confirmed", "dead_lettered", "lag", "lag_age_s"),
    "route": ("route", "state", "confirmed", "nacked", "depth", "consumers", "queues", "publish_us"),
    "verdict": ("route", "samples", "errors", "depth", "drain_rate", "queue_delay_us", "depth_cost"),
    "type": ("type", "class", "route", "received"),
}
"""What tuning asks of records."""


def told(recording: Recording) -> dict[str, list[list[Any]]]:
    return {
        kind: sorted(
            ([record["at_ms"], *(record.get(name) for name in names)] for record in recording.of_kind(kind)), key=str
        )
        for kind, names in NEEDED.items()
    }


def test_records_are_read_as_they_were_written(spark: "SparkSession", write: Write) -> None:
    from proxy.tuning.recorded import read

    records: list[Any] = []
    simulate(SCENARIO, "class_budget", records.append)
    files = [str(write("one.jsonl", ["no record", *records]))]
    written = Recording.of(record for record in records if record["kind"] in {*NEEDED, "committed"})
    found = read(spark, files)
    assert told(found) == told(written)
    assert (found.begins_ms, found.seconds) == (written.begins_ms, written.seconds)

    since, until = (datetime.fromtimestamp(EPOCH + at, UTC) for at in (3, 6))
    window = read(spark, files, since, until)
    assert 2.5 < window.seconds <= 3.5
    assert window.in_force is not None
    with pytest.raises(ReportError, match="no `class` records between --since and --until"):
        read(spark, files, until=datetime.fromtimestamp(EPOCH - 3_600, UTC))


@pytest.mark.timeout(DEADLINE + 60)
def test_one_line_names_the_file_and_the_remedy_when_a_log_is_cut_short(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(os.urandom(50_000))[:-9_000])
    call = [sys.executable, "-m", "proxy", "tune", str(cut), "--master", "local[1]"]
    ended = subprocess.run(call, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[1:] == [f"tidegate tune: can't be read to the end: {cut}; leave them out"]


def test_ranks_over_spark_are_those_of_a_plain_loop(spark: "SparkSession") -> None:
    from proxy.tuning.spread import spread

    ways = [Candidate(), Candidate("static")]
    tasks = [Run(way, seed) for way in ways for seed in (1, 2)]
    spread_out = spread(spark.sparkContext, SCENARIO, ("P1", "P3"), tasks, lambda _: None)
    looped = [run(SCENARIO, ("P1", "P3"), task) for task in tasks]
    assert spread_out == looped
    by_way = [[one.figures for one in spread_out[at : at + 2]] for at in (0, 2)]
    assert ranked(by_way, ("P1", "P3"), 0.5)[-1].place == 1
