"""How failures of Nakadi are told."""

import asyncio
import socket
import ssl

import aiohttp
import pytest

from proxy.nakadi_log.words import failure

URL, TLS = "; see log.nakadi.url", "; see log.nakadi.url, log.nakadi.tls"


async def failed(url: str) -> BaseException:
    async with aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.ClientError) as caught:
            await client.get(url, ssl=ssl.create_default_context())
    return caught.value


async def test_no_object_of_ours_is_in_the_words_when_a_server_of_http_is_asked_for_https() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        said = failure(await failed(f"https://127.0.0.1:{port}"))
    assert said.startswith(f"Cannot connect to host 127.0.0.1:{port} [[SSL: WRONG_VERSION_NUMBER]")
    assert said.endswith(TLS)


async def test_the_address_is_named_when_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.shutdown(socket.SHUT_RDWR)  # listens no more, and keeps the port
        port = server.getsockname()[1]
        said = failure(await failed(f"https://127.0.0.1:{port}"))
    assert said.startswith(f"Cannot connect to host 127.0.0.1:{port} [")
    assert said.endswith(URL)


def test_the_name_of_the_error_is_told_when_it_says_nothing() -> None:
    assert failure(OSError()) == "OSError"
