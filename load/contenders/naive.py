"""The loop that everybody writes first: poll 500, publish them together, await all confirms, commit.

It is given what helps it: uvloop, the fetch settings of the bridge, no headers to carry.
"""

import argparse
import asyncio
import sys

import uvloop
from aio_pika import DeliveryMode, Message, connect_robust
from aiokafka import AIOKafkaConsumer

GATHERED = 500


async def bridge(kafka: str, amqp: str, topic: str, group: str, queue: str, events: int) -> None:
    """Move `events` events from the topic into the queue."""
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=kafka, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest",
        fetch_max_wait_ms=50, session_timeout_ms=6000, heartbeat_interval_ms=2000,
    )  # fmt: skip
    connection = await connect_robust(amqp)
    async with connection:
        exchange = (await connection.channel()).default_exchange
        await consumer.start()
        try:
            moved = 0
            while moved < events:
                fetched = await consumer.getmany(max_records=GATHERED, timeout_ms=100)
                records = [record for records in fetched.values() for record in records]
                await asyncio.gather(
                    *(
                        exchange.publish(
                            Message(
                                record.value,
                                delivery_mode=DeliveryMode.PERSISTENT,
                                message_id=f"{topic}-{record.partition}-{record.offset}",
                            ),
                            routing_key=queue,
                        )
                        for record in records
                    )
                )
                if records:
                    await consumer.commit()
                moved += len(records)
        finally:
            await consumer.stop()


def main() -> int:
    """Run the loop as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m load.contenders.naive", description=__doc__)
    for name in ("kafka", "amqp", "topic", "group", "queue"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--events", type=int, required=True)
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(bridge(options.kafka, options.amqp, options.topic, options.group, options.queue, options.events))
    return 0


if __name__ == "__main__":
    sys.exit(main())
