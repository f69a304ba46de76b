"""Partitions held still while replicas run, so that their cursors can be moved from a known place.

Nakadi moves cursors from wherever they are when all streams have ended, and the request knows no condition. So whoever
moves them first opens a stream that names the partitions. Nakadi takes them from the replicas' streams once all that
those were sent is committed; from then on nobody else is sent anything of them, or can commit. What the grip is sent is
never committed: it comes again.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import NamedTuple

from proxy.errors import LogError
from proxy.model import Partition
from proxy.nakadi_log.bus import CONFLICT, Bus, RefusedError

MOVE_SECONDS = 75.0
"""Nakadi moves cursors when all streams are gone, which takes a commit timeout, 60 s at most; and some for the way."""
LOOK_SECONDS = 1.0
_HOLDS = (15, 60)
"""Seconds that a grip lasts, and its event type may stand still: what flows is given up within a moment, what is held
back within its commit timeout. 60 is the most that Nakadi allows."""
_WAY_SECONDS = 5.0
"""A request has so long to arrive before the grip may end."""


class Grip(NamedTuple):
    """A stream that has the partitions."""

    stream_id: str
    until: float
    """Until then a request may leave, by the loop's clock in seconds."""

    async def holds(self, bus: Bus, subscription: str, partitions: Collection[Partition], *, within: float) -> bool:
        """Return whether it has them still, and a request will find it so. Raises `LogError`."""
        owners = await owners_of(bus, subscription, within=within)
        is_ours = all(owners.get((at.topic, at.number)) == self.stream_id for at in partitions)
        return is_ours and asyncio.get_running_loop().time() < self.until


@asynccontextmanager
async def gripped(
    bus: Bus, subscription: str, partitions: Collection[Partition], *, within: float
) -> AsyncIterator[Grip]:
    """Hold partitions of one subscription; each question is answered `within` seconds.

    Raises `LogError` if they are not given up in time. Its end is noticed by Nakadi within 60 s.
    """
    for seconds in _HOLDS:
        async with AsyncExitStack() as stack:
            grip = await _opened(stack, bus, subscription, partitions, seconds, within)
            if await _is_complete(grip, bus, subscription, partitions, within):
                yield grip
                return
    raise LogError(f"the replicas did not give it up within {_HOLDS[-1]} s: nothing was moved; stop them first")


async def owners_of(bus: Bus, subscription: str, *, within: float) -> dict[tuple[str, int], str]:
    """Return the streams of those partitions of a subscription that have one. Raises `LogError`."""
    _, told = await bus.ask("GET", f"/subscriptions/{subscription}/stats", within=within)
    try:
        return {
            (one["event_type"], int(view["partition"])): view["stream_id"]
            for one in told["items"]
            for view in one["partitions"]
            if view.get("stream_id")
        }
    except (TypeError, LookupError, AttributeError, ValueError) as error:
        raise LogError("Nakadi does not tell who reads") from error


async def _opened(
    stack: AsyncExitStack, bus: Bus, subscription: str, partitions: Collection[Partition], seconds: int, within: float
) -> Grip:
    """Open the stream, as soon as nobody else names the partitions, or moves cursors. Raises `LogError`."""
    clock = asyncio.get_running_loop().time
    asked = {
        "partitions": [{"event_type": at.topic, "partition": str(at.number)} for at in partitions],
        "batch_limit": 1,
        "max_uncommitted_events": 1,
        "commit_timeout": seconds,
    }
    end, path = clock() + MOVE_SECONDS, f"/subscriptions/{subscription}/events"
    while True:
        opened_at = clock()
        try:
            response = await stack.enter_async_context(bus.stream(path, asked, within=within))
        except RefusedError as error:
            if error.status != CONFLICT or clock() >= end:
                raise
        else:
            return Grip(response.headers.get("X-Nakadi-StreamId", ""), opened_at + seconds - _WAY_SECONDS)
        await asyncio.sleep(LOOK_SECONDS)


async def _is_complete(
    grip: Grip, bus: Bus, subscription: str, partitions: Collection[Partition], within: float
) -> bool:
    """Wait until a grip has its partitions; return whether it does in time."""
    while asyncio.get_running_loop().time() < grip.until:
        with suppress(LogError):
            if await grip.holds(bus, subscription, partitions, within=within):
                return True
        await asyncio.sleep(LOOK_SECONDS)
    return False
