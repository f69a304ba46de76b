"""Stands between Tidegate and RabbitMQ, so that its monitors can be cut off while its publishing goes on."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

MONITOR = b"tidegate monitor"
"""Name by which a monitor's connection introduces itself."""
READ_BYTES = 1 << 16
INTRODUCTION_BYTES = 4096
"""A connection has said its name within so many bytes."""


class Relay:
    """Passes on connections to 127.0.0.1; a context manager."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._is_cut = False
        self._monitors: set[asyncio.StreamWriter] = set()
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Listen."""
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything."""
        self._server.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        """End the monitors' connections and take no more of them."""
        self._is_cut = True
        for writer in self._monitors:
            writer.transport.abort()

    def mend(self) -> None:
        """Take monitors again."""
        self._is_cut = False

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            out, into = await asyncio.open_connection("127.0.0.1", self._to)
            try:
                await asyncio.gather(self._forth(reader, into, writer), self._back(out, writer))
            finally:
                into.transport.abort()
        except OSError:
            pass  # the broker is away, or one side has gone: the other one learns it now
        finally:
            writer.transport.abort()
            self._monitors.discard(writer)
            self._running.discard(task)

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
        with suppress(OSError):
            into.transport.abort()
        back.transport.abort()

    @staticmethod
    async def _back(out: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await out.read(READ_BYTES):
            writer.write(data)
            await writer.drain()
        writer.transport.abort()
