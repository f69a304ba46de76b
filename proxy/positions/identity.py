"""Which log a topic's name stands for: Kafka gives every topic an id, and no id ever to a second topic.

Offsets mean nothing in a topic that was deleted and made anew under its name. So every commit says in its metadata to
which topic its offset belongs, and the ids of the topics that are read are asked for again and again, in turn. It says,
too, which move of a person it follows (docs/design/0045).
"""

from collections.abc import Collection
from typing import NamedTuple

from proxy.bridge.move import NEVER_MOVED, is_id
from proxy.model import Partition

LOOK_SECONDS = 1.0
"""Between two looks at the ids."""
TOPICS_PER_LOOK = 200
"""A look at so many, of three partitions each, costs the event loop 3 ms; a thousand are looked at within 5 s."""

_TOPIC = "topic "
_MOVE = "move "


class Committed(NamedTuple):
    """What the group remembers of a partition."""

    offset: int
    """Everything before it is done with."""
    topic_id: str
    """Empty if whoever committed it did not say."""
    move: str = NEVER_MOVED
    """The id of the last move that was made in this log; every commit after it repeats that."""
    leader_epoch: int | None = None
    """No later leader than the one of this epoch has written what stands before the offset; None: it was not said."""

    @property
    def metadata(self) -> str:
        """What is committed beside the offset; a Tidegate that knows no moves reads one of these as nobody's."""
        topic = _TOPIC + self.topic_id if self.topic_id else ""
        return f"{_MOVE}{self.move} {topic}".rstrip() if self.move else topic

    @classmethod
    def read(cls, offset: int, metadata: str | None, leader_epoch: int | None = None) -> "Committed":
        """Return what was committed; metadata that is not ours says nothing."""
        left, move = metadata or "", NEVER_MOVED
        if left.startswith(_MOVE):
            move, _, left = left.removeprefix(_MOVE).partition(" ")
            if not is_id(move):
                return cls(offset, "", leader_epoch=leader_epoch)
        return cls(offset, left.removeprefix(_TOPIC) if left.startswith(_TOPIC) else "", move, leader_epoch)


class Found(NamedTuple):
    """A topic that may be read."""

    id: str
    """Empty if the log tells none."""
    partitions: tuple[int, ...]


class Looks:
    """Chooses the topics of each look."""

    def __init__(self) -> None:
        self._partitions: Collection[Partition] = ()
        self._names: list[str] = []
        """Of their topics, in order."""
        self._next_at = 0.0
        self._begin = 0

    def due(self, partitions: Collection[Partition], now: float) -> set[str]:
        """Return the topics whose turn it is, of all that are read, which never change; `now` in seconds."""
        if now < self._next_at:
            return set()
        self._next_at = now + LOOK_SECONDS
        if partitions is not self._partitions:
            self._partitions, self._names = partitions, sorted({topic for topic, _ in partitions})
        begin = self._begin if self._begin < len(self._names) else 0
        self._begin = begin + TOPICS_PER_LOOK
        return set(self._names[begin : self._begin])
