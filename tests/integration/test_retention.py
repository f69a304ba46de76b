"""How long a real Kafka keeps topics, and what is made of it before events go."""

import gzip
import json
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from load.stack import Stack
from load.stack.kafka_settings import FORBIDDEN_PREFIX, USERS
from proxy.kafka_log import KafkaLog
from proxy.model import Partition, Retention
from proxy.settings import Limits, LogSettings
from tests.contract.log_adapters import Owner
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(180)


async def create(stack: Stack, topic: str, **configs: str) -> None:
    """Create a topic with settings of its own; their names have _ for the dot."""
    admin = AIOKafkaAdminClient(bootstrap_servers=stack.kafka)
    await admin.start()
    try:
        chosen = {name.replace("_", "."): value for name, value in configs.items()}
        await admin.create_topics([NewTopic(topic, 1, 1, topic_configs=chosen)])
    finally:
        await admin.close()


def state_of(tidegate: Tidegate) -> dict[str, Any]:
    """Return /state."""
    port = tidegate.events("admin_listening")[0]["port"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/state", timeout=5) as answer:
        state: dict[str, Any] = json.loads(answer.read())
    return state


async def test_it_is_told_of_each_topic_how_long_it_is_kept_and_of_a_refused_one_that_it_is(stack: Stack) -> None:
    name = f"t{uuid4().hex[:10]}"
    plain, sized, compacted, refused = name, f"{name}.sized", f"{name}.compacted", f"{FORBIDDEN_PREFIX}{name}"
    await create(stack, plain, retention_ms="60000", segment_bytes="1048576")
    await create(stack, sized, retention_bytes="5000000", segment_bytes="1048576")
    await create(stack, compacted, cleanup_policy="compact", retention_ms="60000", segment_bytes="1048576")
    await create(stack, refused)
    security = {"protocol": "SASL_PLAINTEXT", "username": "tidegate", "password": USERS["tidegate"]}
    settings = {"hosts": [stack.kafka_sasl], "group": name, "security": security}
    log = KafkaLog(LogSettings.model_validate(settings), Limits())
    await log.start(Owner())
    try:
        told = await log.retention({plain, sized, compacted, refused, f"{name}.absent"})
        firsts = await log.firsts({Partition(plain, 0), Partition(sized, 0)})
    finally:
        await log.stop()
    assert told == {
        plain: Retention(60.0, None, 1_048_576),
        sized: Retention(None, 5_000_000, 1_048_576),  # this stack's brokers keep topics without end by time
        compacted: Retention(None, None, None),
        refused: None,
    }
    assert firsts == {Partition(plain, 0): 0, Partition(sized, 0): 0}


async def test_a_type_is_named_and_lifted_when_a_real_log_may_soon_drop_its_oldest_event(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        queue = await ends.queue(**{"x-max-length": 1, "x-overflow": "reject-publish"})
        await create(stack, ends.name, retention_ms="20000", segment_bytes="1048576")
        settings = ends.settings(
            {ends.name: {"class": "P2", "routing_key": queue}},
            routes={"main": {"exchange": ""}},
            classes={"P1": {}, "P2": {"lift_before_loss": "1m"}, "P3": {}},
            metric_log={"folder": str(tmp_path / "metrics")},
        )
        with Tidegate(tmp_path, settings) as tidegate:
            await tidegate.ready()
            await ends.produce(ends.name, [b"kept"] * 50)
            (near, *_) = await until(lambda: tidegate.events("retention_near"), deadline=60)
            assert (near["type"], near["lifted_to"]) == (ends.name, "P1")
            assert near["left_s"] <= 10, "not before half of its time is over"
            told = tidegate.metrics()
            assert told['tidegate_lifted_types{class="P2"}'] == 1
            assert told['tidegate_retention_left_seconds{class="P2"}'] <= 10
            state = state_of(tidegate)["types"][ends.name]
            assert (state["retention_s"], state["goes_as"], state["retention_near"]) == (20.0, "P1", 1)
            await ends.receive(queue, 50)
            await until(lambda: tidegate.events("retention_far"), deadline=60)
            assert await tidegate.stop() == 0
    lines = [
        line
        for file in (tmp_path / "metrics").glob("**/*.gz")
        for line in gzip.decompress(file.read_bytes()).splitlines()
    ]
    records = [one for one in map(json.loads, lines) if one["kind"] == "retention"]
    assert [one["phase"] for one in records][:: len(records) - 1] == ["begun", "ended"]
    assert (records[0]["full_s"], records[0]["lifted_to"]) == (20.0, "P1")
