"""What the bridge and the metric log write, the reports read: every kind of record, through real files."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from proxy.app import App
from proxy.congestion.buckets import DIGITS, HIGHEST_US, LOWEST_US, index_of
from proxy.metric_log.log import SCHEMA_VERSION, MetricLog
from proxy.reports import cross_checks as checks
from proxy.reports.files import log_files
from proxy.reports.overview import rejected_lines
from proxy.reports.records import Records, read_lines, with_records
from proxy.reports.schema import KINDS, VERSION
from proxy.reports.session import spark_session
from proxy.reports.traffic import traffic
from proxy.settings import (
    BrokerSettings,
    EventType,
    Limits,
    LogSettings,
    MetricLogSettings,
    Route,
    RoutingKey,
    Settings,
)
from proxy.simulation import virtual_time
from proxy.simulation.memory_broker import MemoryBroker
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog

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


EVENTS = 600
"""Of each of two event types."""
START = 1_763_700_000.0


async def live(folder: Path) -> None:
    """One process of the bridge, in memory, through a full queue and a lost connection, to its orderly end."""
    settings = Settings(
        log=LogSettings(hosts=["memory:1"], group="g"),
        broker=BrokerSettings(hosts=["memory:1"]),
        routes={"main": Route(exchange="", queues=("q",), policy="per_type")},
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
    virtual_time.run(live(tmp_path))
    files = log_files([str(tmp_path)])
    records = Records(with_records(read_lines(spark, {"run": files})).persist(), {"run": int(START * 1000)})
    try:
        assert rejected_lines(records.parsed).collect() == []
        kinds = {row["kind"] for row in records.parsed.select("kind").distinct().collect()}
        assert kinds >= {"start", "route", "class", "type", "verdict", "stop"}
        by_class = traffic(records.of("class"), ["run", "class"])
        found = checks.cross_checks(
            [
                checks.classes_against_types(by_class, traffic(records.of("type"), ["run", "class", "type"])),
                checks.counts_against_buckets(records.of("class"), by_class),
                checks.routes_against_classes(records.of("route"), by_class),
                checks.stops_against_classes(records.of("stop"), records.of("class")),
            ]
        ).collect()
        assert [row.asDict() for row in found if row["difference"]] == []
        assert {row["class"]: row["confirmed"] >= EVENTS for row in by_class.collect() if row["class"] != "P2"} == {
            "P1": True,
            "P3": True,
        }
    finally:
        records.parsed.unpersist()
