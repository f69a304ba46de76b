"""How many consumers each route wants: once a second, from its last verdict and the group's backlog."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from proxy.congestion.class_budget import BudgetVerdict
from proxy.congestion.scaling import Scaling, Sight, Wanted
from proxy.congestion.signs import Sign
from proxy.settings import Settings
from proxy.steering.group_backlog import Backlogs, ClassBacklog, seconds_to_work_off

_say = structlog.get_logger("tidegate.scaling")

INTERVAL = 1.0
"""Seconds between two looks."""
STALE_AFTER = 3.0
"""A verdict older than so many seconds says nothing any more."""


Observer = Callable[[str, Wanted, int | None, float | None, float | None], None]
"""Told the route, what is wanted, how many consumers there are, what they take and what comes, when that changes."""


@dataclass(slots=True)
class RouteDemand:
    """What is known of one route; rates in events a second."""

    wanted: Wanted
    consumers: int | None = None
    """There are, in all its queues."""
    drain: float | None = None
    """What they take."""
    backlogs: Mapping[str, ClassBacklog] = field(default_factory=dict)
    """By class, of the whole group; empty if not known."""
    work_off: Mapping[str, float] = field(default_factory=dict)
    """Seconds until each class's backlog has been worked off; infinite if it grows."""


class WantedConsumers:
    """Looks at the routes that have `scaling`."""

    def __init__(
        self,
        settings: Settings,
        verdict_of: Callable[[str], BudgetVerdict | None],
        backlogs: Backlogs,
        observer: Observer,
    ) -> None:
        self._classes = list(settings.classes)
        self._verdict_of = verdict_of
        self._backlogs = backlogs
        self._observer = observer
        self._routes = {
            name: Scaling(route.scaling.consumers_per_process, route.scaling.work_off)
            for name, route in settings.routes.items()
            if route.scaling is not None
        }
        self.last: dict[str, RouteDemand] = {}
        """By route, as of the last look."""

    @property
    def is_asked_for(self) -> bool:
        """Whether any route has `scaling`."""
        return bool(self._routes)

    def told(self) -> dict[str, Any]:
        """Return all of it as JSON; what is not known is null, what never ends as well."""
        return {"routes": {name: _told(demand) for name, demand in self.last.items()}}

    async def run(self) -> None:
        """Look until cancelled."""
        now = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._backlogs.run(), name="backlogs")
            while True:
                for name, scaling in self._routes.items():
                    self._look(name, scaling, now())
                await asyncio.sleep(INTERVAL)

    def _look(self, name: str, scaling: Scaling, now: float) -> None:
        verdict, backlogs = self._verdict_of(name), self._backlogs.of(name)
        is_fresh = verdict is not None and now - verdict.reading.at <= STALE_AFTER
        consumers = _consumers(verdict) if verdict is not None and is_fresh else None
        sees = verdict is not None and is_fresh and verdict.cause is not Sign.BLIND
        drain = verdict.drain.rate if verdict is not None and sees else None
        ready = verdict.reading.ready if verdict is not None else 0
        demand = None if backlogs is None else sum(one.demand for one in backlogs.values())
        wanted = scaling.look(
            Sight(
                at=now,
                consumers=consumers,
                taken=drain,
                is_capacity=verdict is not None and verdict.drain.is_capacity,
                demand=demand,
                backlog=None if backlogs is None else ready + sum(one.lag for one in backlogs.values()),
            )
        )
        before = self.last.get(name)
        known = backlogs or {}
        work_off = {} if backlogs is None or drain is None else seconds_to_work_off(known, self._classes, drain)
        self.last[name] = RouteDemand(wanted, consumers, drain, known, work_off)
        if wanted.consumers is not None and (before is None or before.wanted.consumers != wanted.consumers):
            _say.info("consumers_wanted", route=name, wanted=wanted.consumers, consumers=consumers, why=wanted.why)
            self._observer(name, wanted, consumers, drain, demand)


def _consumers(verdict: BudgetVerdict) -> int | None:
    queues = verdict.reading.queues
    known = [queue.consumers for queue in queues if queue is not None]
    return sum(known) if queues and len(known) == len(queues) else None


def _told(demand: RouteDemand) -> dict[str, Any]:
    return {
        "wanted_consumers": demand.wanted.consumers,
        "why": demand.wanted.why,
        "knee": demand.wanted.knee,
        "consumers": demand.consumers,
        "drain_per_s": None if demand.drain is None else round(demand.drain, 1),
        "classes": {
            name: {
                "lag": round(backlog.lag),
                "demand_per_s": round(backlog.demand, 1),
                "work_off_s": _finite(demand.work_off.get(name)),
            }
            for name, backlog in demand.backlogs.items()
        },
    }


def _finite(seconds: float | None) -> float | None:
    return None if seconds is None or seconds == float("inf") else round(seconds, 1)
