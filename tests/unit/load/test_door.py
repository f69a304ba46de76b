"""What relay and link share: a port with another behind it."""

import asyncio

from load.door import READ_BYTES, Door

SECONDS = 5.0


class _Way(Door):
    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with self.through() as (out, into):
            while data := await reader.read(READ_BYTES):
                into.write(data)
                writer.write(await out.read(READ_BYTES))


async def test_both_sides_of_every_connection_end_when_the_door_is_left() -> None:
    ended = asyncio.Event()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(READ_BYTES):
                writer.write(data)
        except ConnectionError:
            pass
        writer.close()
        ended.set()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server, asyncio.timeout(SECONDS):
        async with _Way(server.sockets[0].getsockname()[1]) as door:
            reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
            writer.write(b"one")
            assert await reader.readexactly(3) == b"one"
            assert (door.count, len(door.writers)) == (1, 2)
        assert await reader.read() == b""
        await ended.wait()
        assert (door.count, len(door.writers)) == (0, 0)
        writer.close()


async def test_a_connection_is_ended_when_nobody_listens_behind_the_door() -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
    async with _Way(port) as door, asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        assert await reader.read() == b""
        writer.close()
