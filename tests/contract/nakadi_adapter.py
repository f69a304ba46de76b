"""What the contract tests need of Nakadi: hands on a scripted one that is served by HTTP.

Its events are JSON objects. So what a test produces goes in wrapped, and what the log hands out is unwrapped again:
all but the wrapping is the adapter's, and what the adapter makes of an event is tested apart.
"""

import base64
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Self

from proxy.bridge.event_log import EventLog
from proxy.model import Event, Partition
from proxy.nakadi_log import NakadiLog
from proxy.settings import LogSettings
from tests.contract.log_adapters import LIMITS
from tests.nakadi.bus import Bus
from tests.nakadi.face import Face, serve
from tests.nakadi.mischief import Mischief

_METADATA = {"occurred_at": "2023-11-14T22:13:20.000Z", "eid": "3ec4fb24-5f6b-4f0a-b4a1-0d1b1c8b7a10"}


class UnwrappingLog(NakadiLog):
    """Hands out what was produced, as it was."""

    async def poll(self, wait: float) -> Mapping[Partition, list[Event]]:
        fetched = await super().poll(wait)
        return {at: [_unwrapped(event) for event in events] for at, events in fetched.items()}


def _unwrapped(event: Event) -> Event:
    assert event.value is not None
    value = base64.b64decode(json.loads(event.value)["value"])
    return event._replace(value=value, size=len(value))


class NakadiWorld:
    """A scripted Nakadi that keeps to the rules."""

    def __init__(self, bus: Bus, url: str) -> None:
        self.bus = bus
        self.url = url

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Self]:
        bus = Bus(Random(7))
        runner, (host, port) = await serve(Face(bus, time.time, Mischief(Random(7), {})), "127.0.0.1", 0)
        try:
            yield cls(bus, f"http://{host}:{port}")
        finally:
            await runner.cleanup()

    @staticmethod
    def now() -> float:
        """The bus's clock."""
        return time.time()

    def log(self, group: str, **settings: Any) -> EventLog:
        settings.pop("metadata_age", None)
        nakadi = {
            "url": self.url,
            "owning_application": "tests",
            "consumer_group": group,
            "commit_timeout": 10,
            "batch_events": 1,
        }
        nakadi |= settings.pop("nakadi", {})
        chosen = {"nakadi": nakadi, "session_timeout": 1.0, "answer_deadline": 5.0} | settings
        first_window = chosen.pop("first_window", LIMITS.uncommitted_events)  # tests read much and commit late
        chosen["session_timeout"] = min(chosen["session_timeout"], 2.0)
        return UnwrappingLog(LogSettings.model_validate(chosen), LIMITS, first_window=first_window)

    async def create(self, topic: str, partitions: int = 1) -> None:
        if topic in self.bus.event_types:
            self.bus.repartition(topic, partitions)
        else:
            self.bus.create(topic, partitions, created_at=time.time())

    async def delete(self, topic: str) -> None:
        self.bus.delete(topic)

    async def recreate(self, topic: str) -> None:
        raise AssertionError(f"{topic} is subscribed to and can't be deleted")

    async def produce(self, topic: str, values: Sequence[bytes], number: int = 0) -> None:
        events = [
            json.dumps({"metadata": _METADATA, "value": base64.b64encode(value).decode()}).encode() for value in values
        ]
        self.bus.append(topic, number, events, time.time())

    async def leave_gap(self, topic: str, number: int = 0) -> int:
        """Use up numbers, as another timeline of Kafka's topic does."""
        self.bus.event_type(topic).partitions[number].leave_gap(4)
        return 4

    async def truncate(self, topic: str, number: int, before: int) -> None:
        self.bus.event_type(topic).partitions[number].truncate(before)

    async def fence(self, log: EventLog, group: str) -> None:
        """End every stream of the group as Nakadi does with one that doesn't commit, and forget it."""
        assert isinstance(log, NakadiLog)
        for found in self.bus.subscriptions.values():
            if found.consumer_group == group:
                for stream in list(found.streams.values()):
                    stream.last_commit_at = -1e12
                    found.close(stream, "Commit timed out", time.time())
