"""What interventions ask of the board; `kafka_log` answers it for Kafka (docs/design/0043-interventions.md)."""

from typing import Protocol

from proxy.model import Note


class Board(Protocol):
    """Notes that every replica of the group reads in the same order. One instance per reader."""

    async def news(self) -> list[Note]:
        """Return what was pinned since the last call, oldest first; at the first call all that is kept.

        Empty while there is no board. One that was deleted and made anew is read from its beginning; a note may come
        again. Raises `LogError` if the log does not answer within 5 s or refuses; nothing is passed over by that.
        """
        ...

    async def pin(self, key: str, value: bytes | None) -> None:
        """Pin a note; back when the log has it for good. Raises `LogError` if not, and perhaps it is pinned then."""
        ...
