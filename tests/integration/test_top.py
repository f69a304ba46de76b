"""`tidegate top` and /stream of a real bridge between real brokers."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from load.stack import Stack
from tests.support.tidegate import Ends, Tidegate

pytestmark = pytest.mark.timeout(180)


async def top(*addresses: str) -> dict[str, Any]:
    admins = [part for address in addresses for part in ("--admin", address)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "proxy", "top", "--json", *admins), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(out)
    return found


async def test_top_sums_up_two_replicas_that_move_events(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        topic, queue = await ends.topic(partitions=2), await ends.queue()
        settings = ends.settings({topic: {"routing_key": queue}})
        with Tidegate(tmp_path, settings) as first, Tidegate(tmp_path, settings) as second:
            for replica in (first, second):
                await replica.ready()
            for partition in range(2):
                await ends.produce(topic, [b"x"] * 50, partition=partition)
            await ends.receive(queue, 100)
            addresses = [f"127.0.0.1:{it.events('admin_listening')[0]['port']}" for it in (first, second)]
            async with asyncio.timeout(60):
                while True:
                    found = await top(*addresses)
                    classes = found["classes"].values()
                    if sum(one["confirmed"] for one in classes) == 100 and not sum(one["lag"] for one in classes):
                        break
            assert [one["address"] for one in found["replicas"]] == addresses
            assert len({one["instance"] for one in found["replicas"]}) == 2
            assert len(found["routes"]) == 2
            assert [one["name"] for one in found["types"]] == [topic]
            assert found["answers"]["late"].startswith("Nothing")
            assert await second.stop() == 0
            assert await first.stop() == 0
