"""Every secret is exchanged a thousand times, the real clients inside: no rebalance, nothing lost, nothing doubled."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from load.stack.authority import Authority
from proxy.bridge.broker import LaneState
from tests.wire.bridge import KAFKA, RABBIT, Bridge, Rotate, lived, until
from tests.wire.loop import WireLoop

TIMES = [20, pytest.param(1_000, marks=[pytest.mark.long, pytest.mark.timeout(1_800)])]
SESSION = 2.5
"""Seconds of a session with Kafka that passwords open."""
LIFE = 10.0
"""Seconds of a token's life."""
LANE_EVERY = 10
"""The lane's connection is closed in every so many exchanges."""


async def rotated(times: int, rotate: Rotate, **settings: Any) -> None:
    """Run the bridge with a flow of events and exchange its secrets so often."""
    async with Bridge.running(**settings) as bridge:
        flowing = asyncio.create_task(bridge.flow())
        await until(lambda: bridge.received)
        generation, flows = bridge.generation, bridge.flows
        for number in range(times):
            await rotate(bridge, number)
        flowing.cancel()
        await bridge.arrived()
        assert bridge.generation == generation
        assert all(now is before for now, before in zip(bridge.flows, flows, strict=True))
        assert bridge.lane.state is LaneState.OPEN
    assert [number for number, count in bridge.received.items() if count != 1] == []
    assert bridge.produced >= times
    assert bridge.kafka.wrongs == []


def everywhere(bridge: Bridge, log: str, broker: str) -> Callable[[], bool]:
    """Return what tells whether every connection has shown these secrets."""
    return lambda: (
        {*bridge.kafka.sessions.values()} == {log} and {one.secret for one in bridge.rabbit.connections} == {broker}
    )


@pytest.mark.parametrize("times", TIMES)
def test_nothing_is_lost_doubled_or_reassigned_when_passwords_are_exchanged(times: int, tmp_path: Path) -> None:
    files = {side: tmp_path / side for side in (KAFKA, RABBIT)}

    def change(bridge: Bridge, number: int) -> tuple[str, str]:
        log, broker = f"log-{number}", f"broker-{number}"
        bridge.kafka.logins, bridge.rabbit.passwords = {"tidegate": log}, {"tidegate": broker}
        files[KAFKA].write_text(log)
        files[RABBIT].write_text(broker)
        return log, broker

    def prepare(bridge: Bridge) -> None:
        bridge.kafka.session_seconds = SESSION
        change(bridge, -1)

    async def rotate(bridge: Bridge, number: int) -> None:
        log, broker = change(bridge, number)
        await bridge.reconnect_monitor()
        assert bridge.connection("monitor").secret == broker
        if number % LANE_EVERY == 0:
            await bridge.reconnect_lane()
            assert bridge.connection("main").secret == broker
        await until(lambda: {*bridge.kafka.sessions.values()} == {log})

    for file in files.values():
        file.write_text("first")
    security = {"protocol": "SASL_PLAINTEXT", "username": "tidegate", "password": {"file": str(files[KAFKA])}}
    broker = {"username": "tidegate", "password": {"file": str(files[RABBIT])}}
    lived(lambda: rotated(times, rotate, log={"security": security}, broker=broker, prepare=prepare))


def test_lane_and_log_find_back_when_a_refused_password_is_replaced_at_last(tmp_path: Path) -> None:
    files = {side: tmp_path / side for side in (KAFKA, RABBIT)}
    for file in files.values():
        file.write_text("first")

    def prepare(bridge: Bridge) -> None:
        bridge.kafka.session_seconds = SESSION
        bridge.kafka.logins, bridge.rabbit.passwords = {"tidegate": "first"}, {"tidegate": "first"}

    async def story() -> None:
        async with Bridge.running(log={"security": security}, broker=broker, prepare=prepare) as bridge:
            flowing = asyncio.create_task(bridge.flow())
            await until(lambda: bridge.received)
            bridge.kafka.logins, bridge.rabbit.passwords = {"tidegate": "second"}, {"tidegate": "second"}
            bridge.rabbit.expire("first")
            await until(lambda: bridge.lane.state is LaneState.LOST)
            await asyncio.sleep(2 * SESSION)
            assert not bridge.kafka.sessions, "nobody is logged in any more"
            assert bridge.lane.state is not LaneState.OPEN
            for file in files.values():
                file.write_text("second")
            await until(lambda: bridge.lane.state is LaneState.OPEN)
            await until(lambda: {*bridge.kafka.sessions.values()} == {"second"})
            flowing.cancel()
            await bridge.arrived()

    security = {"protocol": "SASL_PLAINTEXT", "username": "tidegate", "password": {"file": str(files[KAFKA])}}
    broker = {"username": "tidegate", "password": {"file": str(files[RABBIT])}}
    lived(story)


@pytest.mark.parametrize("times", TIMES)
def test_nothing_is_lost_doubled_or_reassigned_when_tokens_are_exchanged(times: int, tmp_path: Path) -> None:
    files = {side: tmp_path / side for side in (KAFKA, RABBIT)}

    def change(bridge: Bridge, number: int) -> tuple[str, str]:
        log, broker = f"log-{number}", f"broker-{number}"
        bridge.kafka.tokens[log] = bridge.loop.time() + LIFE
        bridge.rabbit.passwords = {"tidegate": broker}
        for side, token in ((KAFKA, log), (RABBIT, broker)):
            files[side].write_text(json.dumps({"access_token": token, "expires_in": LIFE}))
        return log, broker

    async def rotate(bridge: Bridge, number: int) -> None:
        log, broker = change(bridge, number)
        await until(everywhere(bridge, log, broker))
        assert bridge.rabbit.expire(f"broker-{number - 1}") == 0, "all have shown the new one"
        if number % LANE_EVERY == 0:
            await bridge.reconnect_monitor()
            await bridge.reconnect_lane()

    for file in files.values():
        file.write_text(json.dumps({"access_token": "first", "expires_in": LIFE}))
    security = {
        "protocol": "SASL_PLAINTEXT",
        "mechanism": "OAUTHBEARER",
        "token": {"file": str(files[KAFKA])},
    }
    broker = {"username": "tidegate", "token": {"file": str(files[RABBIT])}}

    def prepare(bridge: Bridge) -> None:
        change(bridge, -1)

    lived(lambda: rotated(times, rotate, log={"security": security}, broker=broker, prepare=prepare))


class NotedTls(WireLoop):
    """Carries no TLS, but notes with which context each connection was to be made."""

    def __init__(self, chance: Random, **more: Any) -> None:
        super().__init__(chance, **more)
        self.contexts: dict[str, Any] = {}
        """The last one by host."""

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **more: Any) -> Any:
        """See `WireLoop`."""
        self.contexts[host] = more.pop("ssl", None)
        return await super().create_connection(protocol_factory, host, port, **more)


@pytest.mark.parametrize("times", TIMES)
def test_nothing_is_lost_doubled_or_reassigned_when_certificates_are_exchanged(times: int, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    pairs = []
    for name in ("first", "second"):
        issued = authority.issue(name, tmp_path / name)
        pairs.append([file.read_bytes() for file in issued])
    certificate, key = issued

    async def rotate(bridge: Bridge, number: int) -> None:
        assert isinstance(bridge.loop, NotedTls)
        accesses = {KAFKA: bridge.log_access, RABBIT: bridge.broker.access}
        before = {side: access.context for side, access in accesses.items()}
        for file, content in zip((certificate, key), pairs[number % 2], strict=True):
            file.write_bytes(content)
        await until(lambda: all(access.context is not before[side] for side, access in accesses.items()))
        await bridge.reconnect_questions()
        await bridge.reconnect_monitor()
        if number % LANE_EVERY == 0:
            await bridge.reconnect_lane()
        for side, access in accesses.items():
            assert bridge.loop.contexts[side] is access.context

    def prepare(bridge: Bridge) -> None:
        bridge.rabbit.certified = {""}  # the client leaves it to the certificate to say who it is

    files = {
        "ca_file": str(authority.certificate),
        "certificate_file": str(certificate),
        "key_file": str(key),
    }
    lived(
        lambda: rotated(
            times,
            rotate,
            log={"security": {"protocol": "SSL", **files}},
            broker={"mechanism": "EXTERNAL", "tls": files},
            prepare=prepare,
        ),
        NotedTls,
    )
