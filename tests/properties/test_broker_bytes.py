"""Any bytes from the broker's side: open events end once, only the documented errors come out, the lane lives on."""

import asyncio
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pamqp import commands, frame
from pamqp.header import ContentHeader
from pamqp.heartbeat import Heartbeat

from proxy.errors import BrokerError, RefusedLoginError
from proxy.model import Outcome
from proxy.rabbitmq.login import Logins
from proxy.settings import BrokerSettings
from tests.support.amqp_server import CAPABILITIES
from tests.support.told_lane import DEADLINE, ToldLane

VALID = [
    *(frame.marshal(commands.Basic.Ack(tag, multiple), 1) for tag in (0, 2, 3, 99) for multiple in (False, True)),
    frame.marshal(commands.Basic.Nack(2), 1),
    frame.marshal(commands.Basic.Return(312, "NO_ROUTE", "exchange", "queue"), 1),
    frame.marshal(ContentHeader(0, 3, commands.Basic.Properties(message_id="orders-0-p1", headers={"a": [1]})), 1),
    frame.marshal(frame.body.ContentBody(b"abc"), 1),
    frame.marshal(commands.Channel.Close(404, "NOT_FOUND", 60, 40), 1),
    frame.marshal(commands.Channel.CloseOk(), 1),
    frame.marshal(commands.Channel.OpenOk(), 1),
    frame.marshal(commands.Connection.Close(503, "COMMAND_INVALID", 0, 0), 0),
    frame.marshal(commands.Connection.CloseOk(), 0),
    frame.marshal(commands.Connection.Blocked("memory"), 0),
    frame.marshal(commands.Connection.Unblocked(), 0),
    frame.marshal(commands.Connection.Tune(0, 0, 0), 0),
    frame.marshal(Heartbeat(), 0),
    b"AMQP\x00\x00\x09\x01",
]
HANDSHAKE = [
    frame.marshal(commands.Connection.Start(0, 9, CAPABILITIES, "PLAIN", "en_US"), 0),
    frame.marshal(commands.Connection.Tune(2047, 131_072, 5), 0),
    frame.marshal(commands.Connection.OpenOk(), 0),
]


def framed(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def damaged(data: bytes, changes: list[tuple[int, int]]) -> bytes:
    damaged = bytearray(data)
    for place, value in changes:
        damaged[place % len(damaged)] = value
    return bytes(damaged)


changes = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=3)
methods = st.builds(
    lambda numbers, rest: struct.pack(">HH", *numbers) + rest,
    st.tuples(st.sampled_from([10, 20, 60, 85, 90]), st.sampled_from([10, 11, 30, 40, 41, 50, 51, 60, 80, 120, 71])),
    st.binary(max_size=40),
)
headers = st.builds(
    lambda flags, rest: struct.pack(">HHQH", 60, 0, 3, flags) + rest, st.integers(0, 65535), st.binary(max_size=60)
)
anything = st.lists(
    st.one_of(
        st.sampled_from(VALID),
        st.builds(damaged, st.sampled_from(VALID), changes),
        st.builds(
            framed, st.sampled_from([1, 2, 3, 8, 9]), st.integers(0, 3), methods | headers | st.binary(max_size=30)
        ),
        st.builds(lambda data: VALID[9] + framed(2, 1, data), headers),
        st.binary(max_size=30),
    ),
    max_size=8,
).map(b"".join)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to the end; fail on an exception that nobody took."""
    troubles: list[Any] = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context))
        async with asyncio.timeout(3 * DEADLINE):
            await test()

    asyncio.run(watched())
    assert troubles == []


@settings(max_examples=60)
@given(anything, st.lists(st.integers(0, 300), max_size=5))
def test_open_events_end_once_and_others_follow_when_the_broker_says_anything(data: bytes, cuts: list[int]) -> None:
    async def test() -> None:
        async with ToldLane.open() as told:
            await told.publish(5)
            await told.say(data, cuts)
            told.server.hang_up()
            await told.recorder.ended(6)
            told.server.acks = True
            for number in range(7, 17):  # the first ones may meet the end of the damaged connection
                await told.publish(1)
                await told.recorder.ended(number)
                if told.recorder.ends[-1].outcome is Outcome.CONFIRMED:
                    break
            assert told.recorder.ends[-1].outcome is Outcome.CONFIRMED
            assert told.lane.in_flight == told.lane._window.bytes == 0

    run(test)


@pytest.mark.parametrize("claimed", [131_073, 2**32 - 1])
def test_a_frame_is_refused_before_it_is_gathered_when_it_is_longer_than_agreed(claimed: int) -> None:
    async def test() -> None:
        async with ToldLane.open() as told:
            await told.publish(1)
            told.server.say_raw(struct.pack(">BHI", 3, 1, claimed))  # and nothing more: the connection stays
            await told.recorder.ended(2)
            assert told.recorder.ends[-1].outcome is Outcome.UNKNOWN

    run(test)


BLOCKED = b"\x00\x0a\x00\x3c"
"""Class and method of `connection.blocked`."""
GIVEN_UP = 2.0
"""Seconds after which a caller gives up here; `limits.connect_deadline` is longer."""


@settings(max_examples=60)
@example(b"".join(HANDSHAKE[:3]) + b"\x01\x00\x00\x00\x00\x00\x0b\x00\n\x00<\x06memory\xce")
@example(b"\x01\x00\x00\x00\x00\x00\x01\x00\xce")
@given(
    st.one_of(
        st.builds(damaged, st.just(b"".join(HANDSHAKE)), changes),
        st.builds(b"".join, st.lists(st.sampled_from(HANDSHAKE + VALID), max_size=4)),
        st.builds(lambda count, rest: b"".join(HANDSHAKE[:count]) + rest, st.integers(0, 3), anything),
    )
)
def test_the_login_succeeds_or_says_where_it_failed_when_the_broker_says_anything(data: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        with suppress(OSError):
            writer.write_eof()
            while await reader.read(4_096):
                pass
        writer.close()

    async def test() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            host = "127.0.0.1:{}".format(server.sockets[0].getsockname()[1])  # noqa: UP032 -- quotes within
            try:
                async with asyncio.timeout(GIVEN_UP):
                    login = await Logins(BrokerSettings(hosts=[host])).log_in(host, "test")
            except (BrokerError, RefusedLoginError) as error:
                told = str(error)
            except TimeoutError:
                assert BLOCKED in data  # the client then waits for the opposite, whatever comes; its caller gives it up
                return
            else:
                told = login.host
                await login.close(gracefully=False)
            assert told.startswith(host)

    run(test)
