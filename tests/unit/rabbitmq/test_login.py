"""Why a login failed, out of what the client raises."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from proxy.errors import BrokerError
from proxy.rabbitmq.login import Logins
from proxy.rabbitmq.words import tls_failure
from proxy.settings import BrokerSettings


def test_the_look_for_a_certificate_ends_when_errors_are_each_other_s_cause() -> None:
    first, second = ConnectionError("reset"), OSError("closed")
    first.__context__, second.__context__ = second, first
    assert tls_failure(first) is None


def test_a_certificate_is_named_when_its_error_is_the_cause_of_another() -> None:
    error = ConnectionError("lost")
    error.__cause__ = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.__cause__.verify_message = "self-signed certificate"
    assert tls_failure(error) == "its certificate is not trusted: self-signed certificate"


@asynccontextmanager
async def answering(words: bytes) -> AsyncIterator[str]:
    """Listen, and answer whatever is said first with these words."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(words)
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("tls", "words", "hint"),
    [
        ({}, b"AMQP\x00\x00\x09\x01", "it answers without TLS; see broker.tls"),
        (None, b"HTTP/1.1 400 Bad Request\r\n\r\n", "is it RabbitMQ's port for AMQP? See broker.hosts"),
    ],
    ids=["tls", "http"],
)
async def test_the_setting_is_named_when_another_protocol_answers(
    tls: dict[str, str] | None, words: bytes, hint: str
) -> None:
    async with answering(words) as host:
        settings = BrokerSettings.model_validate({"hosts": [host], "tls": tls})
        with pytest.raises(BrokerError) as raised:
            await Logins(settings).log_in(host, "test")
    assert hint in str(raised.value)
    assert host in str(raised.value)
