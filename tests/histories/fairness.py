"""Judges who gets a lane's slots: by docs/design/0013, no class waits for ever, and types of a class take turns.

Counted is what passes a request that waits at an open lane for its slots, and only that: what throttles hold back is
not here, who is in quarantine goes another way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proxy.bridge.broker import Batch
from proxy.publish_lane import PublishLane
from tests.histories.plan import Plan

LOWEST_SHARE = 0.025
BETWEEN_SHARE = 0.004
"""What is promised: of the slots that classes above take, to the lowest class that waits and to those between."""


@dataclass(slots=True, eq=False)
class Waiter:
    """An event type that waits at a lane."""

    topic: str
    rank: int
    beside: int = 0
    """Events of other types of its class that have passed since it came."""


class Fairness:
    """At one lane of one replica."""

    def __init__(self, plan: Plan, lane: str, window: int) -> None:
        settings = plan.settings
        self._window = window
        self._turns: dict[str, int] = {}
        """What a type may write in one turn: one request."""
        self._ranks: dict[str, int] = {}
        for topic, kind in settings.by_topic.items():
            if plan.lanes[kind.route] == lane:
                self._turns[topic] = settings.routes[kind.route].most_in_flight
                self._ranks[topic] = settings.rank(kind.priority)
        self._lowest = len(settings.classes) - 1
        self._passed: dict[int, float] = {}
        """By class that waits: events of classes above that have passed it and that it has not had its share of."""
        self.waiting: dict[str, Waiter] = {}
        """By topic: those whose call has not returned."""
        self.is_in_line: Callable[[str], bool] = lambda _: True
        """Whether a topic has a request in the line; one whose last event was just refused has none any more."""

    async def publish(self, lane: PublishLane, batches: Sequence[Batch]) -> None:
        """Hand batches of one type on, and let it be seen how long they wait."""
        topic = batches[0].partition.topic if batches else ""
        if topic not in self._ranks:
            await PublishLane.publish(lane, batches)
            return
        self.waiting[topic] = Waiter(topic, self._ranks[topic])
        try:
            await PublishLane.publish(lane, batches)
        finally:
            del self.waiting[topic]
            if not any(one.rank == self._ranks[topic] for one in self.waiting.values()):
                self._passed.pop(self._ranks[topic], None)

    def excuse(self, topic: str) -> None:
        """Begin anew to count what passes a type: it does not wait in the line."""
        waiter = self.waiting.get(topic)
        if waiter is not None:
            waiter.beside = 0
            self._passed.pop(waiter.rank, None)

    def wrote(self, topic: str, events: int) -> str:
        """Count what a type has written; return who is treated unfairly by that, and how, "" if nobody."""
        rank = self._ranks[topic]
        if rank in self._passed:
            self._passed[rank] = max(0.0, self._passed[rank] - events / self._share(rank))
        in_line = [waiter for waiter in self.waiting.values() if self.is_in_line(waiter.topic)]
        for waiter in self.waiting.values():
            if waiter.topic == topic or waiter not in in_line:
                waiter.beside = 0
            elif waiter.rank == rank:
                waiter.beside += events
                most = sum(self._turns[one] for one, of in self._ranks.items() if of == rank and one != waiter.topic)
                if waiter.beside > most:
                    return f"{waiter.beside} events of its class pass {waiter.topic} at the lane, at most {most} may"
        for below in {waiter.rank for waiter in in_line if waiter.rank > rank}:
            passed = self._passed[below] = self._passed.get(below, 0.0) + events
            most_above = 1 / self._share(below) + self._window
            if passed > most_above:
                return f"{passed:g} events pass class {below} at the lane, at most {most_above:g} may"
        return ""

    def _share(self, rank: int) -> float:
        return LOWEST_SHARE if rank == self._lowest else BETWEEN_SHARE
