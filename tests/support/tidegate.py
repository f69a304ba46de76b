"""A real Tidegate process on the real stack, and the two ends it connects."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import aio_pika
import yaml
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from load.stack import Stack

DEADLINE = 30.0


async def until(is_so: Callable[[], Any], *, deadline: float = DEADLINE) -> Any:
    """Await a state, looking often; return what was truthy. `is_so` may be a coroutine function."""
    end = time.monotonic() + deadline
    while not (found := await _now(is_so)):
        if time.monotonic() > end:
            raise AssertionError(f"not so within {deadline} s")
        await asyncio.sleep(0.02)
    return found


async def _now(is_so: Callable[[], Any]) -> Any:
    found = is_so()
    return await found if asyncio.iscoroutine(found) else found


class Ends:
    """Both brokers, as producers and consumers see them; every name is this test's own."""

    def __init__(self, stack: Stack, producer: AIOKafkaProducer, channel: AbstractChannel) -> None:
        self.stack = stack
        self.name = f"t{uuid.uuid4().hex[:10]}"
        self.producer = producer
        self.channel = channel

    @classmethod
    @asynccontextmanager
    async def open(cls, stack: Stack) -> AsyncIterator[Self]:
        """Connect to both."""
        producer = AIOKafkaProducer(bootstrap_servers=stack.kafka, linger_ms=2)
        await producer.start()
        connection = await aio_pika.connect(stack.amqp)
        try:
            yield cls(stack, producer, await connection.channel())
        finally:
            await connection.close()
            await producer.stop()

    async def topic(self, suffix: str = "", partitions: int = 1, **configs: str) -> str:
        """Create a topic with settings of its own; their names have _ for the dot."""
        name = f"{self.name}{suffix}"
        admin = AIOKafkaAdminClient(bootstrap_servers=self.stack.kafka)
        await admin.start()
        try:
            chosen = {key.replace("_", "."): value for key, value in configs.items()}
            await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=chosen)])
        finally:
            await admin.close()
        return name

    async def queue(self, suffix: str = "", **arguments: Any) -> str:
        """Declare a durable queue."""
        name = f"{self.name}{suffix}.q"
        await self.channel.declare_queue(name, durable=True, arguments=arguments or None)
        return name

    async def produce(self, topic: str, values: Sequence[bytes], *, partition: int | None = None) -> None:
        """Write values in order."""
        futures = [await self.producer.send(topic, value, partition=partition) for value in values]
        await asyncio.gather(*futures)

    async def receive(self, queue: str, count: int, *, deadline: float = DEADLINE) -> list[AbstractIncomingMessage]:
        """Take `count` messages from a queue, in order."""
        found: list[AbstractIncomingMessage] = []
        enough = asyncio.Event()

        async def on_message(message: AbstractIncomingMessage) -> None:
            found.append(message)
            if len(found) >= count:
                enough.set()

        consumed = await self.channel.declare_queue(queue, passive=True)
        tag = await consumed.consume(on_message, no_ack=True)
        try:
            async with asyncio.timeout(deadline):
                await enough.wait()
        except TimeoutError:
            raise AssertionError(f"{len(found)} of {count} messages within {deadline} s") from None
        finally:
            await consumed.cancel(tag)
        return found

    async def depth(self, queue: str) -> int:
        """Return how many messages wait."""
        connection = await aio_pika.connect(self.stack.amqp)
        async with connection:
            declared = await (await connection.channel()).declare_queue(queue, passive=True)
            return int(declared.declaration_result.message_count or 0)

    async def all_committed(self, topic: str, partitions: int, total: int) -> bool:
        """Return whether this test's group has committed `total` events."""
        return sum([await self.committed(topic, partition) or 0 for partition in range(partitions)]) >= total

    async def committed(self, topic: str, partition: int = 0) -> int | None:
        """Return the offset committed by this test's group."""
        consumer = AIOKafkaConsumer(bootstrap_servers=self.stack.kafka, group_id=self.name, enable_auto_commit=False)
        await consumer.start()
        try:
            offset: int | None = await consumer.committed(TopicPartition(topic, partition))
        finally:
            await consumer.stop()
        return offset

    def settings(self, types: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """Return settings for this test: one route through the default exchange unless `changes` say otherwise."""
        return {
            "log": {"hosts": [self.stack.kafka], "group": self.name, "session_timeout": "6s"},
            "broker": {"hosts": [f"127.0.0.1:{self.stack.amqp_port}"]},
            "routes": {"main": {"exchange": "", "policy": "static"}},
            "defaults": {"route": "main", "class": "P1"},
            "event_types": types,
            "admin": {"listen": "127.0.0.1:0"},
            **changes,
        }


class Tidegate:
    """One `tidegate run` process."""

    def __init__(self, folder: Path, settings: dict[str, Any], *, python: Path = Path(sys.executable)) -> None:
        self.folder = folder
        self.log_path = folder / f"tidegate-{uuid.uuid4().hex[:6]}.log"
        self.config = folder / f"{self.log_path.stem}.yaml"
        self.write(yaml.safe_dump(settings))
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [str(python), "-m", "proxy", "run", "-c", str(self.config)],
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=os.environ | {"PYTHONDEVMODE": ""},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE)

    def write(self, text: str) -> None:
        """Put other settings into its file, as editors do: whole, and under its name in one step."""
        other = self.config.with_suffix(".new")
        other.write_text(text)
        other.rename(self.config)

    @property
    def said(self) -> list[dict[str, Any]]:
        """Return the whole log, a JSON object a line; anything else is a failure."""
        return [json.loads(line) for line in self.log_path.read_text().splitlines()]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what was logged under a name."""
        return [entry for entry in self.said if entry["event"] == name]

    async def ready(self) -> Self:
        """Wait until it moves data."""
        await until(self._is_ready)
        return self

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.log_path.read_text()
        listening = self.events("admin_listening")
        if not listening:
            return False
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{listening[0]['port']}/ready", timeout=2) as answer:
                return bool(json.loads(answer.read())["partitions"])
        except urllib.error.URLError:
            return False

    def metrics(self) -> dict[str, float]:
        """Return /metrics, by name with labels."""
        port = self.events("admin_listening")[0]["port"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}

    async def ended(self, *, deadline: float = DEADLINE) -> int:
        """Wait for its end; return the exit code."""
        await until(lambda: self.process.poll() is not None, deadline=deadline)
        return int(self.process.returncode)

    async def stop(self) -> int:
        """Ask for an orderly stop; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await self.ended()
