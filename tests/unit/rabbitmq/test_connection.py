"""The seam to aiormq: should one of the names it rests on change its meaning, one of these fails."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiormq.abc import ChannelFrame
from aiormq.connection import TCPTransportFactory
from pamqp import commands, frame
from pamqp.body import ContentBody
from yarl import URL

from proxy.errors import BrokerError, RefusedLoginError
from proxy.publish_lane.frames import PIECE_BYTES
from proxy.rabbitmq.connection import _HEARTBEAT, RabbitConnector, RabbitWire
from proxy.rabbitmq.login import Login, Logins
from proxy.rabbitmq.words import speaking
from proxy.settings import BrokerSettings, BrokerTls
from tests.support.amqp_server import AmqpServer


class Events:
    """Remembers what the wire tells."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self._changed = asyncio.Event()

    def _tell(self, *what: Any) -> None:
        self.told.append(what)
        self._changed.set()

    def on_written(self) -> None:
        self._tell("written")

    def on_confirm(self, channel: int, tag: int, *, multiple: bool, acked: bool) -> None:
        self._tell("confirm", channel, tag, multiple, acked)

    def on_return(self, channel: int, message_id: bytes, why: str) -> None:
        self._tell("return", channel, message_id, why)

    def on_channel_closed(self, channel: int, why: str) -> None:
        self._tell("closed", channel, why)

    def on_lost(self, why: str, *, refused: bool, failed: bool = False) -> None:
        self._tell("lost", why, refused, failed)

    async def next(self, count: int = 1) -> list[tuple[Any, ...]]:
        """Return what was told, at least `count` things."""
        async with asyncio.timeout(5):
            while len(self.told) < count:
                self._changed.clear()
                await self._changed.wait()
        told, self.told = self.told, []
        return told


@pytest.fixture
async def server() -> AsyncIterator[AmqpServer]:
    async with AmqpServer.open() as server:
        yield server


@pytest.fixture
def events() -> Events:
    return Events()


def connector(server: AmqpServer, **settings: Any) -> RabbitConnector:
    return RabbitConnector(Logins(BrokerSettings(**{"hosts": [server.host], "heartbeat": 60, **settings})), "test")


@pytest.fixture
async def wire(server: AmqpServer, events: Events) -> AsyncIterator[RabbitWire]:
    wire = await connector(server).connect(events)
    yield wire
    await wire.close(gracefully=True)


async def test_confirms_and_returns_are_handed_on_as_the_broker_says_them(
    server: AmqpServer, events: Events, wire: RabbitWire
) -> None:
    assert await wire.open_channel() == 1
    server.say(commands.Basic.Ack(7, multiple=True))
    server.say(commands.Basic.Nack(8, multiple=False))
    server.give_back("topic-0-9", bytes(250))
    server.give_back("topic-0-10", b"")
    server.say(commands.Basic.Ack(10, multiple=False))
    why = "NO_ROUTE: exchange 'ex', routing key 'key'"
    assert await events.next(5) == [
        ("confirm", 1, 7, True, True),
        ("confirm", 1, 8, False, False),
        ("return", 1, b"topic-0-9", why),
        ("return", 1, b"topic-0-10", why),
        ("confirm", 1, 10, False, True),
    ]


async def test_a_closed_channel_is_told_before_it_is_answered_and_another_opens(
    server: AmqpServer, events: Events, wire: RabbitWire
) -> None:
    await wire.open_channel()
    server.say(commands.Channel.Close(404, "NOT_FOUND - no exchange", 60, 40))
    assert await events.next() == [("closed", 1, "NOT_FOUND - no exchange")]
    assert await wire.open_channel() == 2
    assert any(channel == 1 and isinstance(value, commands.Channel.CloseOk) for channel, value in server.heard)
    server.say(commands.Basic.Ack(1), channel=1)
    server.say(commands.Basic.Ack(2), channel=2)
    assert await events.next() == [("confirm", 2, 2, False, True)]


async def test_a_channel_is_closed_without_a_word_when_it_is_asked_for(
    server: AmqpServer, events: Events, wire: RabbitWire
) -> None:
    await wire.open_channel()
    await wire.close_channel(1)
    await wire.close_channel(1)
    assert any(channel == 1 and isinstance(value, commands.Channel.Close) for channel, value in server.heard)
    assert await wire.open_channel() == 2
    server.say(commands.Basic.Ack(2), channel=2)
    assert await events.next() == [("confirm", 2, 2, False, True)]
    assert list(wire._underlay.channels) == [2]


async def test_a_channel_is_asked_to_close_once_when_the_connection_is_given_up_meanwhile(
    server: AmqpServer, events: Events
) -> None:
    wire = await connector(server).connect(events)
    server.is_mute_to_closes = True
    await wire.open_channel()
    closing = asyncio.create_task(wire.close_channel(1))
    while not any(isinstance(value, commands.Channel.Close) for _, value in server.heard):  # noqa: ASYNC110
        await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    await wire.close(gracefully=True)
    asked = [channel for channel, value in server.heard if isinstance(value, commands.Channel.Close)]
    assert (asked, isinstance(server.heard[-1][1], commands.Connection.Close)) == ([1], True)
    assert closing.cancelled()


async def test_blocking_is_seen_within_a_turn_and_heartbeats_do_not_pile_up(
    server: AmqpServer, events: Events, wire: RabbitWire
) -> None:
    assert not wire.is_blocked()
    server.say(commands.Connection.Blocked("low on memory"), 0)
    async with asyncio.timeout(5):
        while not wire.is_blocked():  # noqa: ASYNC110 -- seen by looking
            await asyncio.sleep(0.01)
    queue = wire._queue
    for payload in (_HEARTBEAT, b"one", *[_HEARTBEAT] * 6, b"two"):
        queue.put_nowait(ChannelFrame(payload=payload, should_close=False))
    assert wire.is_blocked()
    assert [queue.get_nowait().payload for _ in range(queue.qsize())] == [b"one", b"two"]
    server.say(commands.Connection.Unblocked(), 0)
    async with asyncio.timeout(5):
        while wire.is_blocked():  # noqa: ASYNC110 -- seen by looking
            await asyncio.sleep(0.01)


async def test_pieces_are_written_whole_and_told_of_when_one_could_not_leave_at_once(
    server: AmqpServer, events: Events, wire: RabbitWire
) -> None:
    piece = frame.marshal(ContentBody(bytes(PIECE_BYTES - 8)), await wire.open_channel())
    assert len(piece) == PIECE_BYTES
    assert wire.write(piece, []), "the socket takes it"
    server.read(on=False)
    pieces, has_left = 1, True
    async with asyncio.timeout(10):
        while has_left:  # the kernel takes some megabytes for a broker that does not read
            await asyncio.sleep(0)
            assert wire.writable
            has_left, pieces = wire.write(piece, []), pieces + 1
    assert events.told == []
    server.read(on=True)
    assert await events.next() == [("written",)]
    async with asyncio.timeout(10):
        while sum(isinstance(value, ContentBody) for _, value in server.heard) < pieces:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert wire.write(piece, [])


@pytest.mark.parametrize(
    ("code", "refused"), [(501, True), (502, True), (503, True), (505, True), (320, False), (504, False), (541, False)]
)
async def test_a_closed_connection_is_a_refusal_when_the_code_blames_what_was_written(
    server: AmqpServer, events: Events, wire: RabbitWire, code: int, refused: bool
) -> None:
    await wire.open_channel()
    server.say(commands.Connection.Close(code, "SOME_REASON", 0, 0), 0)
    (told,) = await events.next()
    assert (told[0], told[2:]) == ("lost", (refused, code == 541))
    assert server.host in told[1]
    assert "SOME_REASON" in told[1]


async def test_a_cut_connection_is_lost_once(server: AmqpServer, events: Events, wire: RabbitWire) -> None:
    await wire.open_channel()
    server.hang_up()
    (told,) = await events.next()
    assert (told[0], told[2]) == ("lost", False)
    with pytest.raises(BrokerError):
        await wire.open_channel()
    assert events.told == []


async def test_nothing_is_told_when_the_wire_was_closed(server: AmqpServer, events: Events) -> None:
    wire = await connector(server).connect(events)
    await wire.open_channel()
    await wire.close(gracefully=True)
    await wire.close(gracefully=False)
    assert events.told == []
    assert any(isinstance(value, commands.Connection.Close) for _, value in server.heard)


async def test_channel_numbers_go_round_and_pass_over_those_in_use(
    server: AmqpServer, events: Events, wire: RabbitWire
) -> None:
    wire._underlay.connection_tune.channel_max = 3
    assert [await wire.open_channel(), await wire.open_channel()] == [1, 2]
    server.say(commands.Channel.Close(404, "NOT_FOUND", 60, 40), channel=1)
    await events.next()
    assert [await wire.open_channel(), await wire.open_channel()] == [3, 1]
    with pytest.raises(BrokerError, match="all 3 channels"):
        await wire.open_channel()


async def test_refused_credentials_name_the_user_and_the_host(server: AmqpServer, events: Events) -> None:
    server.refuse = commands.Connection.Close(403, "ACCESS_REFUSED", 0, 0)
    with pytest.raises(RefusedLoginError, match=f"{server.host} refuses broker.username 'guest'"):
        await connector(server).connect(events)


async def test_a_refused_virtual_host_is_named(server: AmqpServer, events: Events) -> None:
    server.refuse_open = commands.Connection.Close(530, "NOT_ALLOWED", 0, 0)
    with pytest.raises(BrokerError, match=r"broker\.virtual_host '/x y' to 'guest'"):
        await connector(server, virtual_host="/x y").connect(events)


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 that trusts itself, and its key."""
    files = folder / "certificate.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=test -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*command.split(), "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


async def test_tls_is_used_and_the_broker_checked_when_the_settings_name_an_authority(
    tmp_path: Path, events: Events
) -> None:
    ca, key = certificate(tmp_path)
    (tmp_path / "other").mkdir()
    stranger, _ = certificate(tmp_path / "other")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(ca, key)
    async with AmqpServer.open(context) as server:
        own = BrokerTls(ca_file=str(ca), certificate_file=str(ca), key_file=str(key))
        wire = await connector(server, tls=own).connect(events)
        assert await wire.open_channel() == 1
        await wire.close(gracefully=True)
        with pytest.raises(RefusedLoginError, match="not trusted"):
            await connector(server, tls=BrokerTls(ca_file=str(stranger))).connect(events)


@pytest.mark.parametrize("of", [commands.Channel.Open, commands.Confirm.Select])
@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_connection_that_ends_in_good_order_behind_an_answer_is_lost_and_nothing_else(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], of: type, tmp_path: Path
) -> None:
    ca, key = certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(ca, key)

    async def count_lost() -> int:
        lost = 0
        async with AmqpServer.open(context) as server:
            server.hangs_up_behind = of
            for _ in range(20):  # what comes first, the answer or the end, is chance
                wire = await connector(server, tls=BrokerTls(ca_file=str(ca))).connect(events := Events())
                with suppress(BrokerError):
                    await wire.open_channel()
                (told,) = await events.next()
                lost += (told[0], told[2]) == ("lost", False)
                await wire.close(gracefully=False)
        return lost

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert runner.run(count_lost()) == 20


@pytest.mark.parametrize("over", ["tcp", "tls"])
@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_nothing_is_unsent_when_the_connection_broke(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], over: str, tmp_path: Path
) -> None:
    context, settings = None, {}
    if over == "tls":
        ca, key = certificate(tmp_path)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(ca, key)
        settings["tls"] = BrokerTls(ca_file=str(ca))

    async def watch() -> set[int]:
        async with AmqpServer.open(context) as server:
            wire = await connector(server, **settings).connect(events := Events())
            await wire.open_channel()
            server.hang_up()
            async with asyncio.timeout(5):
                while not events.told:
                    assert wire.unsent >= 0
                    await asyncio.sleep(0)
            seen = set()
            for _ in range(3):
                seen.add(wire.unsent)
                await asyncio.sleep(0)
            await wire.close(gracefully=True)
            return seen

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert runner.run(watch()) == {0}


async def test_a_cancel_is_no_lost_connection_and_a_lost_connection_no_cancel(
    server: AmqpServer, events: Events, wire: RabbitWire
) -> None:
    with pytest.raises(BrokerError, match="host: connection closed"), speaking("host"):
        raise asyncio.CancelledError
    waiting = asyncio.create_task(_wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_login_whose_connection_ends_before_the_broker_speaks_fails_as_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Slow(TCPTransportFactory):
        async def create(self, url: URL, **kwargs: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await super().create(url, **kwargs)
            await reader.read()  # to its end: the client asks for a frame only after that
            return reader, writer

    def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    monkeypatch.setattr("proxy.rabbitmq.login.TCPTransportFactory", Slow)
    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        host = "127.0.0.1:{}".format(server.sockets[0].getsockname()[1])  # noqa: UP032 -- quotes within
        with pytest.raises(BrokerError, match=f"{host}: connection closed"):
            await Logins(BrokerSettings(hosts=[host])).log_in(host, "test")


async def _wait() -> None:
    with speaking("host"):
        await asyncio.Event().wait()


async def test_no_connection_is_left_when_preparing_it_fails(server: AmqpServer, events: Events) -> None:
    logins: list[Login] = []

    async def fail(login: Login) -> None:
        logins.append(login)
        raise BrokerError("no right to declare")

    settings = BrokerSettings(hosts=[server.host], heartbeat=60)
    with pytest.raises(BrokerError, match="no right to declare"):
        await RabbitConnector(Logins(settings), "test", fail).connect(events)
    assert logins[0].underlay.is_closed
    assert events.told == []
