"""Judges who gets a lane's slots: by docs/design/0013, no class waits for ever, and types of a class take turns.

What is old of a class waits for what is live of it, and gets its share of that (docs/design/0027).

Counted is what passes a request that waits at an open lane for its slots, and only that: what throttles hold back is
not here, who is in quarantine goes another way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proxy.bridge.broker import Batch
from proxy.publish_lane import PublishLane
from proxy.publish_lane.line import Place
from tests.histories.plan import Plan

SURE_SHARE = 0.025
"""What is promised to each class that waits: of the slots that each class above takes."""


@dataclass(slots=True, eq=False)
class Waiter:
    """What is live, or what is old, of an event type that waits at a lane."""

    topic: str
    place: Place
    beside: int = 0
    """Events of other types of its place that have passed since it came."""


class Fairness:
    """At one lane of one replica."""

    def __init__(self, plan: Plan, lane: str, window: int) -> None:
        settings = plan.settings
        self._window = window
        self._turns = {
            topic: settings.routes[kind.route].most_in_flight
            for topic, kind in settings.by_topic.items()
            if plan.lanes[kind.route] == lane
        }
        """What a type may write in one turn: one request."""
        self._ranks = {topic: settings.rank(kind.priority) for topic, kind in settings.by_topic.items()}
        self._owed: dict[Place, float] = {}
        """Slots that a place which waits was to have of what passed it, and has not had."""
        self.waiting: dict[tuple[str, bool], Waiter] = {}
        """By topic, and whether it is what is old of it: those whose call has not returned."""
        self.is_in_line: Callable[[str, Place], bool] = lambda *_: True
        """Whether a topic has a request in the line; one whose last event was just refused has none any more."""

    async def publish(self, lane: PublishLane, batches: Sequence[Batch]) -> None:
        """Hand batches of one type on, and let it be seen how long they wait."""
        topic = batches[0].partition.topic if batches else ""
        if topic not in self._turns:
            await PublishLane.publish(lane, batches)
            return
        place = Place.of(batches[0])
        self.waiting[topic, place.is_old] = Waiter(topic, place)
        try:
            await PublishLane.publish(lane, batches)
        finally:
            del self.waiting[topic, place.is_old]
            if not any(one.place == place for one in self.waiting.values()):
                self._owed.pop(place, None)

    def excuse(self, waiter: Waiter) -> None:
        """Begin anew to count what passes a waiter: it does not wait in the line."""
        waiter.beside = 0
        self._owed.pop(waiter.place, None)

    def wrote(self, batch: Batch, events: int) -> str:
        """Count what was written of a batch; return who is treated unfairly by that, and how, "" if nobody."""
        topic, place = batch.partition.topic, Place.of(batch)
        if place in self._owed:
            self._owed[place] = max(0.0, self._owed[place] - events)
        in_line = [waiter for waiter in self.waiting.values() if self.is_in_line(waiter.topic, waiter.place)]
        for waiter in self.waiting.values():
            if waiter.topic == topic or waiter not in in_line:
                waiter.beside = 0
            elif waiter.place == place:
                waiter.beside += events
                others = [one for one in self._turns if place.is_old or self._ranks[one] == place.rank]
                most = sum(self._turns[one] for one in others if one != waiter.topic)
                if waiter.beside > most:
                    return f"{waiter.beside} events of its class pass {waiter.topic} at the lane, at most {most} may"
        waits = {waiter.place for waiter in in_line}
        for below in waits:
            if below <= place or (below.is_old and below.rank > place.rank and Place(below.rank) in waits):
                continue
            owed = self._owed[below] = self._owed.get(below, 0.0) + SURE_SHARE * events
            most_owed = 1.000001 + self._window * SURE_SHARE  # sums of parts are not exact
            if owed > most_owed:
                return f"{below} is owed {owed:g} slots of what passed it at the lane, at most {most_owed:g} may be"
        return ""
