"""Where a broker says that queues are, whatever else it does."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from pamqp import commands

from proxy.bridge.broker import Finding, Found
from proxy.errors import BrokerError
from proxy.rabbitmq.finder import AT_ONCE, DEADLINE, RabbitFinder
from proxy.rabbitmq.login import Logins
from proxy.settings import BrokerSettings
from tests.support.amqp_server import AmqpServer

DOWN = "NOT_FOUND - home node 'rabbit@b' of durable queue 'away' in vhost '/' is down or inaccessible"
FORBIDDEN = "ACCESS_REFUSED - access to queue 'secret' in vhost '/' refused for user 'guest'"


@pytest.fixture
async def server() -> AsyncIterator[AmqpServer]:
    async with AmqpServer.open() as server:
        server.depths = {"q": (3, 1)}
        server.closes = {
            "away": commands.Channel.Close(404, DOWN, 50, 10),
            "secret": commands.Channel.Close(403, FORBIDDEN, 50, 10),
        }
        yield server


@pytest.fixture
async def finder(server: AmqpServer) -> AsyncIterator[RabbitFinder]:
    finder = RabbitFinder(Logins(BrokerSettings(hosts=[server.host], heartbeat=60)))
    yield finder
    await finder.close()


async def test_a_queue_that_is_away_is_told_from_one_that_is_there_or_gone_or_nobody_tells(
    server: AmqpServer, finder: RabbitFinder
) -> None:
    assert await finder.find(["away", "q", "none", "secret", "q"], server.host) == {
        "away": Finding(Found.AWAY, DOWN),
        "q": Finding(Found.THERE),
        "none": Finding(Found.GONE),
        "secret": Finding(Found.GONE),
    }


async def test_all_but_it_are_told_of_when_the_broker_fails_at_saying_that_a_queue_is_not_there(
    server: AmqpServer, finder: RabbitFinder
) -> None:
    server.closes["ä" * 120] = commands.Connection.Close(541, "INTERNAL_ERROR", 0, 0)
    assert await finder.find(["q", "ä" * 120, "away", "none"], server.host) == {
        "q": Finding(Found.THERE),
        "ä" * 120: Finding(Found.GONE),
        "away": Finding(Found.AWAY, DOWN),
        "none": Finding(Found.GONE),
    }


async def test_nothing_is_told_when_the_broker_fails_for_a_reason_of_its_own(
    server: AmqpServer, finder: RabbitFinder
) -> None:
    server.closes["mail"] = commands.Connection.Close(541, "INTERNAL_ERROR", 0, 0)
    with pytest.raises(BrokerError):
        await finder.find(["mail"], server.host)


async def test_all_are_found_when_they_are_more_than_are_asked_for_on_one_channel(
    server: AmqpServer, finder: RabbitFinder
) -> None:
    names = [f"q{number}" for number in range(3 * AT_ONCE)]
    server.depths = dict.fromkeys(names[::3], (0, 0))
    found = await finder.find(names, server.host)
    assert list(found) == names
    assert [name for name in names if found[name].found is Found.THERE] == names[::3]


async def test_nothing_is_told_of_what_was_not_answered_when_the_broker_falls_silent(
    server: AmqpServer, finder: RabbitFinder
) -> None:
    assert await finder.find(["q"], server.host) == {"q": Finding(Found.THERE)}
    server.is_mute_to_queues = {"mute"}
    with pytest.raises(BrokerError, match=f"no answer within {DEADLINE:g} s"):
        await finder.find(["mute", "away"], server.host)
    assert await finder.find(["away", "mute", "q"], server.host) == {"away": Finding(Found.AWAY, DOWN)}
    assert await finder.find(["away"], server.host) == {"away": Finding(Found.AWAY, DOWN)}


async def test_the_next_question_connects_anew_when_the_connection_was_closed(
    server: AmqpServer, finder: RabbitFinder
) -> None:
    await finder.find(["q"], server.host)
    await finder.close()
    await finder.close()
    assert await finder.find(["q"], server.host) == {"q": Finding(Found.THERE)}
    server.hang_up()
    await asyncio.sleep(0)
    while True:
        try:
            assert await finder.find(["q"], server.host) == {"q": Finding(Found.THERE)}
            break
        except BrokerError:  # the end was not seen before the question
            continue
    assert server.accepted == 3


async def test_that_host_is_asked_that_is_named_and_no_other(server: AmqpServer) -> None:
    async with AmqpServer.open() as other:
        other.closes = {"q": commands.Channel.Close(404, DOWN, 50, 10)}
        said = {server.host: Finding(Found.THERE), other.host: Finding(Found.AWAY, DOWN)}
        logins = Logins(BrokerSettings(hosts=[server.host, other.host], heartbeat=60))
        for hosts in ([*said], [*reversed(said)], [*said]):
            finder = RabbitFinder(logins)
            for host in (*hosts, *hosts):
                assert await finder.find(["q"], host) == {"q": said[host]}
            await finder.close()
        assert (server.accepted, other.accepted) == (3, 3)
