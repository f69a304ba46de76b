"""The connections of the admin port, bounded in number and in time: none of them may cost the data its descriptors.

When all places are taken whoever has been silent the longest makes room, so a probe always gets in.
"""

import asyncio
from collections.abc import Callable
from typing import cast

VISITORS = 64
"""Most connections at once: probes, scrapers and people need a handful."""
SILENT_SECONDS = 75.0
"""How long one may stay that asks nothing; longer than scrapers usually wait between two questions."""


class Visitors:
    """Hands each new connection to a protocol of the HTTP server's, and ends those that stay too long or are too many.

    `clock` gives seconds.
    """

    def __init__(self, protocol: Callable[[], asyncio.Protocol], clock: Callable[[], float]) -> None:
        self._protocol = protocol
        self._clock = clock
        self._heard: dict[_Visitor, float] = {}
        """When each was heard last; whoever has been silent the longest comes first."""

    def __call__(self) -> "_Visitor":
        """Make what asyncio calls a protocol, for one connection."""
        return _Visitor(self._protocol(), self)

    def on_heard(self, visitor: "_Visitor") -> None:
        """Note that one has come or has said something."""
        self._heard.pop(visitor, None)
        self._heard[visitor] = self._clock()
        if len(self._heard) > VISITORS:
            self._end(next(iter(self._heard)))

    def on_left(self, visitor: "_Visitor") -> None:
        """Note that one has gone."""
        self._heard.pop(visitor, None)

    def end_silent(self) -> None:
        """End those that have been silent for too long."""
        due = self._clock() - SILENT_SECONDS
        for visitor in [visitor for visitor, heard in self._heard.items() if heard <= due]:
            self._end(visitor)

    def _end(self, visitor: "_Visitor") -> None:
        self._heard.pop(visitor, None)
        visitor.end()


class _Visitor(asyncio.Protocol):
    """One connection: tells that something came, and leaves the rest to the HTTP server's protocol."""

    def __init__(self, inner: asyncio.Protocol, visitors: Visitors) -> None:
        self._inner = inner
        self._visitors = visitors
        self._transport: asyncio.WriteTransport | None = None

    def end(self) -> None:
        """Cut the connection, whatever is still to be written."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's are of no class of asyncio's
        self._inner.connection_made(transport)
        self._visitors.on_heard(self)

    def data_received(self, data: bytes) -> None:
        self._visitors.on_heard(self)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._visitors.on_left(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
