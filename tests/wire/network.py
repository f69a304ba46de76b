"""Hosts, connections between them, and what goes wrong with those: refused, silent, slow, cut, split and merged.

Kernels and wires belong to no process: they go on while a process is stopped, and what reached its sockets waits there.
Each fault is a method that returns a `Fault`, which lasts until it is ended. It strikes one address `host:port`, or
`host:*`, or all with `*`, and either everybody's connections or those of one client process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextvars import Context, copy_context
from dataclasses import dataclass
from math import inf
from random import Random

from proxy.simulation.virtual_time import PROCESS
from tests.wire.transport import Link, WireTransport, world

LATENCY = 0.0005
"""Seconds that a way takes on average, unless a fault says otherwise; each a chance between none and twice that."""
SYN_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Seconds from one attempt of a kernel to connect to the next; after the last it gives up, as Linux does."""
_TINY = 0.5
"""The share of partial reads that get a few bytes only."""
Factory = Callable[[], asyncio.BaseProtocol]
Callback = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Fault:
    """Something wrong with connections."""

    at: str
    process: str
    """Whose connections; "" is everybody's."""
    silent_inward: bool = False
    silent_outward: bool = False
    refuses: bool = False
    delay: float = 0.0
    """Seconds that a way takes longer."""
    rate: float = inf
    """Bytes a second."""
    cut_inward: int | None = None
    """So many bytes pass until the connection on which the next one comes is cut."""
    cut_outward: int | None = None
    is_spent: bool = False
    """A cut has been made."""
    changes: Callable[[Link, bytes], bytes] | None = None
    """What becomes of bytes from who listens."""

    def strikes(self, at: str, process: str) -> bool:
        """Return whether it concerns a connection."""
        host = self.at.removesuffix("*")
        return (at.startswith(host) if host != self.at else at == self.at) and self.process in {"", process}


class Listener:
    """What listens at an address; enough of `asyncio.Server` for who makes one."""

    def __init__(self, network: "Network", at: str, factory: Factory) -> None:
        self._network = network
        self.at = at
        self.factory = factory
        self.context = copy_context()
        self.sockets = ()

    def close(self) -> None:
        """Listen no more; connections stay."""
        self._network.forget_listener(self)

    async def wait_closed(self) -> None:
        """Return at once."""


@dataclass(slots=True)
class Syn:
    """An attempt to connect."""

    at: str
    process: str
    established: "asyncio.Future[WireTransport]"
    context: Context
    is_heard: bool = False
    """The listener's machine has answered; the repetitions count no more."""


class Network:
    """One history's; its chance decides latencies, splits and merges."""

    def __init__(self, loop: asyncio.AbstractEventLoop, chance: Random) -> None:
        self.loop = loop
        self.context: Context = world()
        self.latency = LATENCY
        self.splits = 0.0
        """The share of reads that get only a part of what has arrived, often a byte or two."""
        self.links: list[Link] = []
        """Those of which an end is open, in the order of connecting."""
        self._chance = chance
        self._listeners: dict[str, Listener] = {}
        self._faults: list[Fault] = []
        self._dead: set[str] = set()

    # -- hosts --------------------------------------------------------------------------------------------------------

    def listen(self, at: str, factory: Factory) -> Listener:
        """Take connections at `host:port`, in the process of whoever calls this. Raises `OSError` if somebody does."""
        if at in self._listeners:
            raise OSError(98, f"{at}: address already in use")
        listener = self._listeners[at] = Listener(self, at, factory)
        return listener

    def serve(self, at: str, callback: Callback, *, limit: int = 2**24) -> Listener:
        """Take connections and run a coroutine for each, with a reader that buffers `limit` bytes and a writer."""

        def factory() -> asyncio.BaseProtocol:
            reader = asyncio.StreamReader(limit=limit, loop=self.loop)
            return asyncio.StreamReaderProtocol(reader, callback, loop=self.loop)

        return self.listen(at, factory)

    def forget_listener(self, listener: Listener) -> None:
        """See `Listener.close`."""
        if self._listeners.get(listener.at) is listener:
            del self._listeners[listener.at]

    async def connect(self, factory: Factory, at: str) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect the calling process. Raises `OSError` as a kernel does."""
        process = PROCESS.get()
        if process in self._dead:
            raise OSError(9, "the process is dead")
        established: asyncio.Future[WireTransport] = self.loop.create_future()
        syn = Syn(at, process, established, copy_context())
        for wait in SYN_SECONDS:
            self.loop.call_later(self.pace_of(at, process)[0], self._on_syn, syn, context=self.context)
            try:
                await asyncio.wait([established], timeout=wait)
            except asyncio.CancelledError:
                if not established.cancel() and established.exception() is None:
                    established.result().abort()
                raise
            if established.done():
                transport = established.result()
                protocol = factory()
                transport.begin(protocol)
                return transport, protocol
        established.cancel()
        raise TimeoutError(110, f"Connect call failed {at}")

    # -- faults -------------------------------------------------------------------------------------------------------

    def silence(self, at: str, process: str = "", *, inward: bool = True, outward: bool = True) -> Fault:
        """Let nothing through, and nobody know: what is sent waits and arrives when the silence has ended."""
        return self._begin(Fault(at, process, silent_inward=inward, silent_outward=outward))

    def refuse(self, at: str, process: str = "") -> Fault:
        """Refuse new connections."""
        return self._begin(Fault(at, process, refuses=True))

    def slow(self, at: str, process: str = "", *, delay: float = 0.0, rate: float = inf) -> Fault:
        """Make every way `delay` seconds longer and `rate` bytes a second narrow."""
        return self._begin(Fault(at, process, delay=delay, rate=rate))

    def cut(self, at: str, process: str = "", *, inward: int | None = None, outward: int | None = None) -> Fault:
        """Reset the connection on which the byte after so many more passes, towards the listener or back; once."""
        return self._begin(Fault(at, process, cut_inward=inward, cut_outward=outward))

    def change(self, at: str, changes: Callable[[Link, bytes], bytes]) -> Fault:
        """Have what comes from who listens changed on its way."""
        return self._begin(Fault(at, "", changes=changes))

    def end(self, fault: Fault) -> None:
        """End a fault; what waited in silence arrives."""
        self._faults.remove(fault)
        for link in list(self.links):
            link.inward.read_on()
            link.outward.read_on()

    def calm(self) -> None:
        """End all faults."""
        for fault in list(self._faults):
            self.end(fault)

    def reset(self, at: str, process: str = "") -> int:
        """Reset every connection of these; return how many."""
        links = [link for link in self.links if Fault(at, process).strikes(link.at, link.process)]
        for link in links:
            link.reset()
        return len(links)

    def vanish(self, at: str) -> None:
        """Let a host lose its connections as a power failure does: who writes to it again is told by a reset."""
        for link in list(self.links):
            if Fault(at, "").strikes(link.at, link.process):
                link.outward.source.vanish(told=False)
                self.on_end(link)

    def die(self, process: str) -> None:
        """Close all sockets of a client process for good, as its death does; what they had taken still arrives."""
        self._dead.add(process)
        for link in list(self.links):
            if link.process == process:
                link.inward.source.vanish(told=True)
                self.on_end(link)

    # -- what kernels ask ---------------------------------------------------------------------------------------------

    def is_silent(self, link: Link, *, inward: bool) -> bool:
        """Return whether nothing gets through."""
        return self._is_silent(link.at, link.process, inward=inward)

    def pace(self, link: Link) -> tuple[float, float]:
        """Return the latency, and the bytes a second."""
        return self.pace_of(link.at, link.process)

    def pace_of(self, at: str, process: str) -> tuple[float, float]:
        """Return the latency between an address and a process now, and the bytes a second."""
        latency, rate = self.latency * 2 * self._chance.random(), inf
        for fault in self._striking(at, process):
            latency += fault.delay
            rate = min(rate, fault.rate)
        return latency, rate

    def portion(self, size: int) -> int:
        """Return how many of `size` bytes a read gets."""
        if size > 1 and self.splits and self._chance.random() < self.splits:
            return self._chance.randint(1, min(size - 1, 9) if self._chance.random() < _TINY else size - 1)
        return size

    def let_through(self, link: Link, size: int, *, inward: bool) -> int:
        """Count bytes that pass; return how many of them do before the connection is cut."""
        for fault in self._striking(link.at, link.process):
            left = fault.cut_inward if inward else fault.cut_outward
            if left is None or fault.is_spent:
                continue
            if left < size:
                fault.is_spent = True
                return left
            if inward:
                fault.cut_inward = left - size
            else:
                fault.cut_outward = left - size
        return size

    def changed(self, link: Link, data: bytes) -> bytes:
        """Return what becomes of bytes from who listens."""
        for fault in self._striking(link.at, link.process):
            if fault.changes is not None:
                data = fault.changes(link, data)
        return data

    def on_end(self, link: Link) -> None:
        """Forget a connection of which no end is open."""
        if link.is_over and link in self.links:
            self.links.remove(link)

    # -- within -------------------------------------------------------------------------------------------------------

    def _begin(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def _striking(self, at: str, process: str) -> Iterator[Fault]:
        return (fault for fault in self._faults if fault.strikes(at, process))

    def _is_silent(self, at: str, process: str, *, inward: bool) -> bool:
        return any(fault.silent_inward if inward else fault.silent_outward for fault in self._striking(at, process))

    def _on_syn(self, syn: Syn) -> None:
        at, process = syn.at, syn.process
        if syn.is_heard or any(self._is_silent(at, process, inward=inward) for inward in (True, False)):
            return
        syn.is_heard = True
        listener = self._listeners.get(at)
        back = self.pace_of(at, process)[0]
        if listener is None or any(fault.refuses for fault in self._striking(at, process)):
            self.loop.call_later(back, _refuse, syn, context=self.context)
            return
        link = Link(self, at, process)
        inward, outward = link.inward, link.outward
        ends = WireTransport(self, inward, outward, syn.context), WireTransport(self, outward, inward, listener.context)
        link.join(*ends)
        self.links.append(link)
        self.loop.call_soon(_accept, ends[1], listener.factory, context=listener.context)
        self.loop.call_later(back, _establish, syn.established, ends[0], context=self.context)


def _accept(transport: WireTransport, factory: Factory) -> None:
    transport.begin(factory())


def _establish(established: "asyncio.Future[WireTransport]", transport: WireTransport) -> None:
    if established.done():
        transport.abort()
    else:
        established.set_result(transport)


def _refuse(syn: Syn) -> None:
    if not syn.established.done():
        syn.established.set_exception(ConnectionRefusedError(111, f"Connect call failed {syn.at}"))
