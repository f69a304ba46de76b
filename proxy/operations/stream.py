"""GET /stream: the view, written once a second for all who look, and never waiting for any of them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import structlog

from proxy.operations.steps import Steps

READERS = 16
"""At a time: each keeps a connection of the admin address."""
QUEUED = 5
"""Events that may wait for one reader; whoever is slower than that is dropped, and may come again."""
SECONDS = 1.0
"""Between two events."""
_say = structlog.get_logger("tidegate.admin")


class Told(Protocol):
    """What is told; see `View`."""

    async def look(self, steps: Steps, *, is_told: bool) -> str:
        """Return what has changed as JSON."""
        ...

    def whole(self) -> str:
        """Return everything as JSON."""
        ...


class Nothing:
    """Tells nothing."""

    async def look(self, steps: Steps, *, is_told: bool) -> str:  # noqa: ARG002
        """Return an empty object."""
        return "{}"

    def whole(self) -> str:
        """Return an empty object."""
        return "{}"


class TooManyError(Exception):
    """`READERS` look already."""


class Reader:
    """One who looks; `cut` ends the connection at once."""

    def __init__(self, cut: Callable[[], None]) -> None:
        self.cut = cut
        self._events: asyncio.Queue[bytes | None] = asyncio.Queue(QUEUED + 1)

    def tell(self, event: bytes) -> bool:
        """Hand over an event; return whether there was room for it."""
        if self._events.qsize() >= QUEUED:
            return False
        self._events.put_nowait(event)
        return True

    def end(self) -> None:
        """Let it come to the end of what it was told."""
        if not self._events.full():
            self._events.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give the events as they come, until the end."""
        while (event := await self._events.get()) is not None:
            yield event


class Stream:
    """Looks every second and tells all readers; `run` it as a task."""

    def __init__(self, view: Told | None = None) -> None:
        """Make one; without a view it tells nothing."""
        self._view = view or Nothing()
        self._readers: set[Reader] = set()
        self._newcomers: set[Reader] = set()
        self._has_failed = False

    async def run(self) -> None:
        """Look and tell until cancelled; whatever goes wrong with that, data flows on."""
        while True:
            try:
                await self._tell()
            except Exception:  # noqa: BLE001 - whatever it is
                if not self._has_failed:
                    self._has_failed = True
                    _say.exception("stream_failed", effect="the page stands still, data flows on; tried every second")
            else:
                self._has_failed = False
            await asyncio.sleep(SECONDS)

    @property
    def readers(self) -> int:
        """How many look."""
        return len(self._readers) + len(self._newcomers)

    def join(self, cut: Callable[[], None]) -> Reader:
        """Let somebody look, who is told everything at the next look. Raises `TooManyError`."""
        if self.readers >= READERS:
            raise TooManyError
        reader = Reader(cut)
        self._newcomers.add(reader)
        return reader

    def leave(self, reader: Reader) -> None:
        """Forget one who looked."""
        self._readers.discard(reader)
        self._newcomers.discard(reader)

    def end(self) -> None:
        """Let all who look come to their end."""
        for reader in self._readers | self._newcomers:
            reader.end()

    async def _tell(self) -> None:
        newcomers = set(self._newcomers)  # whoever comes while we look is told at the next look
        changed = await self._view.look(Steps(), is_told=bool(newcomers or self._readers))
        if self._readers:
            self._hand_out(_event(changed), self._readers)
        if newcomers := newcomers & self._newcomers:
            self._newcomers -= newcomers
            self._readers |= newcomers
            self._hand_out(_event(self._view.whole()), newcomers)

    def _hand_out(self, event: bytes, readers: set[Reader]) -> None:
        for reader in [reader for reader in readers if not reader.tell(event)]:
            self.leave(reader)
            reader.cut()


def _event(text: str) -> bytes:
    return f"event: state\ndata: {text}\n\n".encode()
