"""The connections of the admin port, bounded in number and in time: none of them may cost the data its descriptors.

When all places are taken whoever has been silent the longest makes room, so a probe always gets in. A connection has
its place from its first byte on: TLS is spoken in it, and with the certificate as it is now.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import cast

VISITORS = 64
"""Most connections at once: probes, scrapers and people need a handful."""
SILENT_SECONDS = 75.0
"""How long one may stay that asks nothing; longer than scrapers usually wait between two questions."""
ASKING_SECONDS = 10.0
"""How long a question, or the beginning of TLS, may take to arrive."""


class Visitors:
    """Hands each new connection to a protocol of the HTTP server's, and ends those that stay too long or are too many.

    `clock` gives seconds, `context` what TLS is begun with, None for none; `on_failed` is told the address of
    whoever did not get through that.
    """

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        clock: Callable[[], float],
        *,
        context: Callable[[], ssl.SSLContext | None] = lambda: None,
        on_failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._protocol = protocol
        self._clock = clock
        self._context = context
        self._on_failed = on_failed
        self._heard: dict[_Visitor, float] = {}
        """When each was heard last; whoever has been silent the longest comes first."""
        self._asking: dict[asyncio.Protocol, float] = {}
        """Since when a question of each is arriving; by the HTTP server's protocols."""

    def __call__(self) -> asyncio.Protocol:
        """Make what asyncio calls a protocol, for one connection."""
        context = self._context()
        visitor = _Visitor(self._protocol(), self)
        return visitor if context is None else _Arrival(partial(self._begin_tls, visitor, context))

    def on_come(self, visitor: "_Visitor") -> None:
        """Note that one has come, or is through with the beginning of TLS."""
        self._hear(visitor)
        self._asking.pop(visitor.inner, None)

    def _begin_tls(self, visitor: "_Visitor", context: ssl.SSLContext, connection: socket.socket) -> None:
        self._hear(visitor)
        self._asking[visitor.inner] = self._clock()
        visitor.handshake = asyncio.create_task(self._speak_tls(visitor, context, connection), name="TLS of a visitor")

    async def _speak_tls(self, visitor: "_Visitor", context: ssl.SSLContext, connection: socket.socket) -> None:
        address = _address(connection)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: visitor, connection, ssl=context, ssl_handshake_timeout=ASKING_SECONDS
            )
        except (OSError, ValueError):  # ssl's errors are an OSError, those of certificates a ValueError, too
            self.on_left(visitor)
            self._on_failed(address)

    def on_heard(self, visitor: "_Visitor") -> None:
        """Note that one has said something."""
        self._hear(visitor)
        self._asking.setdefault(visitor.inner, self._clock())

    def _hear(self, visitor: "_Visitor") -> None:
        self._heard.pop(visitor, None)
        self._heard[visitor] = self._clock()
        if len(self._heard) > VISITORS:
            self._end(next(iter(self._heard)))

    def on_asked(self, inner: asyncio.Protocol) -> None:
        """Note that a question has arrived whole, or was answered."""
        self._asking.pop(inner, None)

    def on_told(self, inner: asyncio.Protocol) -> None:
        """Note that one who only listens was told something; it may be silent for as long as it takes that in."""
        visitor = next((one for one in self._heard if one.inner is inner), None)
        if visitor is not None:
            self._hear(visitor)

    def on_left(self, visitor: "_Visitor") -> None:
        """Note that one has gone."""
        self._heard.pop(visitor, None)
        self._asking.pop(visitor.inner, None)

    def end_silent(self) -> None:
        """End those that have been silent, or busy with a question, for too long."""
        now = self._clock()
        for visitor, heard in list(self._heard.items()):
            since = self._asking.get(visitor.inner, now)
            if heard <= now - SILENT_SECONDS or since <= now - ASKING_SECONDS:
                self._end(visitor)

    async def close(self) -> None:
        """End what has only begun."""
        handshakes = [visitor.handshake for visitor in self._heard if visitor.handshake is not None]
        for handshake in handshakes:
            handshake.cancel()
        await asyncio.gather(*handshakes, return_exceptions=True)

    def _end(self, visitor: "_Visitor") -> None:
        self.on_left(visitor)
        visitor.end()


class _Arrival(asyncio.Protocol):
    """Takes a connection before a byte of it is read, so that TLS is begun with the certificate of now.

    A server of asyncio's own that speaks TLS keeps the one it was made with, and tells nobody of whom it refuses.
    """

    def __init__(self, take: Callable[[socket.socket], None]) -> None:
        self._take = take

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        connection = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        connection.setblocking(False)  # noqa: FBT003 - its only argument
        cast("asyncio.Transport", transport).abort()  # of this descriptor; the other one stays open
        self._take(connection)


class _Visitor(asyncio.Protocol):
    """One connection: tells that something came, and leaves the rest to the HTTP server's protocol."""

    def __init__(self, inner: asyncio.Protocol, visitors: Visitors) -> None:
        self.inner = inner
        self.handshake: asyncio.Task[None] | None = None
        """Where TLS is spoken, what begins it."""
        self._visitors = visitors
        self._transport: asyncio.WriteTransport | None = None

    def end(self) -> None:
        """Cut the connection, whatever is still to be written."""
        if self._transport is not None:
            self._transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's are of no class of asyncio's
        self.inner.connection_made(transport)
        self._visitors.on_come(self)

    def data_received(self, data: bytes) -> None:
        self._visitors.on_heard(self)
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._visitors.on_left(self)
        self.inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()


def _address(connection: socket.socket) -> str:
    try:
        return str(connection.getpeername()[0])
    except OSError:
        return ""  # it has gone already
