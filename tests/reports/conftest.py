"""Records with every field filled in, and how reports get them."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from proxy.reports.intake import Taken
    from proxy.reports.records import Records

HERE = Path(__file__).parent
SPARK_DEADLINE = 600
"""Seconds for a test: starting Java on a busy machine takes a minute by itself, a report of two fleets four."""

TRAFFIC: dict[str, Any] = {
    "interval_s": 1.0,
    "class": "P1",
    "received": 0,
    "received_bytes": 0,
    "confirmed": 0,
    "confirmed_bytes": 0,
    "nacked": 0,
    "unknown": 0,
    "dead_lettered": {},
    "resent": 0,
    "resent_unknown": 0,
    "uncommitted": 0,
    "overtaken": 0,
    "ahead_of_clock": 0,
    "old": 0,
    "waiting": 0,
    "catching_up": 0,
    "lag": None,
    "ahead": 0,
    "lag_age_s": None,
    "batch_size": None,
    "publish_us": {},
    "bridge_us": {},
}
PLACE: dict[str, Any] = {"type": "order", "topic": "order", "topic_id": "id", "partition": 0, "group": "g"}
MOVED: dict[str, Any] = PLACE | {"by": "somebody", "why": None, "first": 0, "end": 10}
DEFAULTS: dict[str, dict[str, Any]] = {
    "start": {
        "version": "0.1.0",
        "layout": {"unit": "us", "lowest": 1, "highest": 3_600_000_000, "digits": 2},
        "classes": ["P1", "P2", "P3"],
        "routes": {"main": {"policy": "per_type", "queues": ["work"]}},
        "slos": None,
    },
    "settings": {
        "routes": {"main": {"policy": "per_type", "queues": ["work"]}},
        "settings": "{}",
        "slos": None,
    },
    "route": {
        "interval_s": 1.0,
        "route": "main",
        "state": "open",
        "in_flight": 0,
        "confirmed": 0,
        "nacked": 0,
        "unknown": 0,
        "undeliverable": 0,
        "depth": None,
        "queues": {},
        "consumers": None,
        "publish_us": {},
    },
    "class": TRAFFIC,
    "type": TRAFFIC | {"interval_s": 10.0, "type": "order", "topic": "order", "route": "main", "paused": False},
    "verdict": {
        "route": "main",
        "congested": False,
        "cause": "none",
        "p50_us": 900,
        "errors": 0,
        "samples": 100,
        "threshold_us": 50_000,
        "threshold_errors": 0,
        "min_samples": 10,
        "cuts": None,
        "hot": None,
        "queue_delay_us": None,
        "drain_rate": None,
        "depth": None,
        "rates": None,
    },
    "incident": {"name": "lane_state"},
    "drops": {"records": 0, "files": 0},
    "stop": {"confirmed": 0, "dead_lettered": 0, "unresolved": 0},
    "produced": {"type": "order", "class": "P1", "id": "order-0-0"},
    "consumed": {"type": "order", "class": "P1", "id": "order-0-0", "event_ms": 0},
    "assigned": PLACE | {"epoch": 1, "first": 0, "committed": None, "end": None},
    "committed": {"type": "order", "topic": "order", "group": "g", "ranges": []},
    "skip": MOVED | {"count": None},
    "rewind": MOVED | {"count": None},
    "discard": MOVED | {"count": 10},
    "intervention": {
        "id": "1a2b3c4d",
        "mode": "pause",
        "types": [],
        "classes": ["P3"],
        "by": "ann",
        "why": None,
        "until_ms": 601_000,
        "phase": "begun",
        "ended_by": None,
        "ended_why": None,
        "rate": None,
        "routes": None,
        "policy": None,
    },
    "shadow": {
        "by": "settings",
        "why": None,
        "type": "order",
        "interval_s": 10.0,
        "route": "main",
        "sent": 0,
        "held": 0,
        "class": "P3",
        "passed": 0,
        "waiting": 0,
        "longest_s": 0.0,
    },
    "redrive": MOVED | {"reason": "unroutable", "count": 10, "attempt": 1},
}

Record = Callable[..., dict[str, Any]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(SPARK_DEADLINE))


@pytest.fixture(scope="session")
def record() -> Record:
    """A record of a kind, every field filled in, changed as told; `class` and `type` may be given as class_, type_."""

    def make(kind: str, at_ms: int = 1_000, **changes: Any) -> dict[str, Any]:
        fields = {name.rstrip("_"): value for name, value in changes.items()}
        return {"v": 2, "kind": kind, "at_ms": at_ms, "instance": "one", **DEFAULTS[kind], **fields}

    return make


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Sequence[Any]], Path]:
    """Write lines, or records as lines, into a file under the test's folder."""

    def to_file(name: str, lines: Sequence[Any]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("".join(f"{line}\n" for line in text))
        return path

    return to_file


@pytest.fixture
def read(spark: "SparkSession", tmp_path: Path) -> "Callable[..., Records]":
    """Records as reports get them from what was taken in, each call's from files of its own; 0 s is 1970.

    Without the way over lines of text (`test_records`), which costs seconds for each kind.
    """
    from proxy.reports.records import Records, schema_of_records

    calls = count()

    def from_records(records: Sequence[Any] = (), **runs: Sequence[Any]) -> "Records":
        named: Mapping[str, Sequence[Any]] = {"run": records} if records else runs
        folder = tmp_path / f"read-{next(calls)}"
        folder.mkdir()
        text: dict[str, list[str]] = {}
        for run, some in named.items():
            for one in some:
                text.setdefault(one["kind"], []).append(json.dumps({**one, "run": run, "file": f"{run}.jsonl"}))
        frames = {}
        for kind, lines in text.items():
            path = folder / f"{kind}.json"
            path.write_text("\n".join(lines))
            frames[kind] = spark.read.schema(schema_of_records(kind)).json(str(path))
        return Records(frames, dict.fromkeys(named, 0))

    return from_records


@pytest.fixture(scope="session")
def facts() -> "Callable[[Records, str], DataFrame]":
    """The rows of a fact of records, each as it was recorded."""
    from proxy.reports.facts import Facts, rows_of

    def of(records: "Records", name: str) -> "DataFrame":
        found = rows_of(name, records.frames)
        assert found is not None
        return Facts(found.sparkSession, {name: found}, records.start_ms).of(name)

    return of


@pytest.fixture
def taken(spark: "SparkSession", write: Callable[[str, Sequence[Any]], Path], tmp_path: Path) -> "Callable[..., Taken]":
    """What is counted of lines, each run's in a file of its own, when they are taken in."""
    from proxy.reports.intake import take_in
    from proxy.reports.records import read_lines

    def from_lines(lines: Sequence[Any] = (), **runs: Sequence[Any]) -> "Taken":
        named: Mapping[str, Sequence[Any]] = {"run": lines} if lines else runs
        files = {run: [str(write(f"{run}.jsonl", some))] for run, some in named.items()}
        return take_in(read_lines(spark, files), list(files), str(tmp_path / "taken"), lambda _: None)

    return from_lines


@pytest.fixture(scope="session")
def rows() -> "Callable[[DataFrame], list[dict[str, Any]]]":
    """The rows of a table, in a stable order."""

    def collect(frame: "DataFrame") -> list[dict[str, Any]]:
        return sorted((row.asDict(recursive=True) for row in frame.collect()), key=str)

    return collect
