"""What part of the lowest class's share falls to this replica; pure.

The share is the class's as a whole, in the whole group. If every replica gave its own events all of it, forty replicas
would give the class all there is, whatever the classes above ask for. So it goes by the class's partitions that were
not idle of late: each is one replica's, so the parts of all replicas add up to one.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from proxy.model import Partition

MOVED_WITHIN = 600.0
"""Seconds for which a partition counts after an event of it was done with. Larger: who has become idle keeps its part
for longer; smaller: one of thousands that live on the share alone is forgotten between two of its events."""


class LowestPart:
    """By route. `route_of` says to whose lowest class a topic belongs; None: to that of no route that is known."""

    def __init__(self, route_of: Callable[[str], str | None]) -> None:
        self._route_of = route_of
        self._counts: dict[Partition, int] = {}
        self._moved: dict[Partition, float] = {}
        self._parts: dict[str, float] = {}

    def add(self, now: float, ours: Mapping[Partition, int], others: Mapping[Partition, int]) -> None:
        """Take a sample, in which a count that differs from the last has moved; `now` in seconds must grow."""
        counts = {**others, **ours}
        for at, count in counts.items():
            if self._counts.get(at) != count:
                self._moved[at] = now
        self._counts = counts
        gone = self._moved.keys() - counts.keys()
        for at in [at for at, since in self._moved.items() if now - since > MOVED_WITHIN or at in gone]:
            del self._moved[at]
        own, every = Counter[str](), Counter[str]()
        own_moved = Counter(at.topic for at in self._moved.keys() & ours.keys())
        for topic, moved in Counter(at.topic for at in self._moved).items():
            route = self._route_of(topic)
            if route is not None:
                every[route] += moved
                own[route] += own_moved[topic]
        # Who has nothing of the class just now may get something before the next sample.
        self._parts = {route: max(1, own[route]) / max(1, count) for route, count in every.items()}

    def of(self, route: str) -> float:
        """Return the part, in (0, 1]; all of it where nobody else has anything of the class."""
        return min(1.0, self._parts.get(route, 1.0))
