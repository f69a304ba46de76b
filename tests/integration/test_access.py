"""Secrets are exchanged while events flow, on brokers with the listeners that enterprises have."""

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
import structlog

from load.stack import Stack
from load.stack.kafka_settings import USERS
from proxy.bridge.broker import LaneState
from tests.support.access import Bridge, Flow
from tests.support.secrets import SCOPES, Secrets
from tests.support.tidegate import Ends, until

pytestmark = pytest.mark.timeout(180)

ROTATIONS = [3, pytest.param(20, marks=[pytest.mark.long, pytest.mark.timeout(900)])]
ISSUE = """
import sys, time, uuid
sys.path.append(sys.argv[2])
from load.stack.authority import token
now = time.time()
claims = {"sub": "tidegate", "aud": ["rabbitmq"], "scope": sys.argv[3], "iat": now, "exp": now + 6}
claims["jti"] = uuid.uuid4().hex
print(token(claims, None) if sys.argv[1] == "kafka" else token(claims))
"""
"""A command that makes a token for one of both; it lives for 6 s."""
CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def ends(secured: Stack) -> AsyncIterator[Ends]:
    async with Ends.open(secured) as ends:
        yield ends


@pytest.fixture
async def place(ends: Ends) -> tuple[str, str]:
    """A topic and a queue."""
    return await ends.topic(), await ends.queue()


def settings(ends: Ends, place: tuple[str, str], log: dict[str, Any], broker: dict[str, Any]) -> dict[str, Any]:
    topic, queue = place
    routes = {"main": {"exchange": "", "policy": "static", "queues": [queue]}}
    made = ends.settings({topic: {"routing_key": queue}}, routes=routes, broker=broker)
    return made | {"log": made["log"] | log}


class Disturbance(NamedTuple):
    """What an exchange of secrets did beside exchanging them."""

    rebalances: int = 0
    other_flows: int = 0
    lanes_not_open: int = 0
    lost: int = 0
    doubled: int = 0


async def rotated(
    ends: Ends,
    place: tuple[str, str],
    folder: Path,
    written: dict[str, Any],
    times: int,
    rotate: Callable[[Bridge, int], Awaitable[None]],
) -> Disturbance:
    """Run the bridge with a flow of events and exchange its secrets so often; all that was produced is committed."""
    async with Bridge.running(folder, written) as bridge:
        async with Flow.through(ends, *place) as flow:
            generation, flows = bridge.generation, bridge.app.assignment.flows()
            for number in range(times):
                await rotate(bridge, number)
                await flow.moves()
        disturbance = Disturbance(
            bridge.generation - generation,
            sum(now is not before for now, before in zip(bridge.app.assignment.flows(), flows, strict=True)),
            sum(lane.state is not LaneState.OPEN for lane in bridge.lanes.values()),
            flow.produced - len(flow.received),
            flow.received.total() - len(flow.received),
        )
    await until(lambda: ends.all_committed(place[0], 1, flow.produced))
    return disturbance


@pytest.mark.parametrize("times", ROTATIONS)
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256"])
async def test_nothing_is_lost_doubled_or_reassigned_when_passwords_are_exchanged(
    ends: Ends, place: tuple[str, str], secrets: Secrets, tmp_path: Path, mechanism: str, times: int
) -> None:
    is_both = mechanism == "SCRAM-SHA-512"  # once is enough for RabbitMQ
    if is_both:
        await secrets.rabbitmq_user("first")
    login = {
        "mechanism": mechanism,
        "username": "tidegate",
        "password": {"file": secrets.write("log", USERS["tidegate"])},
    }
    broker = {"username": secrets.user, "password": {"file": secrets.write("broker", "first")}} if is_both else {}

    async def rotate(bridge: Bridge, number: int) -> None:
        await secrets.kafka_password(f"log-{number}", mechanism)
        secrets.write("log", f"log-{number}\n")
        if is_both:
            await secrets.control("change_password", secrets.user, f"broker-{number}")
            secrets.write("broker", f"broker-{number}\n")
        await bridge.logged_in_anew()
        await bridge.reconnect_monitor()

    written = settings(ends, place, secrets.log("SASL_SSL", **login), secrets.broker(**broker))
    try:
        assert await rotated(ends, place, tmp_path, written, times, rotate) == Disturbance()
    finally:
        await secrets.kafka_password(USERS["tidegate"], mechanism)


@pytest.mark.parametrize("times", ROTATIONS)
async def test_nothing_is_lost_doubled_or_reassigned_when_tokens_are_exchanged(
    ends: Ends, place: tuple[str, str], secrets: Secrets, tmp_path: Path, times: int
) -> None:
    login = {"mechanism": "OAUTHBEARER", "token": {"file": secrets.write("log", secrets.kafka_token())}}
    broker = {"token": {"file": secrets.write("broker", secrets.rabbitmq_token())}}

    async def rotate(bridge: Bridge, _number: int) -> None:
        secrets.write("log", secrets.kafka_token())
        secrets.write("broker", new := secrets.rabbitmq_token())
        await bridge.logged_in_anew()
        await until(lambda: all(login._token == new for login in bridge.broker._logins._living))
        await bridge.reconnect_monitor()

    written = settings(ends, place, secrets.log("SASL_SSL", **login), secrets.broker(**broker))
    assert await rotated(ends, place, tmp_path, written, times, rotate) == Disturbance()


@pytest.mark.parametrize("times", ROTATIONS)
async def test_nothing_is_lost_doubled_or_reassigned_when_certificates_are_exchanged(
    ends: Ends, place: tuple[str, str], secrets: Secrets, tmp_path: Path, times: int
) -> None:
    secrets.user = "tidegate"  # the certificate's subject, and whom Kafka's rules of rights know
    await secrets.rabbitmq_user(uuid4().hex)
    pair = secrets.certificate("tidegate")

    async def rotate(bridge: Bridge, _number: int) -> None:
        contexts = bridge.log_access.context, bridge.broker.access.context
        secrets.certificate("tidegate")
        await until(
            lambda: bridge.log_access.context is not contexts[0] and bridge.broker.access.context is not contexts[1]
        )
        while not any(one._ssl_context is bridge.log_access.context for one in bridge.connections):
            await bridge.reconnect_questions()  # what was connecting when the files changed shows the old pair still
        await bridge.reconnect_monitor()

    written = settings(ends, place, secrets.log("SSL", **pair), secrets.broker(tls=pair, mechanism="EXTERNAL"))
    try:
        assert await rotated(ends, place, tmp_path, written, times, rotate) == Disturbance()
    finally:
        await secrets.control("delete_user", secrets.user)


async def test_commands_are_run_again_and_sessions_outlive_their_tokens_when_these_are_short(
    ends: Ends, place: tuple[str, str], secrets: Secrets, tmp_path: Path
) -> None:
    issue = tmp_path / "issue"
    issue.write_text(ISSUE)
    checkout = str(CHECKOUT)
    command = {side: [sys.executable, str(issue), side, checkout, SCOPES] for side in ("kafka", "rabbitmq")}
    login = {"mechanism": "OAUTHBEARER", "token": {"command": command["kafka"]}}
    written = settings(
        ends, place, secrets.log("SASL_SSL", **login), secrets.broker(token={"command": command["rabbitmq"]})
    )
    seen: list[set[str]] = [set(), set()]

    async def rotate(bridge: Bridge, _number: int) -> None:
        def is_new() -> bool:
            news = []
            for known, access in zip(seen, (bridge.log_access, bridge.broker.access), strict=True):
                news.append(access.token is not None and access.token not in known)
            return all(news)

        await until(is_new)
        for known, access in zip(seen, (bridge.log_access, bridge.broker.access), strict=True):
            assert access.token is not None
            known.add(access.token)
        await bridge.logged_in_anew()

    assert await rotated(ends, place, tmp_path, written, 3, rotate) == Disturbance()


async def test_a_lane_and_the_log_find_back_when_a_refused_secret_is_replaced_at_last(
    ends: Ends, place: tuple[str, str], secrets: Secrets, tmp_path: Path
) -> None:
    mechanism = "SCRAM-SHA-512"
    await secrets.rabbitmq_user("first")
    login = {
        "mechanism": mechanism,
        "username": "tidegate",
        "password": {"file": secrets.write("log", USERS["tidegate"])},
    }
    broker = {"username": secrets.user, "password": {"file": secrets.write("broker", "first")}}
    written = settings(ends, place, secrets.log("SASL_SSL", **login), secrets.broker(**broker))
    with structlog.testing.capture_logs() as logs:
        async with Bridge.running(tmp_path, written) as bridge:
            lane = bridge.lanes["main"]
            await until(lambda: lane.state is LaneState.OPEN and bridge.app.assignment.flows())
            await secrets.control("change_password", secrets.user, "second")
            await secrets.control("close_all_user_connections", secrets.user, "test")
            await secrets.kafka_password("second", mechanism)
            refused = {"login_refused", "lane_unreachable"}
            await until(lambda: {entry["event"] for entry in logs} >= refused)
            secrets.write("broker", "second")
            secrets.write("log", "second")
            await until(lambda: lane.state is LaneState.OPEN)
            await ends.produce(place[0], [b"after"])
            assert [message.body for message in await ends.receive(place[1], 1)] == [b"after"]
            told = list(logs)  # what follows is refused anew
            await secrets.kafka_password(USERS["tidegate"], mechanism)
    for name in ("login_refused", "lane_unreachable"):
        said = [json.dumps(entry, sort_keys=True) for entry in told if entry["event"] == name]
        assert len(said) == len(set(said)), said
