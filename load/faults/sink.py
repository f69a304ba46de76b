"""The services behind RabbitMQ: takes everything out of the queues as it comes, and writes down that it came.

One connection, none of it the bridge's client code, that comes back by itself.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence

from pamqp import commands

from load.deliveries import Delivered, Deliveries
from load.faults.ledger import Ledger
from load.faults.streams import FLOWING, PAYLOAD, VOLUME, at
from load.wire import SECONDS, Wire, WireError

PREFETCH, VOLUME_PREFETCH = 20, 200
ACK_SECONDS = 0.01
"""Between two acknowledgements: a queue gives at most PREFETCH / ACK_SECONDS messages a second."""
RETURNED_AGO = 3.0
"""What was acknowledged so shortly before a connection broke, RabbitMQ may not know, and give out again."""
RECONNECT_SECONDS = 0.1
LOGIN_SECONDS = 2.0
"""In a cluster, after which the next node is tried: one that is cut off lets in and then keeps waiting."""
SILENT_SECONDS = 2.0
"""In a cluster, a queue that gives nothing for so long is asked what it holds, and if it holds something, or does not
say, consumers connect anew: after the loss of a queue's leader RabbitMQ 3.10 may hold back for ever what it believes
with them (20 unacknowledged, and nothing more comes)."""
_DECLARED = b"\x00\x32\x00\x0b"


class Sink(Deliveries):
    """Consumes queues; the last one holds dead letters. Use as a task: `run`."""

    def __init__(self, ports: Sequence[int], queues: Sequence[str], ledgers: dict[tuple[int, int], Ledger]) -> None:
        super().__init__()
        self._ports = list(ports)
        self._asked: dict[int, float] = {}
        """When those that give nothing were asked what they hold."""
        self._came: dict[int, float] = {}
        """When each queue through which events flow all the time last gave something, or was last asked anew."""
        self._avoided: set[int] = set()
        self._port = 0
        """Of the node that it is connected with; 0 for none."""
        self._open = asyncio.Event()
        self._open.set()
        self._queues = queues
        self._ledgers = ledgers
        self._lost = asyncio.Event()
        self._tag, self._acked = 0, 0
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
                    seconds = LOGIN_SECONDS if len(self._ports) > 1 else SECONDS
                    wire = await asyncio.to_thread(Wire, self._port, seconds)
                    self._tag, self._acked = 0, 0
                    await asyncio.get_running_loop().create_connection(lambda: self, sock=wire.detach())
                    if self._port in self._avoided or not self._open.is_set():
                        self.cut()
                    await self._acknowledge()
                except (WireError, OSError):
                    pass  # RabbitMQ is away
                await asyncio.sleep(RECONNECT_SECONDS)
        finally:
            self.cut()

    def avoid(self, port: int) -> None:
        """Have nothing to do with a node: where it is silent, what comes out elsewhere must be seen all the same."""
        self._avoided.add(port)
        if port == self._port:
            self.cut()

    def return_to(self, port: int) -> None:
        """Take it for a node like the others again."""
        self._avoided.discard(port)

    def close(self) -> None:
        """Die as consumers do: the connection breaks, and nobody consumes until `reopen`."""
        self._open.clear()
        self.cut()

    def reopen(self) -> None:
        """Consume again."""
        self._open.set()

    def consume(self, queue: str) -> None:
        """Consume a queue that has been declared anew."""
        self.send(commands.Basic.Consume(queue=queue, consumer_tag=str(self._queues.index(queue)), nowait=True))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to consume."""
        super().connection_made(transport)
        self._asked.clear()
        names = {stream.name for stream in FLOWING}
        self._came = dict.fromkeys((at for at, name in enumerate(self._queues) if name in names), time.monotonic())
        for queue in self._queues:
            self.send(commands.Basic.Qos(prefetch_count=VOLUME_PREFETCH if queue == VOLUME.name else PREFETCH))
            self.consume(queue)
        self.send(commands.Basic.Qos(prefetch_count=PREFETCH))

    def connection_lost(self, exc: Exception | None) -> None:
        """Remember what may come again."""
        super().connection_lost(exc)
        since = time.monotonic() - RETURNED_AGO
        self._may_return |= {body for when, body in self._given if when > since}
        self._given.clear()
        self._lost.set()

    async def _acknowledge(self) -> None:
        while not self._lost.is_set():
            await asyncio.sleep(ACK_SECONDS)
            if self._tag > self._acked:
                self._acked = self._tag
                self.ack(self._tag, multiple=True)
            now = time.monotonic()
            if len(self._ports) > 1:
                self._look_for_silence(now)
            since = now - RETURNED_AGO
            while self._given and self._given[0][0] < since:
                self._given.popleft()

    def _look_for_silence(self, now: float) -> None:
        for queue, came in self._came.items():
            if queue in self._asked and now - self._asked[queue] > SILENT_SECONDS:
                self.cut()
            elif queue not in self._asked and now - came > SILENT_SECONDS:
                self._asked[queue] = now
                self.send(commands.Queue.Declare(queue=self._queues[queue], passive=True))

    def on_method(self, payload: bytes) -> None:
        """Take a queue's word for what it holds."""
        if payload[:4] == _DECLARED:
            end = 5 + payload[4]
            queue = self._queues.index(payload[5:end].decode())
            self._asked.pop(queue, None)
            self._came[queue] = time.monotonic()
            if int.from_bytes(payload[end : end + 4], "big"):
                self.cut()

    def on_delivery(self, delivered: Delivered) -> None:
        """Write down what came."""
        queue, self._tag, redelivered, body = delivered
        now = time.monotonic()
        self._given.append((now, body))
        if queue in self._came:
            self._came[queue] = now
        try:
            where, number = PAYLOAD.read(body)
            ledger = self._ledgers[at(where)]
            is_first = (
                ledger.bury(number)
                if queue == len(self._queues) - 1
                else ledger.arrive(number, in_turn=not redelivered)
            )
        except (ValueError, KeyError, IndexError):
            self.foreign += 1
            return
        if is_first:
            return
        if body in self._may_return or redelivered:  # by a leader that is no more, perhaps
            self._may_return.discard(body)
            self.returned += 1
        else:
            ledger.repeat()
