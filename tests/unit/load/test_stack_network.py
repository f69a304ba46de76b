"""The network between the nodes of a cluster: its epmd, its fronts, and who is cut off."""

import asyncio
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from load.door import HOST
from load.stack.network import Epmd, Front, Wires
from load.stack.processes import MARK, kill_marked, spawn
from load.stack.sockets import role_of

FRONT = 30001
REGISTER = struct.pack(">BHBBHHH", 120, 20001, 77, 0, 6, 5, 3) + b"one" + struct.pack(">H", 0)
CONNECT_AND_WAIT = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"from a node")
while s.recv(100): pass
"""


@asynccontextmanager
async def epmd(fronts: dict[str, int]) -> AsyncIterator[int]:
    names = Epmd(4369, fronts)
    server = await asyncio.start_server(names.serve, HOST, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def asked(port: int, question: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(struct.pack(">H", len(question)) + question)
    answer = await reader.read()
    writer.close()
    return answer


async def register(port: int) -> tuple[bytes, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(struct.pack(">H", len(REGISTER)) + REGISTER)
    return await reader.readexactly(6), writer


async def until_unknown(port: int) -> None:
    async with asyncio.timeout(10):
        while True:
            if await asked(port, b"zone") == b"\x77\x01":
                return
            await asyncio.sleep(0.01)


async def test_a_nodes_front_is_told_when_somebody_asks_for_its_port() -> None:
    async with epmd({"one": FRONT}) as port:
        answer, node = await register(port)
        told = await asked(port, b"zone")
        names = await asked(port, b"n")
        node.close()
        await until_unknown(port)

    assert answer == struct.pack(">BBI", 118, 0, 1)
    assert told[:2] == b"\x77\x00"
    assert struct.unpack(">H", told[2:4]) == (FRONT,)
    assert told[4:] == REGISTER[3:]
    assert names == struct.pack(">I", 4369) + b"name one at port 30001\n"


async def test_a_nodes_own_port_is_told_when_nothing_stands_before_it() -> None:
    async with epmd({}) as port:
        _, node = await register(port)
        told = await asked(port, b"zone")
        node.close()

    assert struct.unpack(">H", told[2:4]) == (20001,)


async def test_a_second_node_is_refused_when_its_name_is_taken() -> None:
    async with epmd({}) as port:
        _, node = await register(port)
        answer, second = await register(port)
        node.close()
        second.close()

    assert answer[:2] == b"\x76\x01"


async def test_only_nodes_wait_when_one_is_cut_off() -> None:
    wires = Wires(["a", "b", "c"])
    wires.cut(["a"])

    await wires.passable(None, "a")
    await wires.passable("b", "c")
    held = [asyncio.create_task(wires.passable(*pair)) for pair in (("a", "b"), ("b", "a"))]
    await asyncio.sleep(0)
    assert not any(task.done() for task in held)
    wires.heal()
    await asyncio.gather(*held)


def test_a_stranger_is_named_when_it_is_to_be_cut_off() -> None:
    with pytest.raises(KeyError, match="d"):
        Wires(["a"]).cut(["a", "d"])


async def test_what_a_node_sends_is_held_until_healed_when_it_is_cut_off(tmp_path: Path) -> None:
    arrived: asyncio.Queue[bytes] = asyncio.Queue()
    sources: asyncio.Queue[str | None] = asyncio.Queue()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await arrived.put(await reader.read(100))
        writer.close()

    class Noting(Wires):
        async def passable(self, source: str | None, target: str) -> None:
            sources.put_nowait(source)
            await super().passable(source, target)

    wires = Noting(["kafka", "kafka-2"])
    wires.cut(["kafka-2"])
    server = await asyncio.start_server(receive, HOST, 0)
    behind = server.sockets[0].getsockname()[1]
    async with server, Front(0, behind, role="kafka", home=tmp_path, wires=wires) as front:
        command = [sys.executable, "-c", CONNECT_AND_WAIT, str(front.port)]
        spawn(command, env={MARK: f"{tmp_path}:kafka-2"}, output=tmp_path / "output")
        try:
            async with asyncio.timeout(20):
                assert await sources.get() == "kafka-2"
                assert arrived.empty()
                wires.heal()
                assert await arrived.get() == b"from a node"
        finally:
            kill_marked(tmp_path)


async def test_nobody_is_the_role_when_no_node_holds_the_other_end(tmp_path: Path) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), HOST, 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        _, writer = await asyncio.open_connection(HOST, port)
        assert role_of(tmp_path, writer.get_extra_info("sockname")[1], port) is None
        writer.close()
