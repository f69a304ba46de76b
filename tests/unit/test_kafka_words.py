"""Failures of the log name the setting to look at where it may be the cause."""

import asyncio
import socket
import ssl

import pytest
from aiokafka import errors

from proxy.access import log_access
from proxy.kafka_log import client
from proxy.kafka_log.client import log_in, options
from proxy.kafka_log.login import Credentials
from proxy.kafka_log.words import NoHostError, failure, misfit, unreached
from proxy.settings import LogSettings


@pytest.mark.parametrize("error", [TimeoutError(), errors.RequestTimedOutError()])
def test_a_silent_log_is_told_in_words_when_the_error_has_none(error: Exception) -> None:
    assert failure(error) == "no answer in time"


async def test_the_protocol_is_named_when_tls_meets_a_port_without() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()  # as Kafka does with a hello that it takes for a request of 352 MB

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        settings = LogSettings.model_validate({"hosts": [host], "group": "g", "security": {"protocol": "SSL"}})
        login = options(settings, Credentials(log_access(settings.security)), request_seconds=5)
        with pytest.raises((OSError, errors.KafkaError)) as raised:
            await log_in(settings, login)
    assert unreached(raised.value, "SSL").endswith("as a port without TLS does; see log.security.protocol")


def test_security_is_named_when_a_port_takes_connections_and_answers_nothing() -> None:
    error = errors.KafkaConnectionError("Unable to bootstrap from [('h', 9092)]")
    told = unreached(error, "PLAINTEXT")
    assert "Unable to bootstrap" in told
    assert told.endswith("or ask for TLS or another login; see log.hosts, log.security")


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "Connection refused"), TimeoutError()])
@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_no_setting_is_suspected_when_nobody_is_there(error: Exception, protocol: str) -> None:
    assert "log.security" not in unreached(error, protocol)


async def test_every_host_is_named_with_its_cause_when_none_can_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    async def knock(host: str, _: object) -> None:
        if host.startswith("nowhere"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(client, "_knock", knock)
    settings = LogSettings(hosts=["nowhere:9092", "h:1", "h:2", "h:3", "h:4"], group="g")
    with pytest.raises(NoHostError) as raised:
        await log_in(settings, {})
    told = unreached(raised.value, "PLAINTEXT")
    assert "nowhere:9092: the name can't be resolved (Name or service not known); see log.hosts" in told
    assert "h:1: refused, nothing listens there" in told
    assert told.endswith(" | and 2 more")


def test_another_client_is_suspected_when_the_group_shares_out_in_another_way() -> None:
    assert misfit(errors.InconsistentGroupProtocolError()).startswith("log.group: another client is in this consumer")
    assert misfit(errors.InvalidSessionTimeoutError()).startswith("log.session_timeout: ")
    assert misfit(errors.InvalidGroupIdError()).startswith("log.group: the brokers refuse this name")


def test_causes_are_looked_at_when_an_error_has_some() -> None:
    error = errors.KafkaConnectionError("lost")
    error.__cause__ = ssl.SSLError(1, "wrong version number")
    assert "log.security.protocol" in unreached(error, "SASL_SSL")
