"""How far what was handed over to a connection has come: pure.

The kernel takes a message of megabytes at once, and over a slow line it is on its way for longer than its confirm may
take. So the wait for a confirm begins when the message has arrived at the broker's host, as the acknowledgements of
TCP tell, or, until then, when something of what is on its way last did.
"""

from collections import deque

FLOWING_BYTES = 16 * 1024
"""Bytes that must arrive for that to count as moving; less only if it is all there is."""


class Passage:
    """Of one connection. Bytes are counted from its first, instants are seconds of the loop's clock."""

    def __init__(self) -> None:
        self.handed = 0
        """Bytes handed over."""
        self._arrived = 0
        """Bytes that had arrived when they were last counted as moving."""
        self._moved = 0.0
        """When that was."""
        self._looks: deque[tuple[int, float]] = deque()
        """When it was first seen that so many had arrived, since what is asked for has."""

    def look(self, unsent: int, now: float) -> None:
        """Take note that the broker's host has acknowledged all that was handed over but `unsent` bytes."""
        arrived = self.handed - unsent
        if arrived - self._arrived >= FLOWING_BYTES or (not unsent and arrived > self._arrived):
            self._arrived, self._moved = arrived, now
            self._looks.append((arrived, now))

    def since(self, end: int, written: float) -> float:
        """Return from when on a confirm may be awaited of what was `written` then and ends with byte `end`.

        Each `end` must be as large as the one before.
        """
        while self._looks and self._looks[0][0] < end:
            self._looks.popleft()
        return max(written, self._looks[0][1] if self._looks else self._moved)
