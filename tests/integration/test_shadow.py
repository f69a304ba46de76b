"""A policy in shadow, on real brokers: nothing is held back, and what would have been is told and recorded."""

import asyncio
import gzip
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from aio_pika.abc import AbstractIncomingMessage

from load.stack import Stack
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(120)
FLOOD = 3_000


def asked(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=5) as answer:
        return json.loads(answer.read())


def recorded(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines: list[str] = []
    for path in sorted(folder.iterdir()):
        raw = path.read_bytes()
        lines += (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


async def test_all_is_sent_at_once_and_what_would_have_waited_is_told_when_in_shadow(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        queue = await ends.queue()
        first, last = await ends.topic(".first"), await ends.topic(".last")
        settings = ends.settings(
            {first: {"routing_key": queue, "class": "P1"}, last: {"routing_key": queue, "class": "P3"}},
            routes={"main": {"exchange": "", "queues": [queue], "shadow": True}},
            metric_log={"folder": str(tmp_path / "records"), "type_interval": "1s"},
        )
        await ends.channel.set_qos(prefetch_count=4)

        async def work(message: AbstractIncomingMessage) -> None:
            await asyncio.sleep(0.02)  # its work: 200 a second at most
            await message.ack()

        working = await ends.channel.declare_queue(queue, passive=True)
        await working.consume(work)
        with Tidegate(tmp_path, settings) as tidegate:
            await tidegate.ready()
            assert tidegate.events("in_shadow")[0]["routes"] == ["main"]
            await ends.produce(last, [b"%d" % number for number in range(FLOOD)])
            await ends.produce(first, [b"x"] * 20)
            await until(lambda: ends.all_committed(last, 1, FLOOD))
            assert await ends.depth(queue) > FLOOD / 3, "nothing is held back, so it stands in the queue"
            labels = '{class="P3",route="main"}'
            held = await until(lambda: tidegate.metrics().get(f"tidegate_shadow_held_events_total{labels}"))
            assert held > FLOOD / 3
            assert tidegate.metrics()[f"tidegate_shadow_waiting_events{labels}"] > FLOOD / 3
            port = tidegate.events("admin_listening")[0]["port"]
            state = await asyncio.to_thread(asked, f"http://127.0.0.1:{port}/state")
            assert state["routes"]["main"]["shadow"] is True
            assert await tidegate.stop() == 0
        told = recorded(tmp_path / "records", "shadow")
        by_type = {name: [one for one in told if one["type"] == name] for name in (first, last)}
        assert sum(one["sent"] for one in by_type[last]) == FLOOD
        assert sum(one["held"] for one in by_type[last]) > FLOOD / 3
        assert by_type[last][-1]["waiting"] > 0
        assert {one["class"] for one in by_type[last]} == {"P3"}
        assert [one["cause"] for one in recorded(tmp_path / "records", "verdict")], "decisions are recorded"
