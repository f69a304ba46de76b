"""What connections do: in the network in memory, and on real loopback sockets, by the same tests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from random import Random
from typing import Any

import pytest

from proxy.simulation import virtual_time
from tests.wire.loop import WireLoop

Streams = tuple[asyncio.StreamReader, Any]
BIG = bytes(range(256)) * 8192
"""More than all buffers take."""


class Place:
    """Where the tests run; both ends of one connection at a time."""

    @contextlib.asynccontextmanager
    async def pair(self, limit: int = 2**16) -> AsyncIterator[tuple[Streams, Streams]]:
        """Yield a client's and a server's ends."""
        accepted: asyncio.Future[Streams] = asyncio.get_running_loop().create_future()
        host, port, close = await self.listen(lambda reader, writer: accepted.set_result((reader, writer)), limit)
        client = await asyncio.open_connection(host, port, limit=limit)
        server = await accepted
        try:
            yield client, server
        finally:
            for _, writer in (client, server):
                writer.transport.abort()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
            await close()

    async def listen(self, take: Any, limit: int) -> tuple[str, int, Callable[[], Awaitable[None]]]:
        raise NotImplementedError

    def run(self, test: Callable[["Place"], Coroutine[Any, Any, None]]) -> None:
        raise NotImplementedError


class Memory(Place):
    def __init__(self, seed: int, splits: float) -> None:
        self.seed = seed
        self.splits = splits

    async def listen(self, take: Any, limit: int) -> tuple[str, int, Callable[[], Awaitable[None]]]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WireLoop)
        loop.network.splits = self.splits
        server = loop.network.serve("node:1", take, limit=limit)

        async def close() -> None:
            server.close()

        return "node", 1, close

    def run(self, test: Callable[[Place], Coroutine[Any, Any, None]]) -> None:
        virtual_time.run(test(self), lambda: WireLoop(Random(self.seed)))


class Loopback(Place):
    async def listen(self, take: Any, limit: int) -> tuple[str, int, Callable[[], Awaitable[None]]]:
        server = await asyncio.start_server(take, "127.0.0.1", 0, limit=limit)

        async def close() -> None:
            server.close()
            await server.wait_closed()

        return "127.0.0.1", server.sockets[0].getsockname()[1], close

    def run(self, test: Callable[[Place], Coroutine[Any, Any, None]]) -> None:
        asyncio.run(test(self))


@pytest.fixture(params=["loopback", "memory", "split", "split again"])
def place(request: pytest.FixtureRequest) -> Place:
    match request.param:
        case "loopback":
            return Loopback()
        case "memory":
            return Memory(1, 0)
        case "split":
            return Memory(2, 0.9)
    return Memory(3, 0.5)


def test_all_bytes_come_in_order_when_both_write_at_once(place: Place) -> None:
    async def test(place: Place) -> None:
        async with place.pair() as ((reader, writer), (other_reader, other_writer)):

            async def send(out: asyncio.StreamWriter) -> None:
                chance = Random(5)
                at = 0
                while at < len(BIG):
                    size = chance.randint(1, 90_000)
                    out.write(BIG[at : at + size])
                    at += size
                    await out.drain()
                out.write_eof()

            got = await asyncio.gather(reader.read(), other_reader.read(), send(writer), send(other_writer))
            assert got[0] == got[1] == BIG

    place.run(test)


def test_the_other_direction_stays_open_when_one_end_writes_its_end(place: Place) -> None:
    async def test(place: Place) -> None:
        async with place.pair() as ((reader, writer), (other_reader, other_writer)):
            writer.write(b"question")
            writer.write_eof()
            assert await other_reader.read() == b"question"
            other_writer.write(b"answer")
            other_writer.write_eof()
            assert await reader.read() == b"answer"
            with pytest.raises(RuntimeError):
                writer.write(b"more")

    place.run(test)


def test_the_writer_waits_when_nobody_reads_and_goes_on_when_somebody_does(place: Place) -> None:
    async def test(place: Place) -> None:
        async with place.pair(limit=1000) as ((_, writer), (other_reader, _)):
            many = BIG * 8
            writer.write(many)
            drained = asyncio.ensure_future(writer.drain())
            await asyncio.wait([drained], timeout=0.1)
            assert not drained.done()
            assert writer.transport.get_write_buffer_size() > 0
            assert await other_reader.readexactly(len(many)) == many
            await drained
            assert writer.transport.get_write_buffer_size() < 2**16

    place.run(test)


def test_what_was_written_arrives_when_the_writer_closes(place: Place) -> None:
    async def test(place: Place) -> None:
        async with place.pair() as ((_, writer), (other_reader, _)):
            writer.write(BIG)
            writer.close()
            assert writer.is_closing()
            assert await other_reader.read() == BIG
            await writer.wait_closed()

    place.run(test)


def test_the_reader_sees_the_end_when_the_other_aborts_with_nothing_unread(place: Place) -> None:
    async def test(place: Place) -> None:
        async with place.pair() as ((_, writer), (other_reader, _)):
            writer.write(b"last words")
            assert await other_reader.readexactly(10) == b"last words"
            writer.transport.abort()
            assert await other_reader.read() == b""

    place.run(test)


def test_the_other_is_reset_when_an_end_closes_with_bytes_unread(place: Place) -> None:
    async def test(place: Place) -> None:
        async with place.pair() as ((reader, writer), (_, other_writer)):
            other_writer.transport.pause_reading()
            writer.write(b"x" * 1000)
            await asyncio.sleep(0.05)
            other_writer.transport.abort()
            with pytest.raises(ConnectionResetError):
                await reader.read()

    place.run(test)


def test_the_writer_is_told_when_the_other_end_is_gone(place: Place) -> None:
    async def test(place: Place) -> None:
        async with place.pair() as ((_, writer), (_, other_writer)):
            other_writer.transport.abort()

            async def write_on() -> None:
                while True:
                    writer.write(b"x" * 1000)
                    await writer.drain()
                    await asyncio.sleep(0.005)

            with pytest.raises(ConnectionError):
                await write_on()

    place.run(test)


def test_connecting_fails_at_once_when_nobody_listens(place: Place) -> None:
    async def test(place: Place) -> None:
        host, port, close = await place.listen(lambda *_: None, 100)
        await close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, port)

    place.run(test)


def test_nothing_is_told_when_reading_is_paused(place: Place) -> None:
    async def test(place: Place) -> None:
        async with place.pair() as ((reader, writer), (_, other_writer)):
            writer.transport.pause_reading()
            other_writer.write(b"later")
            reading = asyncio.ensure_future(reader.readexactly(5))
            await asyncio.wait([reading], timeout=0.05)
            assert not reading.done()
            writer.transport.resume_reading()
            assert await reading == b"later"

    place.run(test)
