"""Why a login failed, out of what the client raises."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pamqp.common import FieldTable

from proxy.errors import BrokerError
from proxy.rabbitmq.connection import RabbitConnector
from proxy.rabbitmq.login import Logins
from proxy.rabbitmq.words import speaking, tls_failure
from proxy.settings import BrokerSettings
from tests.support.amqp_server import AmqpServer


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
        if not words:
            writer.transport.abort()  # as Kafka does
            return
        writer.write(words)
        writer.write_eof()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("tls", "words", "hint"),
    [
        ({}, b"AMQP\x00\x00\x09\x01", "it answers without TLS; see broker.tls"),
        ({}, b"", "it ends the TLS handshake, as a port without TLS does; see broker.tls"),
        (None, b"HTTP/1.1 400 Bad Request\r\n\r\n", "it speaks HTTP, not AMQP; see the ports in broker.hosts"),
        (None, b"AMQP\x00\x01\x00\x00", "it speaks another version of AMQP than 0-9-1; see the ports in broker.hosts"),
        (None, b"\x15\x03\x03\x00\x02\x02\x46", "it asks for TLS; see broker.tls"),
        (None, b"SSH-2.0-OpenSSH_9.2\r\n", "it speaks something else than AMQP ('SSH-2.0-'): if RabbitMQ runs there"),
        (None, b"\x00\x00\x00\x04oops", "it speaks something else than AMQP"),
        (None, b"", "it closes the connection without a word of AMQP: if RabbitMQ runs there"),
    ],
    ids=["tls", "tls-closed", "http", "amqp-1", "no-tls", "ssh", "junk", "closed"],
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


async def test_the_host_and_its_port_are_named_when_it_gives_no_answer() -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        logins = Logins(BrokerSettings(hosts=[host]))
        connector = RabbitConnector(logins, "test")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await connector.connect(None)  # type: ignore[arg-type]  # nothing is told to it
        told = connector.silence(0.2)
        logins.was_let_in = True
        assert connector.silence(0.2) == f"{host}: no answer within 0.2 s"
    assert told.startswith(f"{host}: no answer within 0.2 s: if RabbitMQ runs there, is this its port for AMQP")


async def test_the_name_is_told_when_it_can_not_be_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio, "open_connection", unknown)
    with pytest.raises(BrokerError, match=r"nowhere:5672: the name can't be resolved; see broker\.hosts"):
        await Logins(BrokerSettings(hosts=["nowhere:5672"])).log_in("nowhere:5672", "test")


@pytest.mark.parametrize("properties", [{}, {"capabilities": 1}, {"capabilities": {"publisher_confirms": False}}])
async def test_it_is_said_when_a_broker_confirms_nothing(properties: FieldTable) -> None:
    async with AmqpServer.open() as server:
        server.properties = properties
        with pytest.raises(BrokerError, match=r"does not confirm what is published; Tidegate needs RabbitMQ"):
            await Logins(BrokerSettings(hosts=[server.host])).log_in(server.host, "lane")


async def test_a_connection_is_tried_again_when_a_frame_can_not_be_read_while_a_channel_is_opened() -> None:
    async with AmqpServer.open() as server:
        login = await Logins(BrokerSettings(hosts=[server.host])).log_in(server.host, "lane")
        # A method of the right kind that is cut short within: its numbers are not there.
        server.say_raw(b"\x01\x00\x01\x00\x00\x00\x05" + b"\x00\x3c\x00\x1e\x00" + b"\xce")
        with pytest.raises(BrokerError), speaking(server.host):
            await login.underlay.channel(publisher_confirms=False)
        await login.close(gracefully=False)
