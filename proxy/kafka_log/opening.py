"""Opens compressed batches, within a bound of what lies open: packed they say nothing of the memory that they take.

A hundred partitions that have come with a batch each would take a hundred times `log.batch_bytes` if all were opened at
once. So no other is opened while that much lies open, and those that are opened on a thread go one after the other.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from aiokafka import errors

from proxy.kafka_log.unpacking import AT_ONCE, unpack

LARGE = 128 * 1024
"""Compressed batches of an answer of so many bytes are opened on a thread; smaller ones take some milliseconds."""
Records = Iterator[Any]
Opened = tuple[Records, int]
"""A batch's records, and the bytes that they take, decompressed."""


class Held(Protocol):
    """The answer that a batch came in."""

    is_large: bool
    """Whether its batches are opened on a thread: so large did it come, or so large became one of it."""

    def on_opened(self, opening: "asyncio.Future[Opened]") -> None:
        """Take what a thread has opened."""
        ...


class Opener:
    """Of all that one consumer has fetched: `lying_open` counts what is open now, in bytes.

    `wake` is called when one is open that was opened on a thread.
    """

    def __init__(self, lying_open: Callable[[], int], wake: Callable[[], None]) -> None:
        self.most = 64 * 1024**2
        """Bytes of one batch, decompressed; while as many lie open no other is opened."""
        self._lying_open = lying_open
        self._wake = wake
        self._open: int | None = None
        self._opening: Any = None
        """The batch that a thread opens."""

    def begin(self) -> None:
        """Begin a turn: what lies open is counted again, once it has to be known."""
        self._open = None

    def open(self, batch: Any, held: Held) -> Opened | None:
        """Open a batch of an answer; None if it has to wait, or a thread opens it, of which the answer is told.

        It may be handed in again and again meanwhile. Raises what `unpack` does.
        """
        if not batch.compression_type:
            return unpack(batch, self.most)
        if self._opening is batch:
            return None
        if self._open is None:
            self._open = self._lying_open()
        if self._open >= self.most:
            return None  # of what is paused less is kept, so that whatever lies open here is about to be taken
        if not held.is_large:
            try:
                opened = unpack(batch, min(self.most, AT_ONCE))
            except errors.RecordTooLargeError:
                if self.most <= AT_ONCE:
                    raise
                held.is_large = True  # or it would be tried in vain in every turn in which a thread opens another
            else:
                self._open += opened[1]
                return opened
        if self._opening is None:
            self._open_elsewhere(batch, held)
        return None

    def _open_elsewhere(self, batch: Any, held: Held) -> None:
        self._opening = batch

        def opened(done: "asyncio.Future[Opened]") -> None:
            self._opening = None
            held.on_opened(done)
            self._wake()

        asyncio.get_running_loop().run_in_executor(None, unpack, batch, self.most).add_done_callback(opened)
