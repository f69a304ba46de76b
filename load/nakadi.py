"""What the demo asks of a Nakadi by HTTP: event types, events into their partitions, how far a group has committed."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import aiohttp

from load.sender import Answered, Record
from proxy.nakadi_log.offsets import place

SECONDS = 15.0
"""How long one answer may take."""
_MOST_SUBSCRIPTIONS = 1_000


class NakadiError(Exception):
    """Nakadi refused something, or does not answer."""


class NakadiView:
    """A client, as a context manager. Every method raises NakadiError."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def __aenter__(self) -> Self:
        """Connect."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self._session.close()

    async def create(self, name: str, partitions: int) -> None:
        """Make an event type whose producers say into which partition an event goes."""
        asked = {
            "name": name,
            "owning_application": "demo",
            "category": "business",
            "partition_strategy": "user_defined",
            "schema": {"type": "json_schema", "schema": "{}"},
            "default_statistic": {
                "messages_per_minute": 1,
                "message_size": 1,
                "read_parallelism": partitions,
                "write_parallelism": partitions,
            },
        }
        await self.ask("POST", "/event-types", json.dumps(asked).encode())

    async def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return the place before which all is committed, of each partition that a group reads."""
        found = {}
        told = await self.ask("GET", f"/subscriptions?limit={_MOST_SUBSCRIPTIONS}")
        for each in told["items"]:
            if each["consumer_group"] == group:
                cursors = await self.ask("GET", f"/subscriptions/{each['id']}/cursors")
                for item in cursors["items"]:
                    found[item["event_type"], int(item["partition"])] = place(item["offset"]) + 1
        return found

    async def publish(self, name: str, events: Sequence[bytes]) -> None:
        """Publish events, each one JSON object with its metadata, all or none of them."""
        await self.ask("POST", f"/event-types/{name}/events", b"[" + b",".join(events) + b"]")

    async def ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Return the JSON of an answer, None if it has none."""
        try:
            async with self._session.request(
                method, self._url + path, data=body, headers={"Content-Type": "application/json"}
            ) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NakadiError(f"Nakadi at {self._url} does not answer {method} {path}: {error}") from error
        if answer.status >= 300:
            raise NakadiError(f"Nakadi at {self._url} refuses {method} {path}: {answer.status} {text[:200]}")
        return json.loads(text) if text else None


class NakadiSender:
    """See `EventSender`; the only one who writes to its event types, so that it knows their offsets without asking."""

    def __init__(self, url: str) -> None:
        self._view = NakadiView(url)
        self._next: dict[tuple[str, int], int] = {}
        self._queues: dict[tuple[str, int], asyncio.Lock] = {}
        self._open: set[asyncio.Task[None]] = set()

    async def start(self, *_: str) -> None:
        """See `EventSender`."""
        await self._view.__aenter__()

    async def stop(self) -> None:
        """See `EventSender`."""
        await asyncio.gather(*self._open)
        await self._view.__aexit__(None, None, None)

    async def send(self, topic: str, partition: int, records: Sequence[Record], on_answer: Answered) -> None:
        """See `EventSender`; the records' values are JSON objects."""
        task = asyncio.create_task(self._send((topic, partition), list(records), on_answer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _send(self, at: tuple[str, int], records: list[Record], on_answer: Answered) -> None:
        async with self._queues.setdefault(at, asyncio.Lock()):  # who comes first goes first
            first = self._next.get(at, 0)
            events = [_event(at, first + number, record) for number, record in enumerate(records)]
            try:
                await self._view.publish(at[0], events)
            except NakadiError:
                on_answer(0, len(records), None)
                return
            self._next[at] = first + len(records)
            on_answer(0, len(records), first)


def _event(at: tuple[str, int], number: int, record: Record) -> bytes:
    occurred = datetime.fromtimestamp(record.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    metadata = {
        "eid": f"{at[0]}-{at[1]}-{number}",
        "occurred_at": occurred.replace("+00:00", "Z"),
        "partition": str(at[1]),
    }
    if record.key is not None:
        metadata["partition_compaction_key"] = record.key.decode()
    return b'{"metadata":' + json.dumps(metadata, separators=(",", ":")).encode() + b"," + record.value[1:]
