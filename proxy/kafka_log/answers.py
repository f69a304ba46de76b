"""What a connection brings, cut into answers as it comes: the library waits twice and wakes a task for each.

An answer that comes in more than one piece is put together where the one before it was, if nobody looks at that any
more: what is dear of a copied megabyte is not the copying but the memory, which the kernel gives page by page.
"""

import struct
from collections.abc import Callable
from typing import Any

_SIZE = struct.Struct(">i")
_AT_ONCE = 4 * 1024**2
"""Bytes of room that are made before anything has come to fill them: what speaks no Kafka may announce gigabytes."""


class Answers:
    """Stands before an `asyncio.StreamReader`, which from then on is told of the end only."""

    def __init__(
        self, reader: Any, take: Callable[[bytes | memoryview], None], fail: Callable[[Exception], None]
    ) -> None:
        """Hand each answer to `take`; if that raises, nothing more is handed over and `fail` is told."""
        self._take, self._fail = take, fail
        self._start = b""
        """What has come of a size that is not whole."""
        self._size: int | None = None
        """Of an answer of which not everything has come."""
        self._room = bytearray()
        """Where that is put; kept until an answer needs none."""
        self._filled = 0
        """Bytes of it that have come."""
        self._is_over = False
        reader.feed_data = self._feed

    @property
    def coming(self) -> int:
        """Bytes that have come of an answer of which more is to come."""
        return 0 if self._size is None else self._filled

    def _feed(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._start:
            data = self._start + data
        at = 0 if self._size is None else self._fill(self._size, memoryview(data))
        while at < len(data) and not self._is_over:
            begin = at + _SIZE.size
            if begin > len(data):
                break
            (size,) = _SIZE.unpack_from(data, at)
            at = begin + size
            if size < 0:
                self._end(ValueError(f"an answer of {size} bytes"))
            elif at <= len(data):
                self._room = bytearray()
                self._hand_over(data[begin:at])
            else:
                self._begin(size)
                self._fill(size, memoryview(data)[begin:])
        self._start = b"" if self._is_over else data[at:]

    def _begin(self, size: int) -> None:
        """Have room where an answer may be put."""
        try:
            self._room.append(self._room.pop())  # refused as long as somebody looks at it
        except (BufferError, IndexError):
            self._room = bytearray()
        if len(self._room) < min(size, _AT_ONCE):
            self._room = bytearray(min(size, _AT_ONCE))
        self._size, self._filled = size, 0

    def _fill(self, size: int, data: memoryview) -> int:
        """Put what has come of an answer where it is to be; return how much of it that was."""
        taken = min(len(data), size - self._filled)
        end = self._filled + taken
        if end > len(self._room):
            self._room.extend(bytes(min(size, 2 * end) - len(self._room)))
        with memoryview(self._room) as room:
            room[self._filled : end] = data[:taken]
        self._filled = end
        if end == size:
            self._size = None
            self._hand_over(memoryview(self._room)[:size])
        return taken

    def _hand_over(self, answer: bytes | memoryview) -> None:
        try:
            self._take(answer)
        except Exception as error:  # noqa: BLE001 -- whatever it is, nothing after it can be believed
            self._end(error)

    def _end(self, error: Exception) -> None:
        self._is_over = True
        self._start, self._size, self._room = b"", None, bytearray()
        self._fail(error)
