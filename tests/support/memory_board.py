"""A board in memory, as many readers as wanted."""

from proxy.errors import LogError
from proxy.kafka_log.own_topic import Member
from proxy.model import Note


class MemoryBoard:
    """What is pinned, and one reader's place in it; `beside` is another reader."""

    def __init__(self, notes: list[Note] | None = None) -> None:
        self.notes: list[Note] = [] if notes is None else notes
        self.failure: LogError | None = None
        self._read = 0

        self.present: list[Member] = []
        """Who is in the group."""
        self.silent_after: int | None = None
        """After so many pins nothing answers any more."""

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

    async def create(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def members(self) -> list[Member]:
        if self.silent_after is not None and len(self.notes) >= self.silent_after:
            raise LogError("Kafka does not answer")
        return self.present
