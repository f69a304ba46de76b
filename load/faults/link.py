"""A stretch of network between Tidegate and a broker that can be cut, held up and made slow. No packets: a byte stream.

A lost segment of TCP is no hole in the stream but a pause until it is sent again; so that is what loss is here.
"""

import asyncio
import random
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from load.door import HOST, READ_BYTES, Door

WAITING_PIECES = 64
"""On their way in one direction; then the sender is held up, as by a full window."""
SEGMENT = 1460
"""Bytes of one TCP segment."""
RESEND = 0.2
"""Seconds after which a lost segment is sent again: the least that Linux waits."""
_NO_LINGER = struct.pack("ii", 1, 0)
"""Closing then means resetting."""


class Weather(NamedTuple):
    """What the stretch does to what passes it."""

    delay: float = 0.0
    """Seconds, each way."""
    jitter: float = 0.0
    """Seconds, more or less."""
    loss: float = 0.0
    """Share of segments lost the first time."""


CALM = Weather()


class Substitution(NamedTuple):
    """What the far side says of its own address, and what to say instead; of the same length."""

    said: bytes
    instead: bytes


def kafka_substitution(kafka_port: int, link_port: int) -> Substitution:
    """Return what lets a Kafka client that came by a link stay on it: brokers tell clients where to go on."""
    return Substitution(_kafka_address(kafka_port), _kafka_address(link_port))


def joined(links: Sequence["Link"]) -> None:
    """Let the links to all nodes of a Kafka answer for each other: what one node says of another is changed, too."""
    for link in links:
        link.siblings = links


def _kafka_address(port: int) -> bytes:
    return HOST.encode() + struct.pack(">i", port)


class Link(Door):
    """Listens on a port of 127.0.0.1 and passes on to another; a context manager."""

    def __init__(self, port: int, *, seed: int) -> None:
        super().__init__(port)
        self.siblings: Sequence[Link] = []
        """A client is told of these instead of the nodes behind them; see `joined`."""
        self._chance = random.Random(seed)
        self._clear = asyncio.Event()
        self._clear.set()
        self.weather = CALM

    def reset(self) -> int:
        """Reset every connection, on both sides; return how many there were."""
        count = self.count
        for writer in list(self.writers):
            _reset(writer)
        return count

    def hold(self) -> None:
        """Let nothing through any more, in either direction, and answer no new connection."""
        self._clear.clear()

    def release(self) -> None:
        """Let everything through again; what was on its way arrives."""
        self._clear.set()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy both directions, through all that the weather does, until one side has gone."""
        await self._clear.wait()
        async with self.through() as (out, into), asyncio.TaskGroup() as both:
            both.create_task(self._one_way(reader, into, ()))
            both.create_task(self._one_way(out, writer, self._substitutions()))

    def _substitutions(self) -> list[Substitution]:
        return [kafka_substitution(link.behind, link.port) for link in self.siblings]

    async def _one_way(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, changes: Sequence[Substitution]
    ) -> None:
        """Pass on until one side has gone; then end the other direction too, by raising ConnectionError."""
        way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WAITING_PIECES)
        clock = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._deliver(way, writer))
            latest = 0.0
            while data := await _read(reader, changes):
                latest = max(latest, clock() + self._seconds(len(data)))
                await way.put((latest, data))
            await way.put((latest, b""))
        raise ConnectionResetError("one side has gone")

    async def _deliver(self, way: "asyncio.Queue[tuple[float, bytes]]", writer: asyncio.StreamWriter) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due, data = await way.get()
            if not data:
                return
            if due > clock():
                await asyncio.sleep(due - clock())
            await self._clear.wait()
            if writer.is_closing():  # uvloop would raise RuntimeError
                raise ConnectionResetError("the receiver has gone")
            writer.write(data)
            await writer.drain()

    def _seconds(self, size: int) -> float:
        weather = self.weather
        if weather is CALM:
            return 0.0
        seconds = weather.delay + weather.jitter * self._chance.uniform(-1, 1)
        for _ in range(-(-size // SEGMENT)):
            if self._chance.random() < weather.loss:
                seconds += RESEND + weather.delay
        return max(0.0, seconds)


async def _read(reader: asyncio.StreamReader, changes: Sequence[Substitution]) -> bytes:
    """Return what came, nothing at the end; whole answers of Kafka where something in them must be changed."""
    if not changes:
        return await reader.read(READ_BYTES)
    try:
        head = await reader.readexactly(4)
        answer = await reader.readexactly(int.from_bytes(head, "big"))
    except asyncio.IncompleteReadError:
        return b""
    for change in changes:
        answer = answer.replace(*change)
    return head + answer


def _reset(writer: asyncio.StreamWriter) -> None:
    held = writer.get_extra_info("socket")
    if held is not None:
        with suppress(OSError):
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    writer.transport.abort()
