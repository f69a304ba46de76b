"""The services behind RabbitMQ: takes everything out of the queues as it comes, and writes down that it came.

Frames are taken apart by hand, with none of the bridge's client code, on one connection that comes back by itself.
"""

import asyncio
import struct
import time
from collections import deque
from collections.abc import Sequence
from typing import cast

from pamqp import base, commands, frame

from load.faults.ledger import Ledger
from load.faults.streams import FLOWING, PAYLOAD, VOLUME, at
from load.wire import CHANNEL, Wire, WireError

PREFETCH, VOLUME_PREFETCH = 20, 200
ACK_SECONDS = 0.01
"""Between two acknowledgements: a queue gives at most PREFETCH / ACK_SECONDS messages a second."""
RETURNED_AGO = 3.0
"""What was acknowledged so shortly before a connection broke, RabbitMQ may not know, and give out again."""
RECONNECT_SECONDS = 0.1
SILENT_SECONDS = 2.0
"""In a cluster, consumers connect anew when a queue gives nothing for so long: after the loss of a queue's leader
RabbitMQ 3.10 may hold back for ever what it believes with them (20 unacknowledged, and nothing more comes)."""

_FRAME = struct.Struct(">BHI")
_SIZE = struct.Struct(">Q")
_METHOD, _HEADER, _BODY = 1, 2, 3
_DELIVER = b"\x00\x3c\x00\x3c"
_CLOSES = (b"\x00\x0a\x00\x32", b"\x00\x14\x00\x28")
_ACK = struct.Struct(">BHIHHQBB")


class Sink(asyncio.Protocol):
    """Consumes queues; the last one holds dead letters. Use as a task: `run`."""

    def __init__(self, ports: Sequence[int], queues: Sequence[str], ledgers: dict[tuple[int, int], Ledger]) -> None:
        self._ports = list(ports)
        self._came: dict[int, float] = {}
        """When each queue through which events flow all the time last gave something, or was last asked anew."""
        self._avoided: set[int] = set()
        self._port = 0
        """Of the node that it is connected with; 0 for none."""
        self._open = asyncio.Event()
        self._open.set()
        self._queues = queues
        self._ledgers = ledgers
        self._transport: asyncio.Transport | None = None
        self._lost = asyncio.Event()
        self._buffer = b""
        self._queue, self._tag, self._acked = 0, 0, 0
        self._missing = 0
        self._is_redelivered = False
        """RabbitMQ says of the message at hand that it was given out before: by a leader that is no more, perhaps."""
        self._body: list[bytes] = []
        self._given: deque[tuple[float, bytes]] = deque()
        """What came lately."""
        self._may_return: set[bytes] = set()
        self.foreign = 0
        """Messages that the source never sent."""
        self.returned = 0
        """Messages that RabbitMQ gave out again because the sink's connection had broken."""

    async def run(self) -> None:
        """Consume until cancelled."""
        try:
            while True:
                await self._open.wait()
                self._lost.clear()
                self._port = next((port for port in self._ports if port not in self._avoided), self._ports[0])
                self._ports.remove(self._port)
                self._ports.append(self._port)
                try:
                    wire = await asyncio.to_thread(Wire, self._port)
                    self._buffer, self._tag, self._acked, self._missing = b"", 0, 0, 0
                    await asyncio.get_running_loop().create_connection(lambda: self, sock=wire.detach())
                    if self._port in self._avoided or not self._open.is_set():
                        self._break()
                    await self._acknowledge()
                except (WireError, OSError):
                    pass  # RabbitMQ is away
                await asyncio.sleep(RECONNECT_SECONDS)
        finally:
            if self._transport is not None:
                self._transport.abort()

    def avoid(self, port: int) -> None:
        """Have nothing to do with a node: where it is silent, what comes out elsewhere must be seen all the same."""
        self._avoided.add(port)
        if port == self._port:
            self._break()

    def return_to(self, port: int) -> None:
        """Take it for a node like the others again."""
        self._avoided.discard(port)

    def close(self) -> None:
        """Die as consumers do: the connection breaks, and nobody consumes until `reopen`."""
        self._open.clear()
        self._break()

    def reopen(self) -> None:
        """Consume again."""
        self._open.set()

    def _break(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def consume(self, queue: str) -> None:
        """Consume a queue that has been declared anew."""
        self._send(commands.Basic.Consume(queue=queue, consumer_tag=str(self._queues.index(queue)), nowait=True))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to consume."""
        self._transport = cast("asyncio.Transport", transport)
        names = {stream.name for stream in FLOWING}
        self._came = dict.fromkeys((at for at, name in enumerate(self._queues) if name in names), time.monotonic())
        for queue in self._queues:
            self._send(commands.Basic.Qos(prefetch_count=VOLUME_PREFETCH if queue == VOLUME.name else PREFETCH))
            self.consume(queue)
        self._send(commands.Basic.Qos(prefetch_count=PREFETCH))

    def connection_lost(self, _exc: Exception | None) -> None:
        """Remember what may come again."""
        self._transport = None
        since = time.monotonic() - RETURNED_AGO
        self._may_return |= {body for when, body in self._given if when > since}
        self._given.clear()
        self._lost.set()

    def data_received(self, data: bytes) -> None:
        """Take all frames that are whole."""
        buffer, here = (self._buffer + data if self._buffer else data), 0
        while len(buffer) - here >= _FRAME.size:
            kind, _, size = _FRAME.unpack_from(buffer, here)
            if len(buffer) - here < size + _FRAME.size + 1:
                break
            self._on_frame(kind, buffer[here + _FRAME.size : here + _FRAME.size + size])
            here += size + _FRAME.size + 1
        self._buffer = buffer[here:]

    async def _acknowledge(self) -> None:
        while not self._lost.is_set():
            await asyncio.sleep(ACK_SECONDS)
            if self._tag > self._acked and self._transport is not None:
                self._acked = self._tag
                self._transport.write(_ACK.pack(_METHOD, CHANNEL, 13, 60, 80, self._tag, 1, 0xCE))
            now = time.monotonic()
            if len(self._ports) > 1 and now - min(self._came.values(), default=now) > SILENT_SECONDS:
                self._break()
            since = now - RETURNED_AGO
            while self._given and self._given[0][0] < since:
                self._given.popleft()

    def _on_frame(self, kind: int, payload: bytes) -> None:
        if kind == _BODY:
            self._body.append(payload)
            self._missing -= len(payload)
            if self._missing <= 0:
                self._on_message(b"".join(self._body))
        elif kind == _HEADER:
            (self._missing,) = _SIZE.unpack_from(payload, 4)
            self._body.clear()
        elif kind == _METHOD and payload[:4] == _DELIVER:
            end = 5 + payload[4]
            self._queue = int(payload[5:end])
            (tag,) = _SIZE.unpack_from(payload, end)
            self._next_tag = tag
            self._is_redelivered = bool(payload[end + _SIZE.size])
        elif kind == _METHOD and payload[:4] in _CLOSES and self._transport is not None:
            self._transport.abort()

    def _on_message(self, body: bytes) -> None:
        self._tag = self._next_tag
        now = time.monotonic()
        self._given.append((now, body))
        if self._queue in self._came:
            self._came[self._queue] = now
        try:
            where, number = PAYLOAD.read(body)
            ledger = self._ledgers[at(where)]
            is_first = ledger.bury(number) if self._queue == len(self._queues) - 1 else ledger.arrive(number)
        except (ValueError, KeyError, IndexError):
            self.foreign += 1
            return
        if is_first:
            return
        if body in self._may_return or self._is_redelivered:
            self._may_return.discard(body)
            self.returned += 1
        else:
            ledger.repeat()

    def _send(self, method: base.Frame) -> None:
        if self._transport is not None:
            self._transport.write(frame.marshal(method, CHANNEL))
