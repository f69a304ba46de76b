"""The board of one replica in a history: out of reach while the log is."""

from collections.abc import Callable

from proxy.errors import LogError
from proxy.model import Note
from tests.support.memory_board import MemoryBoard


class WatchedBoard(MemoryBoard):
    """Reads and pins what all share."""

    def __init__(self, notes: list[Note], is_reached: Callable[[], bool]) -> None:
        super().__init__(notes)
        self._is_reached = is_reached

    async def news(self) -> list[Note]:
        """See `Board`."""
        self._reach()
        return await super().news()

    async def pin(self, key: str, value: bytes | None) -> None:
        """See `Board`."""
        self._reach()
        await super().pin(key, value)

    def _reach(self) -> None:
        if not self._is_reached():
            raise LogError("the log does not answer")
