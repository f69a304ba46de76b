"""What the proofs ask of Kafka beside producing: topics, and how far a group has committed."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

SECONDS = 15.0
"""How long one answer may take."""
TOPICS_AT_ONCE = 100
POLL_SECONDS = 0.1
POLL_MS = 200
READ_SECONDS = 300.0
"""How long a topic may take that is read to its end."""


class KafkaView:
    """An administrator's connection, as a context manager. Every method raises KafkaError."""

    def __init__(self, kafka: str, replication: int = 1) -> None:
        self._replication = replication
        # Its warnings tell of a coordinator in the making or a broker being restarted: both are expected here.
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
        self._admin = AIOKafkaAdminClient(
            bootstrap_servers=kafka, request_timeout_ms=int(SECONDS * 1000), metadata_max_age_ms=1000
        )

    async def __aenter__(self) -> Self:
        """Connect."""
        try:
            await self._admin.start()
        except BaseException:
            await self._admin.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self._admin.close()

    async def create(self, topic: str, partitions: int) -> None:
        """Create a topic, on as many nodes as was said. Raises TopicAlreadyExistsError if there is one."""
        answer = await self._admin.create_topics([NewTopic(topic, partitions, self._replication)])
        for _, code, message in answer.topic_errors:
            if code:
                error = for_code(code)
                raise error(message) if error is not TopicAlreadyExistsError else TopicAlreadyExistsError(topic)

    async def create_all(self, topics: Sequence[str], partitions: int, settings: Mapping[str, str]) -> None:
        """Create topics with these settings, a hundred in one request."""
        for first in range(0, len(topics), TOPICS_AT_ONCE):
            some = [
                NewTopic(topic, partitions, self._replication, topic_configs=dict(settings))
                for topic in topics[first : first + TOPICS_AT_ONCE]
            ]
            for topic, code, message in (await self._admin.create_topics(some)).topic_errors:
                if code:
                    raise for_code(code)(f"{topic}: {message}")

    async def await_led(self, topics: Sequence[str], seconds: float) -> None:
        """Return once every partition of the topics has a leader; thousands take a node longer to make than to promise.

        Raises TimeoutError.
        """
        async with asyncio.timeout(seconds):
            left = list(topics)
            while left:
                found = await self._admin.describe_topics(left[:TOPICS_AT_ONCE])
                led = {one["topic"] for one in found if _is_led(one)}
                left = [topic for topic in left if topic not in led]
                if not led:
                    await asyncio.sleep(POLL_SECONDS)

    async def delete(self, topic: str) -> None:
        """Delete a topic."""
        answer = await self._admin.delete_topics([topic])
        for _, code in answer.topic_error_codes:
            if code:
                raise for_code(code)(topic)

    async def grow(self, topic: str, partitions: int) -> None:
        """Give a topic so many partitions in all."""
        await self._admin.create_partitions({topic: NewPartitions(partitions)})

    async def truncate(self, topic: str, before: Mapping[int, int]) -> None:
        """Drop what lies before these offsets, by partition."""
        await self._admin.delete_records(
            {TopicPartition(topic, number): RecordsToDelete(offset) for number, offset in before.items()}
        )

    async def leaders(self, topic: str) -> dict[int, tuple[int, list[int], list[int]]]:
        """Return for each partition its leader, the nodes that keep it, and those in sync; nodes by their ids."""
        (found,) = await self._admin.describe_topics([topic])
        return {one["partition"]: (one["leader"], one["replicas"], one["isr"]) for one in found["partitions"]}

    async def coordinator(self, group: str) -> int:
        """Return the id of the node that coordinates a group."""
        return int(await self._admin.find_coordinator(group))

    async def is_stable(self, group: str) -> bool:
        """Return whether the group has members, and all of them know what is theirs."""
        (answer,) = await self._admin.describe_consumer_groups([group])
        return bool(answer.groups[0][2] == "Stable")

    async def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return the committed offset of each partition that the group has committed."""
        return {at: offset for at, (offset, _) in (await self.marks(group)).items()}

    async def marks(self, group: str) -> dict[tuple[str, int], tuple[int, str]]:
        """Return the committed offset of each partition with what was committed beside it."""
        offsets = await self._admin.list_consumer_group_offsets(group)
        return {(at.topic, at.partition): (found.offset, found.metadata) for at, found in offsets.items()}

    async def notes(self, group: str) -> dict[tuple[str, int], str]:
        """Return what was committed beside each offset: Tidegate says there to which topic it belongs."""
        return {at: note for at, (_, note) in (await self.marks(group)).items()}


def _is_led(found: Mapping[str, Any]) -> bool:
    return not found["error_code"] and all(one["leader"] >= 0 for one in found["partitions"])


async def contents(
    kafka: str, topic: str, partitions: int, read: Callable[[bytes], int]
) -> tuple[dict[int, dict[int, int]], dict[int, int]]:
    """Read a topic to its end; return what `read` makes of the value at each position, and the ends, by partition.

    Raises KafkaError, and TimeoutError if it does not come to its end.
    """
    places = [TopicPartition(topic, number) for number in range(partitions)]
    found: dict[int, dict[int, int]] = {place.partition: {} for place in places}
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka, enable_auto_commit=False)
    try:
        async with asyncio.timeout(READ_SECONDS):
            await consumer.start()
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            ends = await consumer.end_offsets(places)
            for place, end in ends.items():
                while await consumer.position(place) < end:
                    for at, records in (await consumer.getmany(timeout_ms=POLL_MS)).items():
                        found[at.partition] |= {record.offset: read(record.value) for record in records}
        return found, {place.partition: end for place, end in ends.items()}
    finally:
        await consumer.stop()


async def commit(kafka: str, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Let a group that nobody is in begin at these offsets. Raises KafkaError."""
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka, group_id=group, enable_auto_commit=False)
    consumer.assign([TopicPartition(*at) for at in offsets])
    await consumer.start()
    try:
        await consumer.commit({TopicPartition(*at): offset for at, offset in offsets.items()})
    finally:
        await consumer.stop()


async def await_committed(kafka: str, group: str, ends: Mapping[tuple[str, int], int], seconds: float) -> None:
    """Wait until the group has committed each partition to its end. Raises KafkaError if not within `seconds`."""
    deadline = time.monotonic() + seconds
    async with KafkaView(kafka) as view:
        while True:
            committed = await view.committed(group)
            if all(committed.get(at) == end for at, end in ends.items()):
                return
            if time.monotonic() > deadline:
                raise KafkaError(f"group {group} has not committed everything after {seconds:.0f} s: {committed}")
            await asyncio.sleep(POLL_SECONDS)


__all__ = ["KafkaError", "KafkaView", "await_committed", "commit", "contents"]
