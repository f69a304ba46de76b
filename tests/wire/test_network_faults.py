"""What goes wrong with connections on purpose; only the network in memory can be told to."""

import asyncio
from collections.abc import Coroutine
from contextvars import copy_context
from functools import partial
from random import Random
from typing import Any

import pytest

from proxy.simulation import virtual_time
from proxy.simulation.virtual_time import PROCESS
from tests.wire.loop import WireLoop
from tests.wire.network import SYN_SECONDS, Network

AT = "node:1"
ECHO = b"0123456789"


def live(test: Coroutine[Any, Any, None], seed: int = 1, **options: Any) -> None:
    async def lived() -> None:
        await test
        _, network = here()
        network.calm()
        network.reset("*")
        await asyncio.sleep(1)
        KEPT.clear()

    virtual_time.run(lived(), lambda: WireLoop(Random(seed), **options))


def here() -> tuple[WireLoop, Network]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, WireLoop)
    return loop, loop.network


KEPT: list[asyncio.StreamWriter] = []
"""Until the network has closed them: Python warns of writers that are dropped before."""


async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    streams = await asyncio.open_connection("node", 1)
    KEPT.append(streams[1])
    return streams


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(100):
            writer.write(data)
    except ConnectionError:
        pass
    finally:
        writer.close()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(ECHO)
    assert await reader.readexactly(len(ECHO)) == ECHO


def of(process: str, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    context = copy_context()
    context.run(PROCESS.set, process)
    return asyncio.get_running_loop().create_task(work, context=context)


def test_answers_come_when_the_silence_has_ended_and_not_before() -> None:
    async def test() -> None:
        loop, network = here()
        network.serve(AT, echo)
        streams = await connect()
        for inward, outward in ((True, True), (True, False), (False, True)):
            silence = network.silence(AT, inward=inward, outward=outward)
            asking = asyncio.ensure_future(ask(*streams))
            await asyncio.wait([asking], timeout=100)
            assert not asking.done()
            network.end(silence)
            before = loop.time()
            await asking
            assert loop.time() - before < 0.1

    live(test())


def test_only_one_process_is_cut_off_when_the_silence_is_its_own() -> None:
    async def test() -> None:
        _, network = here()
        network.serve(AT, echo)
        streams = {name: await of(name, connect()) for name in ("a", "b")}
        network.silence("node:*", "a")
        await of("b", ask(*streams["b"]))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(of("a", ask(*streams["a"])), 50)

    live(test())


def test_connecting_goes_through_when_the_silence_ends_and_gives_up_when_it_does_not() -> None:
    async def test() -> None:
        loop, network = here()
        network.serve(AT, echo)
        silence = network.silence(AT)
        connecting = asyncio.ensure_future(connect())
        await asyncio.sleep(10)
        network.end(silence)
        await ask(*await connecting)
        assert 15 <= loop.time() < 15.1  # the kernel's next attempt
        network.silence(AT)
        with pytest.raises(TimeoutError):
            await connect()
        assert loop.time() >= 15 + sum(SYN_SECONDS)

    live(test())


@pytest.mark.parametrize("after", [0, 1, 9, 10, 25])
@pytest.mark.parametrize("inward", [True, False])
def test_exactly_so_many_bytes_pass_when_a_connection_is_cut_at_a_byte(after: int, inward: bool) -> None:
    async def test() -> None:
        _, network = here()
        heard: list[bytes] = []

        async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(ECHO * 3)
            await collect(reader, heard)

        async def collect(reader: asyncio.StreamReader, got: list[bytes]) -> None:
            try:
                while True:
                    got.append(await reader.read(100))
            except ConnectionResetError:
                return

        network.serve(AT, note)
        reader, writer = await connect()
        network.cut(AT, inward=after if inward else None, outward=None if inward else after)
        writer.write(ECHO * 3)
        got: list[bytes] = []
        await collect(reader, got)
        await asyncio.sleep(1)
        cut, other = (heard, got) if inward else (got, heard)
        assert len(b"".join(cut)) == after
        assert len(b"".join(other)) in {0, 30}
        second = await connect()  # a cut is made once
        assert await second[0].readexactly(30) == ECHO * 3
        assert not network.reset("elsewhere:1")
        assert network.reset("node:*") == 1

    live(test())


def test_a_stopped_process_finds_what_came_meanwhile_when_it_is_resumed() -> None:
    async def test() -> None:
        loop, network = here()
        network.serve(AT, echo)
        streams = await of("a", connect())
        asking = of("a", ask(*streams))
        await asyncio.sleep(0)
        loop.stop_process("a")
        await asyncio.wait([asking], timeout=5)
        assert not asking.done()
        loop.resume_process("a")
        await asking

    live(test(), turn_seconds=0)


def test_a_stopped_node_takes_connections_and_says_nothing_until_it_is_resumed() -> None:
    async def test() -> None:
        loop, network = here()
        context = copy_context()
        context.run(PROCESS.set, "node")
        context.run(network.serve, AT, echo)
        loop.stop_process("node")
        streams = await connect()
        asking = asyncio.ensure_future(ask(*streams))
        await asyncio.wait([asking], timeout=5)
        assert not asking.done()
        loop.resume_process("node")
        await asking

    live(test())


def test_new_connections_are_refused_and_old_ones_stay_when_nobody_listens_any_more() -> None:
    async def test() -> None:
        _, network = here()
        listener = network.serve(AT, echo)
        streams = await connect()
        refusal = network.refuse(AT)
        with pytest.raises(ConnectionRefusedError):
            await connect()
        network.end(refusal)
        await connect()
        with pytest.raises(OSError, match="in use"):
            network.serve(AT, echo)
        listener.close()
        with pytest.raises(ConnectionRefusedError):
            await connect()
        await ask(*streams)

    live(test())


def test_bytes_take_longer_when_the_way_is_slow_or_narrow() -> None:
    async def test() -> None:
        loop, network = here()
        network.serve(AT, echo)
        streams = await connect()
        slow = network.slow(AT, delay=2.0)
        began = loop.time()
        await ask(*streams)
        assert 4 <= loop.time() - began < 4.1
        network.end(slow)
        network.slow(AT, rate=10.0)
        began = loop.time()
        await ask(*streams)
        assert 2 <= loop.time() - began < 2.1

    live(test())


def test_the_client_learns_of_it_only_by_writing_when_a_host_has_lost_its_connections() -> None:
    async def test() -> None:
        _, network = here()
        network.serve(AT, echo)
        reader, writer = await connect()
        network.vanish(AT)
        reading = asyncio.ensure_future(reader.read())
        await asyncio.wait([reading], timeout=1000)
        assert not reading.done()
        writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            await reading
        writer.close()
        await asyncio.sleep(1)
        assert network.links == []

    live(test())


def test_what_it_had_sent_arrives_and_then_the_end_when_a_process_dies() -> None:
    async def test() -> None:
        _, network = here()
        heard: list[bytes] = []

        async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.read())
            writer.close()

        network.serve(AT, note)
        _, writer = await of("a", connect())
        writer.write(ECHO)
        network.die("a")
        writer.write(b"never sent")
        await asyncio.sleep(1)
        assert heard == [ECHO]
        assert network.links == []

    live(test())


def test_the_server_sees_a_connection_that_ends_when_connecting_is_cancelled() -> None:
    async def test() -> None:
        _, network = here()
        ended: list[bytes] = []

        async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ended.append(await reader.read())
            writer.close()

        network.serve(AT, note)
        network.slow(AT, delay=0.4)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connect(), 0.6)
        await asyncio.sleep(3)
        assert ended == [b""]
        assert network.links == []

    live(test())


def test_arrivals_fall_between_the_turns_of_a_chain_when_turns_take_time() -> None:
    async def chain() -> int:
        _, network = here()
        network.serve(AT, echo)
        reader, writer = await connect()
        writer.write(ECHO)
        asking = asyncio.ensure_future(reader.readexactly(len(ECHO)))
        turns = 0
        while not asking.done():
            turns += 1
            if turns == 10_000:
                break
            await asyncio.sleep(0)
        asking.cancel()
        network.reset("*")
        await asyncio.sleep(1)
        return turns

    turns = [virtual_time.run(chain(), partial(WireLoop, Random(seed))) for seed in range(5)]
    assert max(turns) < 1000
    assert len(set(turns)) > 1
    assert virtual_time.run(chain(), lambda: WireLoop(Random(1))) == turns[1]
    assert virtual_time.run(chain(), lambda: WireLoop(Random(1), turn_seconds=0)) == 10_000
