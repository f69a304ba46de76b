"""The monitor's seam to aiormq, and what it asks of a broker beside depths."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from pamqp import commands

from proxy.bridge.broker import QueueKind, QueueState
from proxy.errors import BrokerError
from proxy.rabbitmq.login import Logins
from proxy.rabbitmq.monitor import KINDS_PER_POLL, RabbitMonitor
from proxy.settings import BrokerSettings
from tests.support.amqp_server import AmqpServer


@pytest.fixture
async def server() -> AsyncIterator[AmqpServer]:
    async with AmqpServer.open() as server:
        server.depths = {"q": (3, 1)}
        yield server


@pytest.fixture
async def monitor(server: AmqpServer) -> AsyncIterator[RabbitMonitor]:
    monitor = RabbitMonitor(Logins(BrokerSettings(hosts=[server.host], heartbeat=60)))
    yield monitor
    await monitor.close()


def asked_for_kind(server: AmqpServer) -> list[str]:
    return [value.queue for _, value in server.heard if isinstance(value, commands.Basic.Consume)]


def observers(monitor: RabbitMonitor) -> int:
    """Return how many wait for the end of channel and connection."""
    assert monitor._inquiry._questions is not None
    assert monitor._inquiry._login is not None
    ends = (monitor._inquiry._questions._channel._closing, monitor._inquiry._login.underlay._closing)
    return sum(len(end._callbacks or ()) for end in ends)


async def test_observers_stay_as_many_when_polled_a_thousand_times(server: AmqpServer, monitor: RabbitMonitor) -> None:
    await monitor.poll(["q"])
    await monitor.poll(["q"])
    before, tasks = observers(monitor), len(asyncio.all_tasks())
    for _ in range(1_000):
        assert await monitor.poll(["q"]) == {"q": QueueState(3, 1, QueueKind.CLASSIC)}
    assert observers(monitor) == before
    assert len(asyncio.all_tasks()) == tasks
    assert server.accepted == 1


@pytest.mark.parametrize("twice", ["first", "last"])
async def test_a_poll_fails_and_the_next_connects_anew_when_more_is_answered_than_was_asked(
    server: AmqpServer, monitor: RabbitMonitor, twice: str
) -> None:
    server.depths = {"first": (3, 1), "last": (4, 1)}
    server.tells_twice = {twice}

    async def two_polls() -> None:
        for _ in range(2):  # the second answer may come when a poll has all that it wants
            await monitor.poll(["first", "last"])

    with pytest.raises(BrokerError, match=r"an answer to a question that was not asked"):
        await two_polls()
    server.tells_twice = set()
    states = await monitor.poll(["first", "last"])
    assert [state and (state.ready, state.consumers) for state in states.values()] == [(3, 1), (4, 1)]
    assert server.accepted == 2


async def test_the_monitor_leaves_a_host_when_a_lane_found_it_wanting_and_another_is_better() -> None:
    async with AmqpServer.open() as one, AmqpServer.open() as two:
        depths = {one.host: 14, two.host: 0}
        one.depths, two.depths = {"q": (14, 1)}, {"q": (0, 1)}
        logins = Logins(BrokerSettings(hosts=[one.host, two.host], heartbeat=60))
        monitor = RabbitMonitor(logins)

        async def at() -> str:
            seen = (await monitor.poll(["q"]))["q"]
            assert seen is not None
            return next(host for host, depth in depths.items() if depth == seen.ready)

        stale = await at()
        logins.doubted.add(stale, asyncio.get_running_loop().time())
        other = await at()
        assert {stale, other} == {one.host, two.host}
        logins.doubted.add(other, asyncio.get_running_loop().time())
        assert await at() == other, "each is in doubt"
        logins.doubted.remove(stale)
        assert await at() == stale
        await monitor.close()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'locked'"),
        (403, "ACCESS_REFUSED - access to queue 'locked' refused"),
        (404, "NOT_FOUND - home node 'rabbit@b' of durable queue 'locked' is down or inaccessible"),
    ],
)
async def test_it_is_told_why_a_queue_can_not_be_looked_at_unless_it_just_does_not_exist(
    server: AmqpServer, monitor: RabbitMonitor, code: int, said: str
) -> None:
    server.closes["locked"] = commands.Channel.Close(code, said, 50, 10)
    assert await monitor.poll(["locked", "absent"]) == {"locked": None, "absent": None}
    assert (monitor.why("locked"), monitor.why("absent"), monitor.why("q")) == (said, "", "")
    del server.closes["locked"]


@pytest.mark.parametrize("kind", list(QueueKind))
async def test_the_kind_is_what_the_refusal_names_and_asked_for_once(
    server: AmqpServer, monitor: RabbitMonitor, kind: QueueKind
) -> None:
    server.refuse_consumer = f"PRECONDITION_FAILED - invalid arg 'x' for queue 'q' of queue type rabbit_{kind}_queue"
    for _ in range(3):
        assert await monitor.poll(["q"]) == {"q": QueueState(3, 1, kind)}
    assert asked_for_kind(server) == ["q"]


async def test_the_kind_is_not_known_when_the_user_may_not_read(server: AmqpServer, monitor: RabbitMonitor) -> None:
    server.refuse_consumer = "ACCESS_REFUSED - read access to queue 'q' in vhost '/' refused for user 'u'"
    for _ in range(3):
        assert await monitor.poll(["q"]) == {"q": QueueState(3, 1)}
    assert asked_for_kind(server) == ["q"]


async def test_the_connection_ends_at_once_when_a_consumer_is_let_in(
    server: AmqpServer, monitor: RabbitMonitor
) -> None:
    server.refuse_consumer = None
    for _ in range(3):
        assert await monitor.poll(["q"]) == {"q": QueueState(3, 1)}
    assert asked_for_kind(server) == ["q"]
    assert server.accepted == 2


async def test_a_queue_made_anew_is_asked_for_its_kind_again(
    server: AmqpServer, monitor: RabbitMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.rabbitmq.monitor.MISSING_INTERVAL", 0.0)
    await monitor.poll(["q"])
    server.depths = {}
    assert await monitor.poll(["q"]) == {"q": None}
    server.depths = {"q": (9, 0)}
    server.refuse_consumer = "PRECONDITION_FAILED - of queue type rabbit_stream_queue"
    assert await monitor.poll(["q"]) == {"q": QueueState(9, 0, QueueKind.STREAM)}


@pytest.mark.parametrize(
    ("before", "after", "looks_like"),
    [(QueueKind.CLASSIC, QueueKind.STREAM, (9, 0)), (QueueKind.STREAM, QueueKind.QUORUM, (8, 0))],
)
async def test_a_queue_is_asked_for_its_kind_again_when_it_was_made_anew_between_two_polls(
    server: AmqpServer,
    monitor: RabbitMonitor,
    monkeypatch: pytest.MonkeyPatch,
    before: QueueKind,
    after: QueueKind,
    looks_like: tuple[int, int],
) -> None:
    monkeypatch.setattr("proxy.rabbitmq.monitor.KIND_DOUBT_INTERVAL", 0.0)
    server.depths = {"q": (9, 0) if before is QueueKind.STREAM else (3, 1)}
    server.refuse_consumer = f"PRECONDITION_FAILED - of queue type rabbit_{before}_queue"
    await monitor.poll(["q"])
    server.depths = {"q": looks_like}
    server.refuse_consumer = f"PRECONDITION_FAILED - of queue type rabbit_{after}_queue"
    for _ in range(3):
        assert await monitor.poll(["q"]) == {"q": QueueState(*looks_like, after)}
    assert asked_for_kind(server) == ["q", "q"]


async def test_a_stream_is_asked_for_its_kind_again_and_again_when_nothing_tells_that_it_was_made_anew(
    server: AmqpServer, monitor: RabbitMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.rabbitmq.monitor.KIND_INTERVAL", 0.0)
    server.refuse_consumer = "PRECONDITION_FAILED - of queue type rabbit_stream_queue"
    await monitor.poll(["q"])
    server.refuse_consumer = "PRECONDITION_FAILED - of queue type rabbit_classic_queue"
    for _ in range(3):
        assert await monitor.poll(["q"]) == {"q": QueueState(3, 1, QueueKind.CLASSIC)}
    assert asked_for_kind(server) == ["q", "q"]


async def test_a_queue_is_asked_once_in_ten_seconds_when_its_consumers_come_and_go(
    server: AmqpServer, monitor: RabbitMonitor
) -> None:
    for number in range(20):
        server.depths = {"q": (3, number % 2)}
        await monitor.poll(["q"])
    assert asked_for_kind(server) == ["q"]


async def test_few_queues_are_asked_for_their_kind_in_one_poll(server: AmqpServer, monitor: RabbitMonitor) -> None:
    names = [f"q{number}" for number in range(3 * KINDS_PER_POLL)]
    server.depths = dict.fromkeys(names, (1, 1))
    for poll in range(1, 4):
        states = await monitor.poll(names)
        assert sum(state is not None and state.kind is not None for state in states.values()) == poll * KINDS_PER_POLL
    assert sorted(asked_for_kind(server)) == sorted(names)


@pytest.mark.parametrize("trouble", ["is_mute_to_consumers", "hangs_up_on_consumers"])
async def test_depths_come_all_the_same_when_the_kind_is_not_answered(
    server: AmqpServer, monitor: RabbitMonitor, trouble: str
) -> None:
    setattr(server, trouble, True)
    for _ in range(3):
        assert await monitor.poll(["q"]) == {"q": QueueState(3, 1)}
    assert asked_for_kind(server) == ["q"]
    assert server.accepted == 2
