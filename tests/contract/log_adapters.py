"""What the contract tests need of a log beyond the protocol: hands on the log itself, once in memory, once on Kafka."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Protocol, Self
from uuid import uuid4

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.group import LeaveGroupRequest

from proxy.bridge.event_log import Beginning, EventLog
from proxy.bridge.move import Moved
from proxy.kafka_log import KafkaLog
from proxy.model import Event, Partition, Position
from proxy.settings import Limits, LogSettings
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog
from tests.wire.kafka.cluster import ScriptedCluster
from tests.wire.kafka.node import Node

LIMITS = Limits(commit_deadline=5.0, drain_deadline=2.0)
DEADLINE = 20.0
"""Seconds within which every awaited state must come about."""


class Owner:
    """Keeps what the log tells, hands out what a test wants committed at a revocation."""

    def __init__(self) -> None:
        self.owned: set[Partition] = set()
        self.assignments: list[set[Partition]] = []
        self.revocations: list[set[Partition]] = []
        self.paused: Collection[Partition] = ()
        self.final: dict[Partition, Position] = {}
        self.lost: list[tuple[Partition, int]] = []
        self.first_left: list[int] = []
        self.passed: list[Partition] = []
        self.beginnings: list[tuple[Partition, Beginning]] = []
        self.ended: list[Mapping[Partition, int]] = []
        self.moving: list[set[Partition]] = []
        self.moved: list[Moved] = []
        self.received: dict[Partition, list[Event]] = {}
        self.revoking: asyncio.Event | None = None

    def on_assigned(self, partitions: Collection[Partition]) -> Collection[Partition]:
        self.owned |= set(partitions)
        self.assignments.append(set(partitions))
        return self.paused

    async def on_revoked(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        if self.revoking is not None:
            await self.revoking.wait()
        self.owned -= set(partitions)
        self.revocations.append(set(partitions))
        return {partition: position for partition, position in self.final.items() if partition in partitions}

    def on_begun(self, partition: Partition, beginning: Beginning) -> None:
        self.beginnings.append((partition, beginning))

    async def on_moving(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        self.moving.append(set(partitions))
        return {partition: position for partition, position in self.final.items() if partition in partitions}

    def on_moved(self, moved: Moved) -> None:
        self.moved.append(moved)

    def on_ended(self, taken: Mapping[Partition, int]) -> None:
        self.ended.append(taken)

    def on_passed(self, partition: Partition) -> None:
        self.passed.append(partition)

    def on_truncated(self, partition: Partition, at_most: int, first: int) -> None:
        self.lost.append((partition, at_most))
        self.first_left.append(first)

    def take(self, fetched: Mapping[Partition, list[Event]]) -> None:
        """Receive what a poll returned; all of it must belong to what is owned."""
        assert set(fetched) <= self.owned
        for partition, events in fetched.items():
            self.received.setdefault(partition, []).extend(events)

    def values(self, partition: Partition) -> list[bytes | None]:
        return [event.value for event in self.received.get(partition, [])]

    def finish(self) -> dict[Partition, Position]:
        """Declare everything received done with, now and at a revocation."""
        self.final = {partition: events[-1].position for partition, events in self.received.items() if events}
        return dict(self.final)


class World(Protocol):
    """One log, and what a test does to it."""

    def log(self, group: str, **settings: Any) -> EventLog: ...

    async def create(self, topic: str, partitions: int = 1) -> None: ...

    async def delete(self, topic: str) -> None: ...

    async def recreate(self, topic: str) -> None:
        """Delete a topic of one partition and make it anew at once, before anybody looks."""
        ...

    async def produce(self, topic: str, values: Sequence[bytes], number: int = 0) -> None: ...

    async def leave_gap(self, topic: str, number: int = 0) -> int:
        """Use up offsets without leaving an event there; return how many."""
        ...

    async def truncate(self, topic: str, number: int, before: int) -> None: ...

    async def fence(self, log: EventLog, group: str) -> None: ...


class MemoryWorld:
    def __init__(self) -> None:
        self.cluster = MemoryCluster(Random(7), fetch_events=50)

    def log(self, group: str, **settings: Any) -> EventLog:
        chosen = {"hosts": ["memory:9092"], "group": group, "session_timeout": 1.0} | settings
        return MemoryLog(self.cluster, LogSettings.model_validate(chosen), LIMITS, name=f"member-{uuid4()}")

    async def create(self, topic: str, partitions: int = 1) -> None:
        self.cluster.create_topic(topic, partitions)

    async def delete(self, topic: str) -> None:
        self.cluster.delete_topic(topic)

    async def recreate(self, topic: str) -> None:
        self.cluster.recreate_topic(topic, 1)

    async def produce(self, topic: str, values: Sequence[bytes], number: int = 0) -> None:
        for value in values:
            self.cluster.produce(topic, number, value=value, timestamp_ms=1_700_000_000_000)

    async def leave_gap(self, topic: str, number: int = 0) -> int:
        self.cluster.leave_gap(topic, number, 4)
        return 4

    async def truncate(self, topic: str, number: int, before: int) -> None:
        self.cluster.truncate(topic, number, before)

    async def fence(self, log: EventLog, group: str) -> None:
        assert isinstance(log, MemoryLog)
        self.cluster.group(group).leave(log._name)


class ScriptedWorld(MemoryWorld):
    """Kafka's client against a cluster of three brokers that is scripted."""

    cluster: ScriptedCluster

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Self]:
        world = cls()
        cluster = world.cluster = ScriptedCluster(Random(7), [("127.0.0.1", 0)] * 3)
        nodes = [Node(number, cluster) for number in cluster.addresses]
        servers = [await asyncio.start_server(node.serve, "127.0.0.1", 0) for node in nodes]
        for node, server in zip(nodes, servers, strict=True):
            cluster.advertised[node.number] = server.sockets[0].getsockname()[:2]
        try:
            yield world
        finally:
            for node, server in zip(nodes, servers, strict=True):
                server.close()
                await node.close()
            cluster.close()

    def log(self, group: str, **settings: Any) -> EventLog:
        hosts = [f"{host}:{port}" for host, port in self.cluster.advertised.values()]
        chosen = {"hosts": hosts, "group": group, "session_timeout": 1.0, "metadata_age": 0.3} | settings
        return KafkaLog(LogSettings.model_validate(chosen), LIMITS)

    async def fence(self, log: EventLog, group: str) -> None:
        assert isinstance(log, KafkaLog)
        self.cluster.group(group).leave(log._consumer._coordinator.member_id)


class KafkaWorld:
    def __init__(self, host: str) -> None:
        self.host = host
        self.admin = AIOKafkaAdminClient(bootstrap_servers=host)
        self.producer = AIOKafkaProducer(bootstrap_servers=host, linger_ms=5)

    @classmethod
    @asynccontextmanager
    async def open(cls, host: str) -> AsyncIterator[Self]:
        world = cls(host)
        await world.admin.start()
        await world.producer.start()
        try:
            yield world
        finally:
            await world.producer.stop()
            await world.admin.close()

    def log(self, group: str, **settings: Any) -> EventLog:
        chosen = {"hosts": [self.host], "group": group, "session_timeout": 2.0, "metadata_age": 0.5} | settings
        return KafkaLog(LogSettings.model_validate(chosen), LIMITS)

    async def create(self, topic: str, partitions: int = 1) -> None:
        there = await self.admin.list_topics()
        if topic in there:
            answer = await self.admin.create_partitions({topic: NewPartitions(partitions)})
            assert not any(error for _, error, _ in answer.topic_errors), answer
        else:
            answer = await self.admin.create_topics([NewTopic(topic, partitions, 1)])
            assert not any(error for _, error, _ in answer.topic_errors), answer

        async def is_known() -> bool:
            self.producer.client.add_topic(topic)
            await self.producer.client.force_metadata_update()
            return len(self.producer.client.cluster.partitions_for_topic(topic) or ()) == partitions

        await until(is_known)

    async def delete(self, topic: str) -> None:
        await self.admin.delete_topics([topic])

    async def recreate(self, topic: str) -> None:
        await self.delete(topic)

        async def is_created() -> bool:
            answer = await self.admin.create_topics([NewTopic(topic, 1, 1)])
            return not any(error for _, error, _ in answer.topic_errors)

        await until(is_created)

    async def produce(self, topic: str, values: Sequence[bytes], number: int = 0) -> None:
        sent = [
            await self.producer.send(topic, value, partition=number, timestamp_ms=1_700_000_000_000) for value in values
        ]
        await asyncio.gather(*sent)

    async def leave_gap(self, topic: str, number: int = 0) -> int:
        """Abort a transaction: three records and the marker of its end."""
        async with AIOKafkaProducer(bootstrap_servers=self.host, transactional_id=f"gap-{uuid4()}") as producer:
            await producer.begin_transaction()
            for _ in range(3):
                await producer.send_and_wait(topic, b"never seen", partition=number)
            await producer.abort_transaction()
        return 4

    async def truncate(self, topic: str, number: int, before: int) -> None:
        await self.admin.delete_records({TopicPartition(topic, number): RecordsToDelete(before)})

    async def fence(self, log: EventLog, group: str) -> None:
        """Take the member out of its group behind its back."""
        assert isinstance(log, KafkaLog)
        client = AIOKafkaClient(bootstrap_servers=self.host)
        await client.bootstrap()
        try:
            node = await client.coordinator_lookup(0, group)
            answer = await client.send(node, LeaveGroupRequest(group, log._consumer._coordinator.member_id))
            assert answer.error_code == 0
        finally:
            await client.close()


async def poll_until(log: EventLog, owner: Owner, is_enough: Callable[[], bool]) -> None:
    """Poll, handing everything to the owner, until the condition holds."""
    async with asyncio.timeout(DEADLINE):
        while not is_enough():
            owner.take(await log.poll(0.05))


async def until(is_so: Callable[[], bool | Awaitable[bool]]) -> None:
    """Look until the condition holds."""
    async with asyncio.timeout(DEADLINE):
        while True:
            found = is_so()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.02)


async def receive(log: EventLog, owner: Owner, count: int) -> None:
    """Poll until the owner has received so many events in all."""
    await poll_until(log, owner, lambda: sum(map(len, owner.received.values())) >= count)
