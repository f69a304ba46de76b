"""What the bridge and the metric log write, the reports read: every kind of record, through real files."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from proxy.app import App
from proxy.congestion.buckets import DIGITS, HIGHEST_US, LOWEST_US, index_of
from proxy.congestion.detector import Cause
from proxy.congestion.signs import Sign
from proxy.recording.metric_log import MetricLog
from proxy.records import VERSION
from proxy.reports.analysis import tabled
from proxy.reports.files import log_files
from proxy.reports.layers import read
from proxy.reports.records import Records
from proxy.reports.schema import KINDS
from proxy.settings import (
    BrokerSettings,
    EventType,
    Limits,
    LogSettings,
    MetricLogSettings,
    Policy,
    Route,
    RoutingKey,
    Settings,
)
from proxy.simulation import virtual_time
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog
from tests.histories.memory_broker import MemoryBroker

DOCUMENT = Path(__file__).parents[2] / "docs" / "metric-log.md"


def examples() -> list[dict[str, Any]]:
    """The records of docs/metric-log.md, one of each kind; of verdicts one for each way to judge."""
    blocks = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return [json.loads(line) for block in blocks for line in block.splitlines() if line]


def test_the_documented_examples_are_one_of_each_kind() -> None:
    assert sorted(example["kind"] for example in examples()) == sorted([*KINDS, "verdict"])
    assert {example["v"] for example in examples()} == {VERSION}
    (start,) = [example for example in examples() if example["kind"] == "start"]
    assert start["layout"] == {"unit": "us", "lowest": LOWEST_US, "highest": HIGHEST_US, "digits": DIGITS}


@pytest.mark.timeout(300)
async def test_every_documented_record_is_read_as_it_was_written(tmp_path: Path, spark: SparkSession) -> None:
    log = MetricLog(MetricLogSettings(folder=str(tmp_path)), lambda: 1_763_700_000.5, "host-7-1763700000")
    written: dict[str, list[dict[str, Any]]] = {}
    for example in examples():
        if example["kind"] not in KINDS:
            continue
        fields = {name: value for name, value in example.items() if name not in {"v", "at_ms", "instance"}}
        log.write(example | {"at_ms": 1_763_700_000_500, "instance": "host-7-1763700000"})
        written.setdefault(example["kind"], []).append(fields)
    await log.close()
    layers = read(spark, {"run": log_files([str(tmp_path)])}, str(tmp_path / "layers"), lambda _: None)
    assert layers.taken.rejected == []
    records = Records(layers.records, {"run": 1_763_700_000_000})
    for kind, every in written.items():
        rows = [row.asDict(recursive=True) for row in records.of(kind).collect()]
        for found in rows:
            assert (found["instance"], found["at_ms"], found["at_s"]) == ("host-7-1763700000", 1_763_700_000_500, 0.5)
        taken = [{name: row[name] for name in row if row[name] is not None} for row in rows]
        told = [{name: value for name, value in fields.items() if value is not None} for fields in every]
        kept = [{name: row[name] for name in row if name in fields} for row, fields in zip(taken, told, strict=True)]
        assert kept == [{name: value for name, value in fields.items() if name != "kind"} for fields in told]


def test_every_cause_of_a_verdict_is_documented() -> None:
    text = DOCUMENT.read_text()
    section = text[text.index("### `verdict`") : text.index("### `incident`")]
    assert [cause.value for cause in (*Cause, *Sign) if f"`{cause.value}`" not in section] == []


@pytest.mark.timeout(300)
async def test_bucket_counts_are_read_when_they_are_written_with_whole_numbers_as_keys(
    tmp_path: Path, spark: SparkSession
) -> None:
    (example,) = [example for example in examples() if example["kind"] == "class"]
    buckets = Counter(index_of(us) for us in (1, 300, 300, 5_000_000, HIGHEST_US))
    log = MetricLog(MetricLogSettings(folder=str(tmp_path)), lambda: 0.0, "one")
    log.write(example | {"publish_us": buckets})
    await log.close()
    layers = read(spark, {"run": log_files([str(tmp_path)])}, str(tmp_path / "layers"), lambda _: None)
    (row,) = layers.records["class"].select("publish_us").collect()
    assert {int(index): count for index, count in row["publish_us"].items()} == buckets


EVENTS = 600
"""Of each of two event types."""
START = 1_763_700_000.0


async def live(folder: Path, policy: Policy) -> None:
    """One process of the bridge, in memory, through a full queue and a lost connection, to its orderly end."""
    settings = Settings(
        log=LogSettings(hosts=["memory:1"], group="g"),
        broker=BrokerSettings(hosts=["memory:1"]),
        routes={"main": Route(exchange="", queues=("q",), policy=policy)},
        event_types={
            name: EventType(
                name=name, topic=name, priority=priority, route="main", routing_key=RoutingKey(constant="q")
            )
            for name, priority in (("orders", "P1"), ("news", "P3"))
        },
        metric_log=MetricLogSettings(folder=str(folder), file_bytes=64 * 1024, type_interval=5),
        limits=Limits(confirm_deadline=5),
    )
    loop = asyncio.get_running_loop()

    def wall() -> float:
        return START + loop.time()

    async def inline(work: Callable[[float], None], now: float) -> None:
        work(now)

    cluster, broker = MemoryCluster(Random(1)), MemoryBroker(Random(2))
    queue = broker.declare_queue("q", bound=50)
    queue.consumers = 1
    log = MetricLog(settings.metric_log, wall, "simulated", offload=inline)
    route = settings.routes["main"]
    app = App(
        settings,
        MemoryLog(cluster, settings.log, settings.limits, name="simulated"),
        {"main": broker.lane("main", route, settings.limits)},
        broker.lane("dead", route, settings.limits),
        broker.monitor(),
        write=log.write,
        wall=wall,
        instance="simulated",
    )
    for topic in settings.event_types:
        cluster.create_topic(topic, 2)
        for number in range(EVENTS):
            cluster.produce(topic, number % 2, value=b"x", timestamp_ms=int(START * 1000))
    writing, running = asyncio.create_task(log.run()), asyncio.create_task(app.run())
    taken = 0
    while taken < 2 * EVENTS:
        await asyncio.sleep(0.05)
        taken += len(queue.take(5))
        if taken == EVENTS:
            broker.drop_connections()
    app.stop()
    await running
    await log.close()
    writing.cancel()
    with suppress(asyncio.CancelledError):
        await writing


@pytest.mark.timeout(300)
def test_the_bridge_s_own_records_are_all_read_and_agree_with_each_other(tmp_path: Path, spark: SparkSession) -> None:
    policies: list[Policy] = ["per_type", "class_budget"]
    for policy in policies:
        virtual_time.run(live(tmp_path / policy, policy))
    files = {policy: log_files([str(tmp_path / policy)]) for policy in policies}
    layers = read(spark, files, str(tmp_path / "layers"), lambda _: None)
    assert layers.taken.rejected == []
    kinds = {(row["run"], row["kind"]) for row in layers.taken.kinds}
    assert kinds >= {(run, kind) for run in files for kind in ("start", "route", "class", "type", "verdict", "stop")}
    tables = tabled(spark, layers, str(tmp_path / "tables"), lambda _: None).tables.rows
    assert len(tables["cross_checks"]) > 20
    assert [row for row in tables["cross_checks"] if row["difference"]] == []
    enough = {(row["run"], row["class"]) for row in tables["traffic_by_class"] if row["confirmed"] >= EVENTS}
    assert enough == {(run, name) for run in files for name in ("P1", "P3")}
    said = [row.asDict() for row in layers.records["verdict"].collect()]
    budgets = [row for row in said if row["run"] == "class_budget"]
    fields = ("cuts", "hot", "drain_rate", "rates")
    assert [row for row in budgets if any(row[name] is None for name in fields)] == []
    assert {row["cause"] for row in budgets} <= {sign.value for sign in Sign}
    assert {"depth", "none"} <= {row["cause"] for row in budgets}
    assert max(row["queue_delay_us"] or 0 for row in budgets) > 80_000
    assert {name for row in budgets for name in row["hot"]} <= {"P1", "P2", "P3"}
    assert "P3" in {name for row in budgets for name in row["rates"]}
    assert [row for row in said if row["run"] == "per_type" and row["rates"] is not None] == []
    assert {row["run"] for row in tables["control_over_time"]} == {"class_budget"}
    assert {row["class"] for row in tables["rates_over_time"]} >= {"P2", "P3"}
