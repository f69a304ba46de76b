"""A few nodes of a Kafka on loopback that speak its protocol and do as a test says, with no log behind them.

They know the oldest versions of a few requests only. What a node answers to a kind of request is a function from the
request to the response; one that returns None keeps silent, and so does everything behind it on that connection.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from struct import Struct
from typing import Any

from aiokafka.protocol.admin import ApiVersionRequest_v0, ApiVersionResponse_v0
from aiokafka.protocol.coordination import FindCoordinatorRequest_v0, FindCoordinatorResponse_v0
from aiokafka.protocol.fetch import FetchRequest_v4
from aiokafka.protocol.group import HeartbeatRequest_v0, JoinGroupRequest_v1, SyncGroupRequest_v0
from aiokafka.protocol.metadata import MetadataRequest_v5, MetadataResponse_v5
from aiokafka.protocol.offset import OffsetRequest_v2

from proxy.kafka_log.connection import NEEDED
from proxy.kafka_log.protocol import TopicsRequest

_TOPICS = TopicsRequest([], with_rights=False).prepare({3: (8, 8)}).__class__
"""The bridge's own request for metadata, version 8."""
KNOWN: tuple[Any, ...] = (
    ApiVersionRequest_v0,
    MetadataRequest_v5,
    _TOPICS,
    FindCoordinatorRequest_v0,
    HeartbeatRequest_v0,
    JoinGroupRequest_v1,
    SyncGroupRequest_v0,
    FetchRequest_v4,
    OffsetRequest_v2,
)

_VERSIONS = {kind.API_KEY: [one.API_VERSION for one in KNOWN if one.API_KEY == kind.API_KEY] for kind in KNOWN}
_NAMED = {key: [version] for key, (_, version) in NEEDED.items()}
"""What they say that they know, too: nobody goes on with a node that does not."""
Answer = Callable[[Any], Any]
_SIZE = Struct(">i")
_HEADER = Struct(">hhih")


class ScriptedNode:
    """One node; `answers` by the name of the request without its version."""

    def __init__(self, number: int, cluster: "ScriptedKafka") -> None:
        self.number = number
        self.port = 0
        self.is_silent = False
        """It takes connections and requests, and answers none."""
        self.asked: Counter[str] = Counter()
        self._heard = asyncio.Event()
        self._connections: set[asyncio.StreamWriter] = set()
        self.delays: dict[str, float] = {}
        """Seconds it takes for an answer."""
        self.paces: dict[str, int] = {}
        """Bytes of an answer that it sends every 10 ms; all at once if none are said."""
        self.mutes: dict[str, float] = {}
        """Seconds for which it reads nothing more from a connection after such an answer, as a quota has it."""
        self.answers: dict[str, Answer] = {
            "ApiVersionRequest": lambda _: ApiVersionResponse_v0(
                0, [(key, min(versions), max(versions)) for key, versions in (_NAMED | _VERSIONS).items()]
            ),
            "MetadataRequest": cluster.metadata,
            "FindCoordinatorRequest": lambda _: FindCoordinatorResponse_v0(0, cluster.coordinator, "127.0.0.1", 1),
        }

    async def hears(self, name: str, times: int = 1) -> None:
        """Return once the node was asked this so many times."""
        while self.asked[name] < times:
            self._heard.clear()
            await self._heard.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until it ends."""
        self._connections.add(writer)
        try:
            await self._answer(reader, writer)
        finally:
            self._connections.remove(writer)
            self._heard.set()
            writer.close()

    async def hang_up(self) -> None:
        """End all connections."""
        for writer in self._connections:
            writer.close()
        while self._connections:
            self._heard.clear()
            await self._heard.wait()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = await reader.readexactly(_SIZE.unpack(await reader.readexactly(_SIZE.size))[0])
                key, version, correlation, client = _HEADER.unpack_from(request)
                kind = next(one for one in KNOWN if (key, version) == (one.API_KEY, one.API_VERSION))
                name = "MetadataRequest" if kind is _TOPICS else kind.__name__.rpartition("_")[0]
                self.asked[name] += 1
                self._heard.set()
                await asyncio.sleep(self.delays.get(name, 0.0))
                response = None
                if not self.is_silent:
                    response = self.answers[name](kind.decode(BytesIO(request[_HEADER.size + client :])))
                if response is None:
                    await reader.read()  # until the other side hangs up
                    break
                answer = _SIZE.pack(correlation) + response.encode()
                answer = _SIZE.pack(len(answer)) + answer
                pace = self.paces.get(name, len(answer))
                for at in range(0, len(answer), pace):
                    if at:
                        await asyncio.sleep(0.01)
                    writer.write(answer[at : at + pace])
                    await writer.drain()  # raises once nobody listens any more
                await asyncio.sleep(self.mutes.get(name, 0.0))


class ScriptedKafka:
    """The nodes, numbered from 1; all tell the same of the cluster."""

    def __init__(self) -> None:
        self.nodes: list[ScriptedNode] = []
        self.coordinator = 1
        self.leaders: dict[tuple[str, int], int] = {}
        """The node that leads each partition."""
        self.places: dict[int, tuple[str, int]] = {}
        """Where nodes are said to be, if not where they are."""

    def metadata(self, request: Any) -> Any:
        """Return what the nodes tell of themselves."""
        is_ours = isinstance(request, _TOPICS)
        topics: dict[str, list[Any]] = {}
        for (topic, number), leader in self.leaders.items():
            epoch = (0,) if is_ours else ()
            topics.setdefault(topic, []).append((0, number, leader, *epoch, [leader], [leader], []))
        places = {node.number: ("127.0.0.1", node.port) for node in self.nodes} | self.places
        rights = (0,) if is_ours else ()
        return (_TOPICS.RESPONSE_TYPE if is_ours else MetadataResponse_v5)(
            0,
            [(number, *place, None) for number, place in places.items()],
            "scripted",
            1,
            [(0, topic, False, partitions, *rights) for topic, partitions in topics.items()],
            *rights,
        )

    @property
    def hosts(self) -> list[str]:
        """Addresses of the nodes."""
        return [f"127.0.0.1:{node.port}" for node in self.nodes]


@contextlib.asynccontextmanager
async def scripted_kafka(nodes: int = 3) -> AsyncIterator[ScriptedKafka]:
    """Run so many nodes."""
    cluster = ScriptedKafka()
    async with contextlib.AsyncExitStack() as running:
        for number in range(1, nodes + 1):
            node = ScriptedNode(number, cluster)
            server = await asyncio.start_server(node.serve, "127.0.0.1")
            running.push_async_callback(_stop, server, node)
            node.port = server.sockets[0].getsockname()[1]
            cluster.nodes.append(node)
        yield cluster


async def _stop(server: asyncio.Server, node: ScriptedNode) -> None:
    server.close()
    await node.hang_up()
    await server.wait_closed()
