"""What the whole group has before it, by route and class: the lag of all partitions, and what comes in a second.

Asked of the log, so that every replica gets the same answer and one that owns nothing knows as much as the others.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import inf

import structlog

from proxy.bridge.event_log import EventLog, Extent
from proxy.errors import LogError
from proxy.model import Partition
from proxy.settings import EventType
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


class GroupBacklog:
    """Lags and demands from samples of `EventLog.extents`; pure. Gaps of compaction and transactions count as events.

    What a topic made anew, or a partition that is new, already holds is no demand.
    """

    def __init__(self, type_of: Callable[[str], EventType | None]) -> None:
        """Make one; `type_of` names the event type of a topic, None for one that belongs to none."""
        self._type_of = type_of
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

    def classes(self, now: float) -> dict[tuple[str, str], ClassBacklog] | None:
        """Return backlogs by route and class; None if they are not known: fewer than two samples, or old ones."""
        demands = self._demands.last
        if demands is None or self._demands.is_stale(now):
            return None
        lags: defaultdict[str, int] = defaultdict(int)
        for partition, extent in self._last.items():
            lags[partition.topic] += extent.end - extent.committed
        found: defaultdict[tuple[str, str], ClassBacklog] = defaultdict(ClassBacklog)
        for topic, lag in lags.items():
            kind = self._type_of(topic)
            if kind is not None:
                came = demands.get(topic, 0.0)
                of_class = found[kind.route, kind.priority]
                # What is older than `max_age` is not sent: at most what came within it can be.
                of_class.lag += lag if kind.max_age is None else min(lag, came * kind.max_age)
                of_class.demand += came
        return dict(found)


class Backlogs:
    """Asks the log, and remembers what it told."""

    def __init__(
        self, log: EventLog, topics: Callable[[], Collection[str]], type_of: Callable[[str], EventType | None]
    ) -> None:
        self._log = log
        self._topics = topics
        self._group = GroupBacklog(type_of)
        self._is_blind = False

    def of(self, route: str) -> dict[str, ClassBacklog] | None:
        """Return a route's backlogs by class; None if they are not known now."""
        classes = self._group.classes(asyncio.get_running_loop().time())
        if classes is None:
            return None
        return {name: backlog for (of_route, name), backlog in classes.items() if of_route == route}

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
        lag, demand = lag + of_class.lag, demand + of_class.demand
        told[name] = 0.0 if not lag else lag / (drain - demand) if drain > demand else inf
    return told
