"""What the whole group has before it, by route and class: the lag of all partitions, and what comes in a second.

Asked of the log, so that every replica gets the same answer and one that owns nothing knows as much as the others.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf

import structlog

from proxy.bridge.event_log import EventLog, Extent
from proxy.errors import LogError
from proxy.model import Partition
from proxy.settings import EventType, Route
from proxy.steering.rates import Rates

_say = structlog.get_logger("tidegate.backlog")

INTERVAL = 5.0
"""Seconds between two questions; one has all offsets of the group and all ends in its answers."""
WINDOW = 2.5 * INTERVAL
"""Seconds over which the demand is taken: two intervals."""
STALE_AFTER = 4 * INTERVAL
"""An answer older than so many seconds says nothing any more."""


@dataclass(slots=True)
class ClassBacklog:
    """Of one class on one route."""

    lag: float = 0.0
    """Events not yet done with; not those that expire anyway before they can be sent."""
    demand: float = 0.0
    """Events a second that come into the log."""
    lag_work: float = 0.0
    """What the lag costs ..."""
    demand_work: float = 0.0
    """... and what comes in a second."""

    def add(self, lag: float, demand: float, cost: float) -> None:
        """Count another topic, whose events cost so much each."""
        self.lag += lag
        self.demand += demand
        self.lag_work += lag * cost
        self.demand_work += demand * cost


@dataclass(slots=True)
class QueueBacklog:
    """Of what goes to one queue."""

    classes: defaultdict[str, ClassBacklog] = field(default_factory=lambda: defaultdict(ClassBacklog))
    """By class."""
    unknown: list[str] = field(default_factory=list)
    """Event types of which each event's own routing key decides whether it goes there; they are left out."""


class GroupBacklog:
    """Lags and demands from samples of `EventLog.extents`; pure. Gaps of compaction and transactions count as events.

    What a topic made anew, or a partition that is new, already holds is no demand.
    """

    def __init__(self, type_of: Callable[[str], EventType | None], apart: Mapping[str, Route] | None = None) -> None:
        """Make one.

        `type_of` names the event type of a topic, None for one that belongs to none; `apart` are the routes of which
        every queue is told by itself.
        """
        self._type_of = type_of
        self.apart = apart or {}
        self._by_class: defaultdict[tuple[str, str], ClassBacklog] = defaultdict(ClassBacklog)
        self._by_queue: dict[tuple[str, str], QueueBacklog] = {}
        self._last: Mapping[Partition, Extent] = {}
        self._demands: Rates[str] = Rates(WINDOW, STALE_AFTER)
        """By topic."""

    def add(self, now: float, extents: Mapping[Partition, Extent]) -> None:
        """Take a sample; `now` must grow."""
        for partition, extent in extents.items():
            before = self._last.get(partition)
            if before is not None:
                self._demands.count(partition.topic, extent.end - before.end)
        self._last = extents
        self._demands.sample(now)
        self._sum_up(self._demands.last or {})

    def classes(self, now: float) -> dict[tuple[str, str], ClassBacklog] | None:
        """Return backlogs by route and class; None if they are not known: fewer than two samples, or old ones."""
        return dict(self._by_class) if self._is_known(now) else None

    def queues(self, now: float) -> dict[tuple[str, str], QueueBacklog] | None:
        """Return what goes to each queue of the routes `apart`, by route and queue; None as for `classes`."""
        return self._by_queue if self._is_known(now) else None

    def _is_known(self, now: float) -> bool:
        return self._demands.last is not None and not self._demands.is_stale(now)

    def _sum_up(self, demands: Mapping[str, float]) -> None:
        self._by_class.clear()
        self._by_queue = {
            (name, queue): QueueBacklog() for name, route in self.apart.items() for queue in route.queue_names
        }
        lags: defaultdict[str, int] = defaultdict(int)
        for partition, extent in self._last.items():
            lags[partition.topic] += extent.end - extent.committed
        for topic, lag in lags.items():
            kind = self._type_of(topic)
            if kind is not None:
                came = demands.get(topic, 0.0)
                # What is older than `max_age` is not sent: at most what came within it can be.
                waits = lag if kind.max_age is None else min(lag, came * kind.max_age)
                self._by_class[kind.route, kind.priority].add(waits, came, kind.cost)
                self._add_to_queues(kind, waits, came)

    def _add_to_queues(self, kind: EventType, waits: float, came: float) -> None:
        """Count what waits of one topic for every queue that it is copied to."""
        route = self.apart.get(kind.route)
        for queue in route.judged if route is not None else ():
            takes = queue.takes(kind.name, kind.routing_key)
            of_queue = self._by_queue[kind.route, queue.name]
            if takes is None:
                of_queue.unknown.append(kind.name)
            elif takes:
                of_queue.classes[kind.priority].add(waits, came, kind.cost)


class Backlogs:
    """Asks the log, and remembers what it told."""

    def __init__(
        self,
        log: EventLog,
        topics: Callable[[], Collection[str]],
        type_of: Callable[[str], EventType | None],
        apart: Mapping[str, Route] | None = None,
    ) -> None:
        """Make one; `topics` are those that are read, the rest see `GroupBacklog`."""
        self._log = log
        self._topics = topics
        self._group = GroupBacklog(type_of, apart)
        self._is_blind = False

    def go_by(self, apart: Mapping[str, Route]) -> None:
        """Tell every queue of these routes by itself, from the next answer on."""
        self._group.apart = apart

    def of(self, route: str) -> dict[str, ClassBacklog] | None:
        """Return a route's backlogs by class; None if they are not known now."""
        classes = self._group.classes(asyncio.get_running_loop().time())
        if classes is None:
            return None
        return {name: backlog for (of_route, name), backlog in classes.items() if of_route == route}

    def of_queue(self, route: str, queue: str) -> QueueBacklog | None:
        """Return what goes to one queue of a route `apart`; None if it is not known now."""
        queues = self._group.queues(asyncio.get_running_loop().time())
        return None if queues is None else queues.get((route, queue))

    async def run(self) -> None:
        """Ask until cancelled; a failure is said once until the next success."""
        now = asyncio.get_running_loop().time
        while True:
            try:
                extents = await self._log.extents(self._topics())
            except LogError as error:
                if not self._is_blind:
                    _say.warning("backlog_unknown", why=str(error), effect="how many consumers are wanted is not known")
                self._is_blind = True
            else:
                self._is_blind = False
                self._group.add(now(), extents)
            await asyncio.sleep(INTERVAL)


def seconds_to_work_off(
    backlogs: Mapping[str, ClassBacklog], classes: Collection[str], drain: float
) -> dict[str, float]:
    """Return for each class when its backlog will have been worked off, in seconds, at this drain rate.

    Those above go first, `classes` being in that order; infinite where what comes takes all.
    """
    lag, demand, told = 0.0, 0.0, {}
    for name in classes:
        of_class = backlogs.get(name, ClassBacklog())
        lag, demand = lag + of_class.lag_work, demand + of_class.demand_work
        told[name] = 0.0 if not lag else lag / (drain - demand) if drain > demand else inf
    return told
