"""Ten minutes to the first event: a topic and a queue, one event into Kafka, and the message that comes out.

python first_event.py prepare   makes the topic order-confirmed and the queue orders
python first_event.py send      writes an event into Kafka
python first_event.py receive   waits for the message in RabbitMQ, 30 s at most
"""

import asyncio
import contextlib
import os
import sys

import aio_pika
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAlreadyExistsError

KAFKA = os.environ.get("KAFKA", "localhost:9092")
AMQP = os.environ.get("AMQP", "amqp://guest:guest@localhost:5672/")
TOPIC, QUEUE = "order-confirmed", "orders"


async def prepare() -> None:
    """Make what Tidegate expects to be there: it creates neither topics nor, unless told so, queues."""
    admin = AIOKafkaAdminClient(bootstrap_servers=KAFKA)
    await admin.start()
    with contextlib.suppress(TopicAlreadyExistsError):
        await admin.create_topics([NewTopic(TOPIC, num_partitions=3, replication_factor=1)])
    await admin.close()
    async with await aio_pika.connect(AMQP) as connection:
        channel = await connection.channel()
        for name in (QUEUE, f"{QUEUE}.dead"):
            await channel.declare_queue(name, durable=True)


async def send() -> None:
    """Write one event."""
    async with AIOKafkaProducer(bootstrap_servers=KAFKA) as producer:
        await producer.send_and_wait(TOPIC, b'{"order": 4711}', key=b"customer-7")


async def receive() -> None:
    """Print the message and take it off the queue."""
    async with await aio_pika.connect(AMQP) as connection:
        queue = await (await connection.channel()).get_queue(QUEUE)
        async with asyncio.timeout(30), queue.iterator() as messages:
            async for message in messages:
                async with message.process():
                    sys.stdout.write(f"{message.message_id} {message.body.decode()} {dict(message.headers)}\n")
                break


if __name__ == "__main__":
    asyncio.run({"prepare": prepare, "send": send, "receive": receive}[sys.argv[1]]())
