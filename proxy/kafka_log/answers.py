"""What a connection brings, cut into answers as it comes: the library waits twice and wakes a task for each."""

import struct
from collections.abc import Callable
from typing import Any

_SIZE = struct.Struct(">i")


class Answers:
    """Stands before an `asyncio.StreamReader`, which from then on is told of the end only."""

    def __init__(self, reader: Any, take: Callable[[bytes], None], fail: Callable[[Exception], None]) -> None:
        """Hand each answer to `take`; if that raises, nothing more is handed over and `fail` is told."""
        self._take, self._fail = take, fail
        self._parts: list[bytes] = []
        self._held = 0
        """Bytes in `_parts`."""
        self._wanted = _SIZE.size
        """Bytes that are needed to go on."""
        self._is_over = False
        reader.feed_data = self._feed

    def _feed(self, data: bytes) -> None:
        if self._is_over:
            return
        self._parts.append(data)
        self._held += len(data)
        if self._held < self._wanted:
            return
        whole = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        at = 0
        while len(whole) - at >= _SIZE.size:
            (size,) = _SIZE.unpack_from(whole, at)
            if size < 0:
                self._end(ValueError(f"an answer of {size} bytes"))
                return
            end = at + _SIZE.size + size
            if end > len(whole):
                break
            try:
                self._take(whole[at + _SIZE.size : end])
            except Exception as error:  # noqa: BLE001 -- whatever it is, nothing after it can be believed
                self._end(error)
                return
            at = end
        rest = whole[at:]
        self._parts, self._held = [rest] if rest else [], len(rest)
        self._wanted = _SIZE.size if len(rest) < _SIZE.size else _SIZE.size + _SIZE.unpack_from(rest)[0]

    def _end(self, error: Exception) -> None:
        self._is_over = True
        self._parts = []
        self._fail(error)
