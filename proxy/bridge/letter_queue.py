"""What a redrive asks of a queue that holds dead letters; `rabbitmq` answers it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from proxy.model import Event, Partition

OF_QUEUE = "queue_"
"""How the reason of a letter begins that died in a queue; what the queue says of it follows."""


class Illegible(StrEnum):
    """Why a message of such a queue is no letter that can be sent again."""

    FOREIGN = "not_ours"
    """It is no dead letter of Tidegate."""
    INCOMPLETE = "incomplete"
    """Something of the event was left out when it became a letter: the log has the whole, a letter has not."""
    UNREADABLE = "unreadable"
    """Its headers are not as Tidegate writes them."""


class ReadLetter(NamedTuple):
    """What a dead letter says."""

    event_type: str | None
    """Name of the event type; None: only the topic is told."""
    reason: str
    """Why it was dead-lettered."""
    partition: Partition
    topic_id: str
    """Of the topic that the position belongs to; empty if it is not told."""
    event: Event
    """As it was in the log; its position is an int."""
    content_type: str | None
    """Under which it was sent; None: it has none, which of a copy says nothing."""
    redriven: int
    """How often it has been sent again before."""


@dataclass(slots=True, eq=False)
class TakenLetter:
    """A message of the queue that is out with us: it comes back to the queue unless it is acknowledged."""

    tag: int
    octets: int
    """Bytes of its body."""
    returned: int
    """How often it was taken and given back, where the queue counts that (quorum queues do, and drop it at a limit)."""
    letter: ReadLetter | None
    """None if it can't be read."""
    illegible: Illegible | None = None
    why: str = ""
    """In words, if it can't be read."""
    consumer: int = 0
    """Which of our consumers took it, one after the other."""
    raw: object = None
    """As the client knows it."""


class LetterQueue(Protocol):
    """One queue of dead letters, of which this is the only consumer. Every call raises `BrokerError` once it is lost.

    A letter that is neither acknowledged nor laid anew is the queue's again when this is closed, or ends in any way.
    """

    async def open(self) -> int:
        """Begin to take; return how many letters wait. Raises `BrokerError` if somebody else consumes them, too."""
        ...

    async def take(self, seconds: float) -> Sequence[TakenLetter]:
        """Return letters in the order of the queue; none if none came within so many seconds."""
        ...

    def keep(self, letters: Sequence[TakenLetter]) -> None:
        """Be told that these will not be acknowledged, so that others may be taken beside them."""
        ...

    async def waiting(self) -> int:
        """Return how many letters wait that nobody has taken."""
        ...

    async def acknowledge(self, tags: Collection[int]) -> None:
        """Have these taken off the queue for good."""
        ...

    async def lay_anew(self, letters: Sequence[TakenLetter]) -> None:
        """Put a copy of each at the queue's end, and when that is confirmed take the letter itself off."""
        ...

    async def close(self) -> None:
        """Give back what was taken. Idempotent, bounded."""
        ...
