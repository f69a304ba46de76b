"""Interventions asked of one replica over HTTP, on real brokers: all obey, and one that was killed is named."""

import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from load.stack import Stack
from tests.support.tidegate import Ends, Tidegate, until

pytestmark = pytest.mark.timeout(180)


async def asked(replica: Tidegate, method: str, path: str, **parts: Any) -> tuple[int, Any]:
    address = f"http://127.0.0.1:{replica.events('admin_listening')[0]['port']}"
    async with aiohttp.ClientSession(address) as client, client.request(method, path, **parts) as answer:
        return answer.status, await answer.json()


async def test_three_replicas_obey_whichever_is_asked_and_the_killed_one_is_named(stack: Stack, tmp_path: Path) -> None:
    async with Ends.open(stack) as ends:
        held, flows = await ends.topic(".held", partitions=3), await ends.topic(".flows", partitions=3)
        queue = await ends.queue()
        settings = ends.settings({held: {"routing_key": queue}, flows: {"routing_key": queue}})
        settings["log"]["session_timeout"] = "20s"  # the killed one is a member for longer than is waited for answers
        pause = {"mode": "pause", "type": held, "for": "10m", "why": "a flood", "who": "ann"}
        with (
            Tidegate(tmp_path, settings) as first,
            Tidegate(tmp_path, settings) as second,
            Tidegate(tmp_path, settings) as third,
        ):
            for replica in (first, second, third):
                await replica.ready()
            status, told = await asked(first, "POST", "/interventions", json=pause)
            assert (status, len(told["replicas"]), told["silent"]) == (201, 3, []), told
            for topic in (held, flows):
                for partition in range(3):
                    await ends.produce(topic, [topic.encode()] * 50, partition=partition)
            assert {message.body for message in await ends.receive(queue, 150)} == {flows.encode()}
            await until(lambda: ends.all_committed(flows, 3, 150))
            for replica in (first, second, third):
                begun = replica.events("intervention_begun")
                assert [(its["id"], its["by"], its["why"]) for its in begun] == [
                    (told["id"], "127.0.0.1: ann", "a flood")
                ]
            status, listed = await asked(third, "GET", "/interventions")
            assert [one["id"] for one in listed["interventions"]] == [told["id"]]

            second.process.kill()
            status, ended = await asked(third, "DELETE", f"/interventions/{told['id']}", params={"who": "bob"})
            assert (status, len(ended["silent"]), len(ended["replicas"])) == (200, 1, 3), ended
            assert {message.body for message in await ends.receive(queue, 150)} == {held.encode()}
            assert await third.stop() == 0
            assert await first.stop() == 0


async def test_two_replicas_together_stay_within_a_cap_and_go_on_when_it_is_taken_back(
    stack: Stack, tmp_path: Path
) -> None:
    rate, events = 40.0, 1_200
    async with Ends.open(stack) as ends:
        capped, flows = await ends.topic(".capped", partitions=4), await ends.topic(".flows")
        slow, queue = await ends.queue(".slow"), await ends.queue()
        settings = ends.settings({capped: {"routing_key": slow}, flows: {"routing_key": queue}})
        with Tidegate(tmp_path, settings) as first, Tidegate(tmp_path, settings) as second:
            for replica in (first, second):
                await replica.ready()
            body = {"mode": "cap", "type": capped, "rate": rate, "for": "10m"}
            status, told = await asked(first, "POST", "/interventions", json=body)
            assert (status, len(told["replicas"]), told["silent"]) == (201, 2, []), told
            for partition, many in enumerate((events // 2, events // 2, 0, 0)):
                await ends.produce(capped, [b"c"] * many, partition=partition)
            await ends.produce(flows, [b"f"] * 2_000)
            assert len(await ends.receive(queue, 2_000)) == 2_000  # what no cap means waits for none
            # What has come meanwhile would count as quick.
            taken = len(await ends.receive(slow, max(40, await ends.depth(slow))))
            begun = time.monotonic()
            more = len(await ends.receive(slow, 200))
            taken += more
            assert more / (time.monotonic() - begun) < 1.25 * rate  # without it, all of them are there by now
            status, _ = await asked(second, "DELETE", f"/interventions/{told['id']}")
            assert status == 200
            begun = time.monotonic()
            await ends.receive(slow, events - taken)
            assert (events - taken) / (time.monotonic() - begun) > 1.25 * rate
            assert await first.stop() == 0
            assert await second.stop() == 0
