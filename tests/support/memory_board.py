"""A board in memory, as many readers as wanted."""

from proxy.errors import LogError
from proxy.model import Note


class MemoryBoard:
    """What is pinned, and one reader's place in it; `beside` is another reader."""

    def __init__(self, notes: list[Note] | None = None) -> None:
        self.notes: list[Note] = [] if notes is None else notes
        self.failure: LogError | None = None
        self._read = 0

    def beside(self) -> "MemoryBoard":
        return MemoryBoard(self.notes)

    async def news(self) -> list[Note]:
        if self.failure is not None:
            raise self.failure
        new, self._read = self.notes[self._read :], len(self.notes)
        return new

    async def pin(self, key: str, value: bytes | None) -> None:
        if self.failure is not None:
            raise self.failure
        self.notes.append(Note(key, value))
