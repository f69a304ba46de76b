"""The consumer that docs/guarantees.md shows does what it says."""

import asyncio
import importlib.util
import sqlite3
from pathlib import Path
from uuid import uuid4

import aio_pika
import pytest
from aio_pika.abc import AbstractIncomingMessage
from pamqp.common import FieldTable

from load.stack import Stack
from tests.contract.lane_adapters import RabbitWorld
from tests.contract.log_adapters import until

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "consume_once.py"
_spec = importlib.util.spec_from_file_location("consume_once", EXAMPLE)
assert _spec is not None
assert _spec.loader is not None
example = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(example)


IN_BASE_36 = "loyw3v28"
"""1,700,000,000,000."""


def told(timestamp_ms: int) -> FieldTable:
    return {"tidegate-topic": "orders", "tidegate-timestamp": timestamp_ms}


async def test_each_event_is_worked_on_once_when_events_come_twice_and_the_work_fails_halfway(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failing = {"orders-0-3", "orders-0-7"}
    worked: list[str] = []

    def work(database: sqlite3.Connection, message: AbstractIncomingMessage) -> None:
        worked.append(str(message.message_id))
        database.execute("CREATE TABLE IF NOT EXISTS booked (event TEXT)")
        database.execute("INSERT INTO booked VALUES (?)", [message.message_id])
        if message.message_id in failing:
            failing.discard(str(message.message_id))
            raise RuntimeError("the work failed halfway")

    async with RabbitWorld.open(stack) as world:
        name = f"once.{uuid4().hex[:8]}"
        queue = await world.channel.declare_queue(name)
        ids = [f"orders-0-{number}" for number in range(20)]
        for event in [*ids, *ids[5:15], *ids]:
            message = aio_pika.Message(b"", message_id=event, headers=told(1_700_000_000_000))
            await world.channel.default_exchange.publish(message, name)
        # A new topic under the old name begins at offset 0 again: the timestamp tells its events from the old ones.
        anew = aio_pika.Message(b"", message_id="orders-0-0", headers=told(1_800_000_000_000))
        await world.channel.default_exchange.publish(anew, name)
        # A replica of before, and one of now, during an upgrade: each event comes by both.
        upgraded = [f"orders-0-{number}-{IN_BASE_36}" for number in (0, 19, 20)]
        for event in [*upgraded, *upgraded]:
            await world.channel.default_exchange.publish(aio_pika.Message(b"", message_id=event), name)
        await world.channel.default_exchange.publish(aio_pika.Message(b"", message_id="last-0-0-"), name)

        async def consume() -> None:
            while True:  # as whoever runs it would: it ends when its work fails
                try:
                    await example.consume_once(stack.amqp, name, work)
                except RuntimeError:
                    continue

        consuming = asyncio.create_task(consume())
        try:
            await until(lambda: worked[-1:] == ["last-0-0-"])
        finally:
            consuming.cancel()
            await asyncio.gather(consuming, return_exceptions=True)
            await queue.delete(if_unused=False, if_empty=False)
    assert not failing
    assert [worked.count(event) for event in ("orders-0-2", "orders-0-3", "orders-0-7")] == [1, 2, 2]
    with sqlite3.connect(tmp_path / "done.sqlite") as database:
        booked = [event for (event,) in database.execute("SELECT event FROM booked ORDER BY rowid")]
    assert booked == [*ids, "orders-0-0", f"orders-0-20-{IN_BASE_36}", "last-0-0-"]
