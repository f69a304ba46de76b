"""What a connection brings, cut into answers as it comes: the library waits twice and wakes a task for each.

An answer that comes in more than one piece is put together where the one before it was, if nobody looks at that any
more: what is dear of a copied megabyte is not the copying but the memory, which the kernel gives page by page.
"""

import struct
from collections.abc import Callable
from typing import Any

_SIZE = struct.Struct(">i")


class Answers:
    """Stands before an `asyncio.StreamReader`, which from then on is told of the end only."""

    def __init__(
        self, reader: Any, take: Callable[[bytes | memoryview], None], fail: Callable[[Exception], None]
    ) -> None:
        """Hand each answer to `take`; if that raises, nothing more is handed over and `fail` is told."""
        self._take, self._fail = take, fail
        self._start = b""
        """What has come of a size that is not whole."""
        self._room: memoryview | None = None
        """Where an answer is put of which not everything has come."""
        self._memory = bytearray()
        """What that is part of; kept until an answer needs none."""
        self._filled = 0
        """Bytes of it that have."""
        self._is_over = False
        reader.feed_data = self._feed

    def _feed(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._start:
            data = self._start + data
        at = 0 if self._room is None else self._fill(memoryview(data))
        while at < len(data) and not self._is_over:
            begin = at + _SIZE.size
            if begin > len(data):
                break
            (size,) = _SIZE.unpack_from(data, at)
            at = begin + size
            if size < 0:
                self._end(ValueError(f"an answer of {size} bytes"))
            elif at <= len(data):
                self._memory = bytearray()
                self._hand_over(data[begin:at])
            else:
                self._room, self._filled = self._place(size), 0
                self._fill(memoryview(data)[begin:])
        self._start = b"" if self._is_over else data[at:]

    def _fill(self, data: memoryview) -> int:
        """Put what has come where the answer is to be; return how much of it that was."""
        room = self._room
        assert room is not None
        end = min(self._filled + len(data), len(room))
        taken = end - self._filled
        room[self._filled : end] = data[:taken]
        self._filled = end
        if end == len(room):
            self._room = None
            self._hand_over(room)
        return taken

    def _place(self, size: int) -> memoryview:
        """Return room for an answer."""
        try:
            self._memory.append(self._memory.pop())  # refused as long as somebody looks at it
        except (BufferError, IndexError):
            self._memory = bytearray()
        if len(self._memory) < size:
            self._memory = bytearray(size)
        return memoryview(self._memory)[:size]

    def _hand_over(self, answer: bytes | memoryview) -> None:
        try:
            self._take(answer)
        except Exception as error:  # noqa: BLE001 -- whatever it is, nothing after it can be believed
            self._end(error)

    def _end(self, error: Exception) -> None:
        self._is_over = True
        self._start, self._room, self._memory = b"", None, bytearray()
        self._fail(error)
