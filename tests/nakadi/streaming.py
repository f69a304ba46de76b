"""A stream's connection: its lines go out as they fall due, and it is kept for a while when its connection is gone."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import web

from tests.nakadi import asked
from tests.nakadi.bus import Bus
from tests.nakadi.event_types import Problem
from tests.nakadi.mischief import Mischief
from tests.nakadi.stream import Parameters, Stream
from tests.nakadi.subscription import Subscription

LONGEST = 3_600.0
"""Seconds that nobody waits longer than without a look."""


@dataclass(frozen=True, slots=True)
class Manners:
    """Where the rules leave a choice."""

    holds_closing: bool = True
    """A stream that ends with something uncommitted keeps its connection until that is committed or given up."""
    notices_after: float = 0.0
    """Seconds from a connection's end until its stream is known to have none."""


class Streams:
    """All streams of a bus by HTTP."""

    def __init__(self, bus: Bus, clock: Callable[[], float], mischief: Mischief, manners: Manners) -> None:
        self._bus = bus
        self._clock = clock
        self._mischief = mischief
        self._manners = manners
        self._lingering: set[asyncio.Task[None]] = set()

    async def read(self, request: web.Request) -> web.StreamResponse:
        return await self._stream(request, asked.parameters(request.query))

    async def read_named(self, request: web.Request) -> web.StreamResponse:
        told = await asked.mapping(request)
        return await self._stream(request, asked.parameters(told, told.get("partitions")))

    async def _stream(self, request: web.Request, parameters: Parameters) -> web.StreamResponse:
        found = self._bus.subscription(request.match_info["id"])
        for each in found.event_types.values():
            if each.is_forbidden:
                raise Problem(403, f"Access on READ event-type:{each.name} denied")
        if self._mischief.is_conflict(self._clock()):
            raise Problem(409, "No free slots for streaming available, by chance")
        stream = found.open(parameters, self._bus.chance, self._clock())
        response = web.StreamResponse(headers={"X-Nakadi-StreamId": stream.id})
        response.content_type = "application/x-json-stream"
        changed = asyncio.Event()
        stream.on_change = changed.set
        try:
            with suppress(ConnectionError):
                await response.prepare(request)
                await self._send(request, response, found, stream, changed)
        finally:
            if stream.state != "gone":
                self._linger(found, stream, changed)
        return response

    async def _send(
        self,
        request: web.Request,
        response: web.StreamResponse,
        found: Subscription,
        stream: Stream,
        changed: asyncio.Event,
    ) -> None:
        while True:
            changed.clear()
            now = self._clock()
            found.advance(now)
            line = stream.pull(now)
            if line is not None:
                if self._mischief.rates and await self._is_spoilt(request, response, found, stream, line):
                    return
                await response.write(line)
            elif stream.state == "gone" or (stream.state == "closing" and not self._manners.holds_closing):
                return
            else:
                await _change(changed, stream.wake_at(now) - now)

    async def _is_spoilt(
        self, request: web.Request, response: web.StreamResponse, found: Subscription, stream: Stream, line: bytes
    ) -> bool:
        """Let a line go wrong by chance; say whether that was the last of the connection."""
        mischief = self._mischief
        if mischief.strikes("cut"):
            await response.write(mischief.part(line))
            cut(request)
            return True
        if mischief.strikes("short"):
            await response.write(mischief.part(line))
            return True
        if mischief.strikes("silent"):
            await asyncio.sleep(mischief.moment())
        if mischief.strikes("mute"):
            stream.keeps_alive_only_until = self._clock() + mischief.moment()
        if mischief.strikes("ended"):
            found.close(stream, "Ended by chance", self._clock())
        return False

    def _linger(self, found: Subscription, stream: Stream, changed: asyncio.Event) -> None:
        """Keep a stream that has no connection until what it sent is committed or given up."""
        task = asyncio.get_running_loop().create_task(self._keep(found, stream, changed))
        self._lingering.add(task)
        task.add_done_callback(self._lingering.discard)

    async def _keep(self, found: Subscription, stream: Stream, changed: asyncio.Event) -> None:
        await asyncio.sleep(self._manners.notices_after)
        found.close(stream, "Connection closed", self._clock())
        while stream.state != "gone":
            changed.clear()
            now = self._clock()
            found.advance(now)
            await _change(changed, stream.wake_at(now) - now)

    async def end_all(self, _: web.Application) -> None:
        now = self._clock()
        for found in self._bus.subscriptions.values():
            for stream in list(found.streams.values()):
                found.close(stream, "Server stops", now)

    async def forget(self, _: web.Application) -> None:
        for task in list(self._lingering):
            task.cancel()
        await asyncio.gather(*self._lingering, return_exceptions=True)


async def _change(changed: asyncio.Event, seconds: float) -> None:
    """Wait for a change, for so many seconds at most."""
    if seconds <= 0.0:
        await asyncio.sleep(0)
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(min(seconds, LONGEST)):
            await changed.wait()


def cut(request: web.Request) -> web.Response:
    """Break the connection at once; the answer goes nowhere."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)
