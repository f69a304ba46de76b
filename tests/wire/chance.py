"""What the clients take of time, chance and threads, replaced in one place, so that a seed decides it.

Only names inside the clients' own modules are replaced; `asyncio` and the product use the loop's clock anyway.
`test_chance.py` fails when a client begins to use anything of this kind that is not listed here.
"""

import asyncio
import contextlib
import importlib
from collections.abc import Container, Iterable, Iterator, Mapping, MutableSet, Sequence
from random import Random
from time import gmtime
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from uuid import UUID

EPOCH = 1_700_000_000
"""What wall clocks show, in seconds since 1970, when the loop's shows 0."""
TIME = (
    "aiokafka.client",
    "aiokafka.cluster",
    "aiokafka.consumer.fetcher",
    "aiokafka.consumer.group_coordinator",
    "aiokafka.consumer.subscription_state",
    "aiokafka.conn",
    "aiormq.tools",
    "aiohttp.cookiejar",
    "aiohttp.helpers",
)
"""Modules that ask `time` for `time` or `monotonic`."""
RANDOM = ("aiokafka.client", "aiokafka.conn", "aiokafka.consumer.fetcher", "aiohttp.connector")
"""Modules that ask `random`."""
MONOTONIC = ("aiohttp.connector",)
"""Modules that took `monotonic` from `time`."""
UUID4 = ("aiokafka.conn",)
"""Modules that ask `uuid` for `uuid4`."""
GETRANDBITS = ("aiormq.channel",)
"""Modules that took `getrandbits` from `random`."""

CONSTANTS = ("proxy.publish_lane.home.INTERVAL", "proxy.rabbitmq.broker.MOST_CONNECTIONS")
"""What is longer or larger in the product than a history."""

SETS = (
    "aiokafka.cluster",
    "aiokafka.consumer.fetcher",
    "aiormq.base",
    "aio_pika.tools",
    "aiohttp.connector",
    "asyncio.tasks",
    "asyncio.taskgroups",
)
"""Modules that walk over sets of futures, tasks, callbacks, or of what holds a None (brokers without a rack).

Their order is that of addresses in memory.
"""


class OrderedSet(MutableSet[Any]):
    """A set that is walked over in the order of adding."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._items = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def intersection(self, other: Container[Any]) -> "OrderedSet":
        """See `set`."""
        return OrderedSet(item for item in self if item in other)

    def add(self, value: Any) -> None:
        """See `set`."""
        self._items[value] = None

    def discard(self, value: Any) -> None:
        """See `set`."""
        self._items.pop(value, None)


async def no_socket(addr_infos: Sequence[Any], **_: Any) -> tuple[str, int]:
    """Return for a socket the address that it would be connected to: `WireLoop` connects there by itself."""
    host, port = addr_infos[0][4][:2]
    return host, port


@contextlib.contextmanager
def seeded(chance: Random, *, epoch: float = EPOCH, constants: Mapping[str, float] | None = None) -> Iterator[None]:
    """Let the clients take the running loop's time and this chance, and the product some `CONSTANTS`, in the block."""

    def monotonic() -> float:
        return asyncio.get_running_loop().time()

    def time() -> float:
        return epoch + asyncio.get_running_loop().time()

    clock: Any = SimpleNamespace(time=time, monotonic=monotonic, gmtime=gmtime)
    uuids: Any = SimpleNamespace(uuid4=lambda: UUID(int=chance.getrandbits(128), version=4))
    with contextlib.ExitStack() as stack:
        for modules, name, value in (
            (TIME, "time", clock),
            (RANDOM, "random", chance),
            (UUID4, "uuid", uuids),
            (GETRANDBITS, "getrandbits", chance.getrandbits),
            (MONOTONIC, "monotonic", monotonic),
        ):
            for module in modules:
                stack.enter_context(patch.object(importlib.import_module(module), name, value))
        stack.enter_context(patch("aiohappyeyeballs.start_connection", no_socket))
        for place, value in (constants or {}).items():
            stack.enter_context(patch(place, value))
        for module in SETS:
            stack.enter_context(patch.object(importlib.import_module(module), "set", OrderedSet, create=True))
        yield
