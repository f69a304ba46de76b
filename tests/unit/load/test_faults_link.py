"""The stretch of network between Tidegate and a broker, with an echo behind it."""

import asyncio
import struct
from collections.abc import AsyncIterator

import pytest

from load.faults.link import Link, Weather, joined, kafka_substitution

SECONDS = 5.0


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
    writer.close()


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    async with (
        await asyncio.start_server(_echo, "127.0.0.1", 0) as server,
        Link(server.sockets[0].getsockname()[1], seed=1) as link,
    ):
        yield link


async def said_back(link: Link, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    writer.write(text)
    async with asyncio.timeout(SECONDS):
        answer = await reader.readexactly(len(text))
    writer.close()
    return answer


async def test_what_goes_in_comes_out(link: Link) -> None:
    text = bytes(range(256)) * 2000

    assert await said_back(link, text) == text


async def test_what_was_held_up_arrives_when_the_link_is_released(link: Link) -> None:
    link.hold()
    waiting = asyncio.create_task(said_back(link, b"late"))
    done, _ = await asyncio.wait([waiting], timeout=0.2)
    assert not done

    link.release()
    assert await waiting == b"late"


async def test_a_reset_ends_connections_and_lets_new_ones_through(link: Link) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    writer.write(b"one")
    assert await reader.readexactly(3) == b"one"

    assert link.reset() == 1
    with pytest.raises(ConnectionResetError):
        async with asyncio.timeout(SECONDS):
            await reader.readexactly(1)
    assert await said_back(link, b"two") == b"two"


async def test_bytes_keep_their_order_in_bad_weather(link: Link) -> None:
    link.weather = Weather(delay=0.001, jitter=0.001, loss=0.05)
    text = bytes(range(256)) * 500

    assert await said_back(link, text) == text


async def test_delay_is_added_in_both_directions(link: Link) -> None:
    link.weather = Weather(delay=0.1)
    clock = asyncio.get_running_loop().time
    began = clock()
    await said_back(link, b"ping")

    assert clock() - began >= 0.2


async def test_a_kafka_client_is_told_to_go_on_by_the_link() -> None:
    def answer(port: int) -> bytes:
        body = b"\x00\x09127.0.0.1" + struct.pack(">i", port) + b"rest"
        return struct.pack(">i", len(body)) + body

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = answer(writer.get_extra_info("sockname")[1])
        for byte in data:
            writer.write(bytes([byte]))
        writer.close()

    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as server,
        Link(server.sockets[0].getsockname()[1], seed=1) as link,
        asyncio.timeout(SECONDS),
    ):
        joined([link])
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        assert await reader.read() == answer(link.port)
        writer.close()


def test_an_address_is_replaced_by_one_of_the_same_length() -> None:
    change = kafka_substitution(9092, 40000)

    assert len(change.said) == len(change.instead)
    assert change.said != change.instead
