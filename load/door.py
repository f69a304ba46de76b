"""A port of 127.0.0.1 with another behind it: listens, holds the connections of both sides, ends all of it together."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"
READ_BYTES = 1 << 16


class Door(ABC):
    """Serves each connection by a task of its own, which ends with it; a context manager.

    It takes any free port, or the one it is told to listen on.
    """

    port: int
    """Where it listens, once entered."""

    def __init__(self, port: int, listen: int = 0) -> None:
        self.behind = port
        self._listen = listen
        self.writers: set[asyncio.StreamWriter] = set()
        """Of every connection that is open, in front and behind."""
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, HOST, self._listen)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything."""
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    @property
    def count(self) -> int:
        """How many connections it serves."""
        return len(self._serving)

    @abstractmethod
    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends, by returning or by OSError; then both of its sides are aborted."""

    @asynccontextmanager
    async def through(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Connect to the port behind. Raises OSError."""
        reader, writer = await asyncio.open_connection(HOST, self.behind)
        with self._held(writer):
            yield reader, writer

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with self._held(writer):
                await self.pass_on(reader, writer)
        except* OSError:
            pass  # what is behind is away, or one side has gone: the other one learns it now

    @contextmanager
    def _held(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        self.writers.add(writer)
        try:
            yield
        finally:
            writer.transport.abort()
            self.writers.discard(writer)
