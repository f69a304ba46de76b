"""A consumer that does each event's work once, although at-least-once delivery may bring it twice."""

import sqlite3
from collections.abc import Callable

import aio_pika
from aio_pika.abc import AbstractIncomingMessage


def name_of(message: AbstractIncomingMessage) -> str:
    """Return one name for an event, by whichever `origin` its message came: during an upgrade it may come by both."""
    if "tidegate-topic" in message.headers:
        return f"{message.message_id} {message.headers.get('tidegate-timestamp')}"
    place, _, stamp = (message.message_id or "").rpartition("-")
    return f"{place} {int(stamp, 36) if stamp else None}"


async def consume_once(
    url: str, queue: str, work: Callable[[sqlite3.Connection, AbstractIncomingMessage], None]
) -> None:
    """Consume until cancelled; `work` writes into the database it is given, which also remembers what was done."""
    database = sqlite3.connect("done.sqlite")
    database.execute("CREATE TABLE IF NOT EXISTS done (event TEXT PRIMARY KEY) WITHOUT ROWID")
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=10)
        async with (await channel.get_queue(queue, ensure=False)).iterator() as messages:
            async for message in messages:
                event = name_of(message)
                async with message.process(requeue=True):
                    with database:  # one transaction: the work and the memory of it, or neither
                        new = database.execute("INSERT OR IGNORE INTO done VALUES (?)", [event]).rowcount
                        if new:
                            work(database, message)
