"""One TCP connection in memory: two ends with asyncio's transports, and the bytes on their way in each direction.

It behaves as Linux does under asyncio: what is written lies in the sender's and the receiver's kernel, which take so
much and no more; a closed socket says FIN, or RST if it leaves bytes unread; bytes for a socket that is gone are
answered by RST; what came before an RST can still be read.
"""

import asyncio
from asyncio import transports
from collections import deque
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

from proxy.simulation.virtual_time import PROCESS

if TYPE_CHECKING:
    from tests.wire.network import Network

KERNEL_BYTES = 64 * 1024
"""So much of one direction lies in both kernels and on the wire, unread; whoever writes more waits."""
READ_BYTES = 256 * 1024
"""The most that asyncio reads at once."""


class End:
    """What travels beside bytes."""

    def __init__(self, name: str) -> None:
        self.name = name


FIN = End("FIN")
RST = End("RST")


def world() -> Context:
    """Return a context that belongs to no process: in it run wires and kernels, which nobody can stop."""
    context = copy_context()
    context.run(PROCESS.set, "")
    return context


class Way:
    """One direction of a link."""

    def __init__(self, network: "Network", link: "Link", *, inward: bool) -> None:
        self.link = link
        self.inward = inward
        """Whether it leads to who listens."""
        self.source: WireTransport
        self.target: WireTransport
        self.arrived = bytearray()
        """In the target's kernel, unread."""
        self.end: End | None = None
        """What came behind the last byte."""
        self._network = network
        self._under_way: deque[bytes | End] = deque()
        self._due = 0
        """So many of them would have arrived, but that there is silence."""
        self._bytes = 0
        self._sent = 0.0
        """When the last byte is on the wire."""
        self._last_arrival = 0.0

    @property
    def room(self) -> int:
        """Bytes that can be sent now."""
        return max(KERNEL_BYTES - self._bytes - len(self.arrived), 0)

    def send(self, what: bytes | End) -> None:
        """Put bytes, within the room, or an end on their way."""
        size = 0 if isinstance(what, End) else len(what)
        self._bytes += size
        self._under_way.append(what)
        network = self._network
        latency, rate = network.pace(self.link)
        self._sent = max(self._sent, network.loop.time()) + size / rate
        self._last_arrival = max(self._last_arrival, self._sent + latency)
        network.loop.call_at(self._last_arrival, self._arrive, self._under_way, context=network.context)

    def take(self, size: int) -> bytes:
        """Take bytes out of the kernel."""
        taken = bytes(self.arrived[:size])
        del self.arrived[:size]
        self.source.on_room()
        return taken

    def read_on(self) -> None:
        """Let arrive what is due, unless there is silence."""
        while self._due and not self._network.is_silent(self.link, inward=self.inward):
            self._due -= 1
            self._receive(self._under_way.popleft())

    def forget(self) -> None:
        """Lose what is under way, and what would arrive is lost, too."""
        self._under_way = deque()
        self._due = 0
        self._bytes = 0

    def _arrive(self, under_way: "deque[bytes | End]") -> None:
        if under_way is self._under_way:
            self._due += 1
            self.read_on()

    def _receive(self, what: bytes | End) -> None:
        if isinstance(what, End):
            self.end = what if self.end is None or what is RST else self.end
            if what is RST:
                self.link.back(self).forget()
            self.target.on_readable()
            self.target.on_room()
            return
        self._bytes -= len(what)
        if self.target.is_gone:
            self.forget()
            self.link.back(self).send(RST)
            return
        if not self.inward:
            what = self._network.changed(self.link, what)
        through = self._network.let_through(self.link, len(what), inward=self.inward)
        self.arrived += what[:through]
        if through < len(what):
            self.link.reset()
        self.target.on_readable()


class Link:
    """One connection; made when it is established. `inward` leads from whoever connected."""

    def __init__(self, network: "Network", at: str, process: str) -> None:
        self.at = at
        """`host:port` that it leads to."""
        self.process = process
        """Whose it is: the process that connected."""
        self.inward = Way(network, self, inward=True)
        self.outward = Way(network, self, inward=False)

    def join(self, client: "WireTransport", server: "WireTransport") -> None:
        """Put the ends on."""
        self.inward.source = self.outward.target = client
        self.inward.target = self.outward.source = server

    def back(self, way: Way) -> Way:
        """Return the other direction."""
        return self.outward if way.inward else self.inward

    def reset(self) -> None:
        """Break it at both ends at once, as something between them that answers for the other."""
        for way in (self.inward, self.outward):
            way.forget()
            way.end = RST
            way.target.on_readable()
            way.target.on_room()

    @property
    def is_over(self) -> bool:
        """Whether both ends are gone."""
        return self.inward.source.is_gone and self.inward.target.is_gone


class WireTransport(transports._FlowControlMixin, asyncio.Transport):  # the real ones' limits
    """One end; `context` is that of its process, in which it reads and is told."""

    def __init__(self, network: "Network", out: Way, back: Way, context: Context) -> None:
        super().__init__({}, network.loop)
        self.is_gone = False
        """The socket is closed."""
        self.context = context
        self.link = out.link
        self._network = network
        self._protocol: Any = None
        self._out = out
        self._in = back
        self._pending = bytearray()
        self._is_closing = False
        self._is_lost = False
        self._is_paused = False
        self._is_made = False
        self._eof = False
        self._told_end = False
        self._is_reading = False

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        """Tell the protocol that the connection is made, and read from then on."""
        if self._is_lost:
            return
        self._protocol = protocol
        self._is_made = True
        self._protocol.connection_made(self)
        self.on_readable()

    # -- asyncio's transport ------------------------------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """See `asyncio.BaseTransport`."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """See `asyncio.BaseTransport`."""
        return self._protocol  # type: ignore[no-any-return]

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self._is_closing

    def is_reading(self) -> bool:
        """See `asyncio.ReadTransport`."""
        return not self._is_closing and not self._is_paused

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        if self._is_paused:
            self._is_paused = False
            self.on_readable()

    def get_write_buffer_size(self) -> int:
        """See `asyncio.WriteTransport`."""
        return len(self._pending)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """See `asyncio.WriteTransport`."""
        if self._eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self._is_lost:
            return
        if not self._pending:
            if self._in.end is RST:
                self._fail(BrokenPipeError(32, "Broken pipe"))
                return
            room = self._out.room
            if room:
                self._out.send(bytes(data[:room]))
            data = data[room:]
        if data:
            self._pending += data
            self._maybe_pause_protocol()  # type: ignore[attr-defined]

    def can_write_eof(self) -> bool:
        """See `asyncio.WriteTransport`."""
        return True

    def write_eof(self) -> None:
        """See `asyncio.WriteTransport`."""
        if self._is_closing or self._eof:
            return
        self._eof = True
        if not self._pending:
            self._out.send(FIN)

    def close(self) -> None:
        """See `asyncio.BaseTransport`."""
        if self._is_closing:
            return
        self._is_closing = True
        if not self._pending:
            self._lose(None)

    def abort(self) -> None:
        """See `asyncio.WriteTransport`."""
        self._fail(None)

    # -- from the kernel ----------------------------------------------------------------------------------------------

    def on_readable(self) -> None:
        """Read, when its process comes to it."""
        if self._is_made and not self._is_reading and not self._is_paused and self._has_news:
            self._is_reading = True
            self._soon(self._read)

    def on_room(self) -> None:
        """Write on, when its process comes to it."""
        if self._pending:
            self._soon(self._write_on)

    def vanish(self, *, told: bool) -> None:
        """Close the socket as the death of its process does; unless `told`, the other end hears nothing of it."""
        if self.is_gone:
            return
        was_lost, self._is_lost, self._is_closing = self._is_lost, True, True
        self._pending.clear()
        if told:
            self._close_socket()
        self.is_gone = True
        if self._is_made and not was_lost:
            # Whoever cleans up behind it must not wait for ever; whatever that writes goes nowhere.
            self._soon(self._protocol.connection_lost, None)

    @property
    def _has_news(self) -> bool:
        return bool(self._in.arrived) or (self._in.end is not None and not self._told_end)

    def _read(self) -> None:
        self._is_reading = False
        if self._is_lost or self._is_closing or self._is_paused:
            return
        if self._in.arrived:
            size = self._network.portion(min(len(self._in.arrived), READ_BYTES))
            self._protocol.data_received(self._in.take(size))
            self.on_readable()
        elif self._in.end is RST:
            self._told_end = True
            self._fail(ConnectionResetError(104, "Connection reset by peer"))
        elif self._in.end is FIN and not self._told_end:
            self._told_end = True
            if not self._protocol.eof_received():
                self.close()

    def _write_on(self) -> None:
        room = self._out.room
        if self._is_lost or not self._pending:
            return
        if self._in.end is RST:
            self._fail(BrokenPipeError(32, "Broken pipe"))
            return
        if not room:
            return
        self._out.send(bytes(self._pending[:room]))
        del self._pending[:room]
        self._maybe_resume_protocol()  # type: ignore[attr-defined]
        if not self._pending:
            if self._is_closing:
                self._lose(None)
            elif self._eof:
                self._out.send(FIN)

    def _fail(self, error: OSError | None) -> None:
        self._is_closing = True
        self._pending.clear()
        self._lose(error)

    def _lose(self, error: OSError | None) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._soon(self._end, error)

    def _end(self, error: OSError | None) -> None:
        if self.is_gone:
            return
        try:
            if self._is_made:
                self._protocol.connection_lost(error)
        finally:
            self._close_socket()
            self.is_gone = True
            self._network.on_end(self._out.link)

    def _close_socket(self) -> None:
        if self._in.end is not RST:
            if self._in.arrived:
                self._out.send(RST)
            elif not self._eof:
                self._out.send(FIN)
        self._in.arrived.clear()

    def _soon(self, callback: Any, *arguments: Any) -> None:
        self._network.loop.call_soon(callback, *arguments, context=self.context)
