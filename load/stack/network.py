"""The network between the nodes of a cluster: `python -m load.stack.network HOME`, one process beside the nodes.

Nodes reach each other by fronts only, a port before each port that is theirs alone (Kafka's listeners for brokers and
controllers, Erlang's distribution); clients come straight. So a node can be cut off from the others, in both
directions and in silence, while clients still reach it: nothing is reset, nothing passes.

    node ─► front of another ─► its port          cut: held here, until healed

Where a node's fronts are, the others learn as nodes do: from Kafka's metadata, and from epmd, which this process is
(names of Erlang's nodes, and the port of each). Who comes, the kernel knows: the owner of the socket at the other end.
"""

import asyncio
import socket
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

from load.door import HOST, READ_BYTES, Door
from load.stack.errors import StackError
from load.stack.sockets import role_of
from load.stack.state import FILE_NAME, KAFKA, RABBITMQ, State, numbered

KAFKA_PORTS = ("kafka_internal", "kafka_controller")
RABBITMQ_PORTS = ("rabbitmq_dist",)
EPMD, CONTROL = "epmd", "network"
"""Names of this process's own ports."""
SECONDS = 5.0
"""How long whoever asks may take to do so."""

CUT, HEAL, DONE = "cut", "heal", b"done\n"


def front(port: str) -> str:
    """Return the name of the port that stands before this one."""
    return f"{port}_front"


class Wires:
    """What is cut. All of a node's connections with other nodes are, or none."""

    def __init__(self, roles: Iterable[str]) -> None:
        self._roles = frozenset(roles)
        self._cut: frozenset[str] = frozenset()
        self._whole = asyncio.Event()
        self._whole.set()

    def cut(self, roles: Iterable[str]) -> None:
        """Cut these nodes off. Raises KeyError for one that is unknown."""
        chosen = frozenset(roles)
        if strangers := chosen - self._roles:
            raise KeyError(", ".join(sorted(strangers)))
        self._cut = chosen
        self._whole.clear()

    def heal(self) -> None:
        """Let everything pass again; what was under way arrives."""
        self._cut = frozenset()
        self._whole.set()

    async def passable(self, source: str | None, target: str) -> None:
        """Return once something may go from one node to the other; None is no node, and always may."""
        while source is not None and {source, target} & self._cut:
            await self._whole.wait()


class Front(Door):
    """Stands before one port of a node."""

    def __init__(self, port: int, behind: int, *, role: str, home: Path, wires: Wires) -> None:
        super().__init__(behind, listen=port)
        self._role = role
        self._home = home
        self._wires = wires

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy both directions until one side has gone."""
        source = role_of(self._home, writer.get_extra_info("peername")[1], self.port)
        await self._wires.passable(source, self._role)
        async with self.through() as (out, into), asyncio.TaskGroup() as both:
            both.create_task(self._one_way(reader, into, source))
            both.create_task(self._one_way(out, writer, source))

    async def _one_way(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: str | None) -> None:
        while data := await reader.read(READ_BYTES):
            await self._wires.passable(source, self._role)
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("one side has gone")


class Epmd:
    """Erlang's port mapper, as far as nodes, their tools and RabbitMQ ask; what it tells of a node is its front."""

    REGISTER, REGISTERED, REGISTERED_OLD = 120, 118, 121
    ASK, ANSWER = 122, 119
    NAMES = 110
    SINCE_23 = 6
    """Highest protocol version of a node that understands the longer answer."""

    def __init__(self, port: int, fronts: dict[str, int]) -> None:
        self._port = port
        self._fronts = fronts
        self._known: dict[str, tuple[int, bytes]] = {}
        """Port to tell, and what the node said of itself, by name."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one question; a node that registers is known for as long as it holds the connection."""
        try:
            async with asyncio.timeout(SECONDS):
                (length,) = struct.unpack(">H", await reader.readexactly(2))
                question = await reader.readexactly(length)
            kind, body = question[0], question[1:]
            if kind == self.REGISTER:
                await self._register(body, reader, writer)
            elif kind == self.ASK:
                writer.write(self._answer(body.decode()))
            elif kind == self.NAMES:
                lines = "".join(f"name {name} at port {port}\n" for name, (port, _) in self._known.items())
                writer.write(struct.pack(">I", self._port) + lines.encode())
            await writer.drain()
        except (OSError, EOFError, TimeoutError, struct.error):
            pass  # gone, or no Erlang node
        finally:
            writer.close()

    async def _register(self, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port, highest, size = struct.unpack_from(">H2xH2xH", body)
        name = body[10 : 10 + size].decode()
        taken = name in self._known
        is_long = highest >= self.SINCE_23
        writer.write(struct.pack(*((">BBI", self.REGISTERED) if is_long else (">BBH", self.REGISTERED_OLD)), taken, 1))
        if taken:
            return
        self._known[name] = self._fronts.get(name, port), body[2:]
        try:
            while await reader.read(READ_BYTES):
                pass
        finally:
            del self._known[name]

    def _answer(self, name: str) -> bytes:
        if name not in self._known:
            return struct.pack(">BB", self.ANSWER, 1)
        port, about = self._known[name]
        return struct.pack(">BBH", self.ANSWER, 0, port) + about


async def run(home: Path) -> None:
    """Be the network of the stack of this folder until killed; its state file says which nodes there are."""
    state = State.load(home / FILE_NAME)
    wires = Wires((*state.kafka_roles, *state.rabbitmq_roles))
    for kind, count, names in (
        (KAFKA, state.kafka_nodes, KAFKA_PORTS),
        (RABBITMQ, state.rabbitmq_nodes, RABBITMQ_PORTS),
    ):
        for number in range(1, count + 1) if count > 1 else ():
            for name in names:
                port = state.ports[numbered(front(name), number)]
                behind = state.ports[numbered(name, number)]
                await Front(port, behind, role=numbered(kind, number), home=home, wires=wires).__aenter__()
    if state.rabbitmq_nodes > 1:
        fronts = {
            state.erlang_name(number): state.ports[numbered(front("rabbitmq_dist"), number)]
            for number in range(1, state.rabbitmq_nodes + 1)
        }
        await asyncio.start_server(Epmd(state.ports[EPMD], fronts).serve, HOST, state.ports[EPMD])

    async def obey(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        order, *roles = (await reader.readline()).decode().split() or [""]
        try:
            wires.cut(roles) if order == CUT else wires.heal()
            writer.write(DONE)
        except KeyError as error:
            writer.write(f"no node is called {error}\n".encode())
        writer.close()

    control = await asyncio.start_server(obey, HOST, state.ports[CONTROL])
    async with control:
        await control.serve_forever()


def order(port: int, *words: str) -> None:
    """Have the network of a stack cut nodes off (`cut` and their roles) or heal everything. Raises StackError."""
    try:
        with socket.create_connection((HOST, port), timeout=SECONDS) as connection:
            connection.sendall(" ".join(words).encode() + b"\n")
            answer = connection.makefile("rb").read()
    except OSError as error:
        raise StackError(f"the network between the nodes does not answer: {error}") from error
    if answer != DONE:
        raise StackError(answer.decode().strip())


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
