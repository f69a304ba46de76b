"""Notices of a whole process: to a real topic, and in a real flood."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from load.stack import Stack
from tests.support.tidegate import Ends, Tidegate

pytestmark = pytest.mark.timeout(180)


async def told_by(consumer: AIOKafkaConsumer) -> AsyncIterator[Any]:
    """Yield record by record. Not by `getone`: where other tests have taught the library our fetcher, it has none."""
    while True:
        for records in (await consumer.getmany(timeout_ms=1_000)).values():
            for record in records:
                yield record


async def test_start_and_end_of_an_episode_come_in_order_to_a_topic_when_consumers_go_and_return(
    stack: Stack, tmp_path: Path
) -> None:
    async with Ends.open(stack) as ends:
        topic, told, queue = await ends.topic(), await ends.topic(".notices"), await ends.queue()
        settings = ends.settings(
            {topic: {"class": "P3", "routing_key": queue}},
            routes={"main": {"exchange": "", "queues": [queue]}},
            notices={"topic": told, "after": "1s", "quiet": "3s"},
        )
        consumer = AIOKafkaConsumer(told, bootstrap_servers=stack.kafka, auto_offset_reset="earliest")
        await consumer.start()
        try:
            with Tidegate(tmp_path, settings) as tidegate:
                await tidegate.ready()
                await ends.produce(topic, [b"flood"] * 2_000)
                notices = told_by(consumer)
                first = await anext(notices)
                start = json.loads(first.value)
                assert first.key == b"main"
                assert (start["phase"], start["cause"], start["group"]) == ("start", "no_consumers", ends.name)
                await ends.receive(queue, 2_000, deadline=60)
                phases = {start["class"]: ["start"]}
                while phases.get("P3") != ["start", "end"]:
                    notice = json.loads((await anext(notices)).value)
                    phases.setdefault(notice["class"], []).append(notice["phase"])
                await ends.produce(topic, [b"flood"] * 2_000)
                notice = json.loads((await anext(notices)).value)
                assert notice["phase"] == "start", notice
                assert await tidegate.stop() == 0
                last = json.loads((await anext(notices)).value)
                assert (last["phase"], last["id"].split("/")[1]) == ("end", notice["id"].split("/")[1]), (
                    "no end is owed"
                )
        finally:
            await consumer.stop()
