"""The consumers' side of a connection, without a broker: frames in, acknowledgements out. What a relay passes on."""

import asyncio
import contextlib
import struct
from typing import TypeVar, cast

import pytest
from pamqp import commands, frame

from load.control.payload import Mark, encode, filler
from load.control.relay import MONITOR, Relay
from load.control.services import Services
from proxy.simulation.scenario import Queue

SECONDS = 5.0
Method = TypeVar("Method")


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.news = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)
        self.news.set()

    def close(self) -> None:
        pass

    def methods(self) -> list[object]:
        found, left = [], self.written
        while left:
            used, _, method = frame.unmarshal(left)
            found.append(method)
            left = left[used:]
        return found


class Consumer:
    """The consumers of one queue, at a connection that leads nowhere."""

    def __init__(self, queue: Queue) -> None:
        self.stored: list[Mark | None] = []
        self.begun: list[Mark | None] = []
        self.wire = Wire()
        self.services = Services(
            0,
            "work",
            queue,
            seed=1,
            on_stored=self.stored.append,
            on_begun=lambda _, mark: self.begun.append(mark),
        )
        self.connect()

    def connect(self) -> None:
        self.wire = Wire()
        self.services.connection_made(self.wire)

    async def acknowledged(self, count: int) -> list[int]:
        async with asyncio.timeout(SECONDS):
            while len(tags := [one.delivery_tag for one in self.sent(commands.Basic.Ack)]) < count:
                self.wire.news.clear()
                await self.wire.news.wait()
        return cast("list[int]", tags)

    def sent(self, kind: type[Method]) -> list[Method]:
        return [one for one in self.wire.methods() if isinstance(one, kind)]


def delivery(number: int, *, tag: int, consumer: int = 0, redelivered: bool = False) -> bytes:
    body = encode(0, 0, number, 0.0, filler(64))
    method = commands.Basic.Deliver(str(consumer), tag, redelivered, "shop", "P1")
    header = struct.pack(">HHQH", 60, 0, len(body), 0)
    return (
        frame.marshal(method, 1)
        + struct.pack(">BHI", 2, 1, len(header)) + header + b"\xce"
        + struct.pack(">BHI", 3, 1, len(body)) + body + b"\xce"
    )  # fmt: skip


def quick() -> Queue:
    return Queue(capacity=10_000, consumers=1, prefetch=0.05, service="constant")


def slow() -> Queue:
    return Queue(capacity=0.1, consumers=1, prefetch=50, service="constant")


@pytest.mark.parametrize("piece", [1, 7, 50, 10_000])
async def test_events_are_worked_on_in_their_order_when_frames_come_in_pieces_of_any_size(piece: int) -> None:
    one = Consumer(quick())
    data = b"".join(delivery(number, tag=number + 1) for number in range(5))
    for at in range(0, len(data), piece):
        one.services.data_received(data[at : at + piece])

    assert await one.acknowledged(5) == [1, 2, 3, 4, 5]
    assert [mark.number for mark in one.begun if mark] == [0, 1, 2, 3, 4]
    one.services.close()


async def test_an_event_that_comes_again_is_stored_once_when_the_connection_was_lost_meanwhile() -> None:
    one = Consumer(slow())
    one.services.data_received(delivery(0, tag=1) + delivery(1, tag=2))
    one.services.connection_lost(None)
    assert one.services.held == 0

    one.connect()
    again = [delivery(number, tag=number + 1, consumer=1) for number in range(3)]
    one.services.data_received(b"".join(again))
    assert [mark.number for mark in one.stored if mark] == [0, 1, 2]

    one.services.data_received(delivery(2, tag=4, consumer=1))
    assert [mark.number for mark in one.stored if mark] == [0, 1, 2, 2]  # nobody gave that one back: a duplicate
    one.services.close()


async def test_what_a_consumer_holds_goes_back_when_it_leaves() -> None:
    one = Consumer(slow())
    one.services.data_received(delivery(0, tag=1) + delivery(1, tag=2))
    one.services.set_consumers(0)
    one.services.data_received(delivery(2, tag=3))  # was on its way

    assert [(nack.delivery_tag, nack.requeue) for nack in one.sent(commands.Basic.Nack)] == [
        (1, True),
        (2, True),
        (3, True),
    ]
    assert one.services.held == 0
    one.services.close()


async def test_no_more_is_begun_when_the_consumers_stall() -> None:
    one = Consumer(quick())
    one.services.set_capacity(0)
    one.services.data_received(delivery(0, tag=1) + delivery(1, tag=2))
    assert (one.services.held, one.services.capacity, one.begun) == (2, 0, [])

    one.services.set_capacity(10_000)
    assert await one.acknowledged(2) == [1, 2]
    one.services.close()


async def test_depths_are_told_in_the_order_in_which_they_were_asked() -> None:
    one = Consumer(quick())
    asked = [asyncio.ensure_future(one.services.ready()) for _ in range(2)]
    await asyncio.sleep(0)
    for ready in (7, 9):
        one.services.data_received(frame.marshal(commands.Queue.DeclareOk("work", ready, 1), 1))

    assert await asyncio.gather(*asked) == [7, 9]
    one.services.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(100):
        writer.write(data)
    writer.close()


async def said(port: int, words: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(words)
        async with asyncio.timeout(SECONDS):
            return await reader.readexactly(len(words))
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    finally:
        writer.transport.abort()


async def test_a_relay_cuts_monitors_off_and_nobody_else() -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, Relay(server.sockets[0].getsockname()[1]) as relay:
        monitor = b"name: " + MONITOR
        assert await said(relay.port, monitor) == monitor

        relay.cut()
        assert await said(relay.port, monitor) == b""
        assert await said(relay.port, b"name: tidegate lane") == b"name: tidegate lane"

        relay.mend()
        assert await said(relay.port, monitor) == monitor


async def test_a_relay_that_is_far_away_answers_late_and_in_order() -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, Relay(server.sockets[0].getsockname()[1], 0.05) as relay:
        now = asyncio.get_running_loop().time
        began = now()
        assert await said(relay.port, bytes(range(200)) * 1_000) == bytes(range(200)) * 1_000
        assert now() - began >= 0.05


async def test_a_monitor_that_is_connected_is_cut_off_too() -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, Relay(server.sockets[0].getsockname()[1]) as relay:
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        writer.write(MONITOR)
        async with asyncio.timeout(SECONDS):
            await reader.readexactly(len(MONITOR))
            relay.cut()
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        writer.transport.abort()
