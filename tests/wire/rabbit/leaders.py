"""Who leads the quorum queues, and which channels ask a leader that is gone, as those of RabbitMQ 3.10 do.

A channel asks for a queue's leader with its first message for it, and never again. If there is none just then, it asks
the last one's node with every further message: where that is dead each is nacked at once, where it is silent one after
another after seconds, and nothing else passes on that channel meanwhile. Channels that knew the leader before follow
the next.
"""

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(slots=True)
class Leaders:
    """The leaders of all queues; they are lost and elected together. The node that led stays away."""

    are_missing: bool = False
    silent_seconds: float = 0.0
    """For so long a message waits for a leader that is silent; 0: it is dead."""

    def lose(self, silent_seconds: float = 0.0) -> None:
        """Let the node that leads die, or fall silent."""
        self.are_missing = True
        self.silent_seconds = silent_seconds

    def elect(self) -> None:
        """Let another lead."""
        self.are_missing = False


@dataclass(slots=True)
class Knowledge:
    """What one channel knows of them."""

    leaders: Leaders
    _known: set[str] = field(default_factory=set)
    _in_vain: set[str] = field(default_factory=set)

    def asks_in_vain(self, queues: Collection[str]) -> bool:
        """Return whether a message for these queues is for one whose last leader the channel asks."""
        for queue in set(queues) - self._known - self._in_vain:
            (self._in_vain if self.leaders.are_missing else self._known).add(queue)
        return not self._in_vain.isdisjoint(queues)
