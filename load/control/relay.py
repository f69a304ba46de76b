"""Stands between Tidegate and RabbitMQ, so that its monitors can be cut off while its publishing goes on.

It can be far away, too: what RabbitMQ says to whoever is no monitor comes later then.
"""

import asyncio

from load.door import READ_BYTES, Door

MONITOR = b"tidegate monitor"
"""Name by which a monitor's connection introduces itself."""
INTRODUCTION_BYTES = 4096
"""A connection has said its name within so many bytes."""


class Relay(Door):
    """Passes on connections to 127.0.0.1, answers `delay` seconds late; a context manager."""

    def __init__(self, port: int, delay: float = 0.0) -> None:
        super().__init__(port)
        self._delay = delay
        self._is_cut = False
        self._monitors: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """End the monitors' connections and take no more of them."""
        self._is_cut = True
        for writer in self._monitors:
            writer.transport.abort()

    def mend(self) -> None:
        """Take monitors again."""
        self._is_cut = False

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy both directions until one side has gone."""
        try:
            async with self.through() as (out, into):
                await asyncio.gather(self._forth(reader, into, writer), self._back(out, writer))
        finally:
            self._monitors.discard(writer)

    async def _forth(
        self, reader: asyncio.StreamReader, into: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        said = b""
        while data := await reader.read(READ_BYTES):
            if len(said) < INTRODUCTION_BYTES:
                said += data
                if MONITOR in said:
                    self._monitors.add(back)
                    if self._is_cut:
                        break
            into.write(data)
            await into.drain()
        into.transport.abort()
        back.transport.abort()

    async def _back(self, out: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        later = asyncio.get_running_loop().call_later
        while data := await out.read(READ_BYTES):
            if self._delay and writer not in self._monitors:
                later(self._delay, writer.write, data)  # equal delays: in order
            else:
                writer.write(data)
            await writer.drain()
        writer.transport.abort()
