"""What flows in the incident: orders all along, a campaign at once, alerts; and the services that take them, slowly."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from aiokafka import AIOKafkaProducer

ORDERS = 20.0
"""A second, all along."""
NORMAL, SLOW = 150.0, 50.0
"""Events a second that the services take."""
AHEAD = 0.1
"""Seconds of work that the services may catch up."""
PREFETCH = 5


class Services:
    """Take one event after the other, `rate` a second, and remember which came when."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self.rate = NORMAL
        self.came: Counter[bytes] = Counter()
        """By the event's name, which is its body."""
        self.others = 0
        """Events that came and were no orders."""
        self.orders: dict[bytes, tuple[float, int]] = {}
        """When each order came, in seconds since 1970, and how many others had come by then."""

    async def run(self, amqp: str) -> None:
        """Take until cancelled."""
        connection = await aio_pika.connect(amqp)
        async with connection:
            channel = await connection.channel()
            await channel.set_qos(PREFETCH)
            queue = await channel.get_queue(self._queue)
            async with queue.iterator() as messages:
                due = 0.0
                async for message in messages:
                    now = time.monotonic()
                    due = max(due + 1 / self.rate, now - AHEAD)
                    await asyncio.sleep(max(0.0, due - now))
                    await message.ack()
                    self._take(message)

    def _take(self, message: AbstractIncomingMessage) -> None:
        self.came[message.body] += 1
        if message.body.startswith(b"order "):
            self.orders.setdefault(message.body, (time.time(), self.others))
        else:
            self.others += 1


class Orders:
    """Writes orders until it is stopped; remembers when each was written, and what had come by then."""

    def __init__(self, producer: AIOKafkaProducer, topic: str, services: Services) -> None:
        self._producer = producer
        self._topic = topic
        self._services = services
        self.written: dict[bytes, tuple[float, int]] = {}
        self._is_stopping = False

    def stop(self) -> None:
        """Write no more; one that is being written is still remembered, so `run` is not to be cancelled."""
        self._is_stopping = True

    async def run(self) -> None:
        """Write."""
        while not self._is_stopping:
            name = b"order %d" % len(self.written)
            await self._producer.send_and_wait(self._topic, name)
            self.written[name] = time.time(), self._services.others
            await asyncio.sleep(1 / ORDERS)

    def waits(self) -> tuple[list[float], list[int]]:
        """Return of each order that came how many seconds it took, and how many others came meanwhile."""
        both = [(self.written[name], came) for name, came in self._services.orders.items()]
        return [came[0] - wrote[0] for wrote, came in both], [came[1] - wrote[1] for wrote, came in both]


async def write(
    producer: AIOKafkaProducer, topic: str, kind: str, count: int, partitions: int, *, first: int = 0, age: float = 0.0
) -> list[bytes]:
    """Write events round the partitions, named by where they stand; return their names. They are `age` seconds old."""
    stamp = int((time.time() - age) * 1000)
    names = [b"%b %d-%d" % (kind.encode(), at % partitions, first + at // partitions) for at in range(count)]
    for name in names:
        partition = int(name.split()[1].split(b"-")[0])
        await producer.send(topic, name, partition=partition, timestamp_ms=stamp)
    await producer.flush()
    return names


def place(name: bytes) -> tuple[int, int]:
    """Return the partition and the offset of an event that `write` wrote."""
    partition, offset = name.split()[1].split(b"-")
    return int(partition), int(offset)


def quantile(times: Sequence[float], share: float) -> float:
    """Return that of the values, 0 if there are none."""
    return sorted(times)[int(share * (len(times) - 1))] if times else 0.0
