"""What part of what a class is sure of falls to this replica; pure.

That is the class's as a whole, in the whole group. If every replica gave its own events all of it, forty replicas would
give the class all there is, whatever the classes above ask for. So it goes by the class's partitions that were not idle
of late: each is one replica's, so the parts of all replicas add up to one.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from proxy.model import Partition

MOVED_WITHIN = 600.0
"""Seconds for which a partition counts after an event of it was done with. Larger: who has become idle keeps its part
for longer; smaller: one of thousands that live on the share alone is forgotten between two of its events."""


class RouteClass(NamedTuple):
    """One class of the events of a route."""

    route: str
    rank: int
    """Place of the class, 0 the most important."""


class ClassPart:
    """By route and class. `class_of` says where a topic belongs; None: to no route that is known."""

    def __init__(self, class_of: Callable[[str], RouteClass | None]) -> None:
        self._class_of = class_of
        self._counts: dict[Partition, int] = {}
        self._moved: dict[Partition, float] = {}
        self._parts: dict[RouteClass, float] = {}

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
        own, every = Counter[RouteClass](), Counter[RouteClass]()
        own_moved = Counter(at.topic for at in self._moved.keys() & ours.keys())
        for topic, moved in Counter(at.topic for at in self._moved).items():
            place = self._class_of(topic)
            if place is not None:
                every[place] += moved
                own[place] += own_moved[topic]
        # Who has nothing of the class just now may get something before the next sample.
        self._parts = {place: max(1, own[place]) / max(1, count) for place, count in every.items()}

    def of(self, route: str, rank: int) -> float:
        """Return the part, in (0, 1]; all of it where nobody else has anything of the class."""
        return min(1.0, self._parts.get(RouteClass(route, rank), 1.0))
