"""How many consumers each route wants: once a second, from its last verdict and the group's backlog.

Where the queues of a route are judged one by one, each has consumers of its own: what is wanted is told of each queue
(docs/design/0025), and of the route nothing.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.group import Tether
from proxy.congestion.receiver import View
from proxy.congestion.scaling import Scaling, Sight, Wanted
from proxy.congestion.signs import Sign
from proxy.settings import Route, Settings
from proxy.steering.demand import Demand, as_json, latest
from proxy.steering.group_backlog import Backlogs, ClassBacklog, QueueBacklog, seconds_to_work_off

_say = structlog.get_logger("tidegate.scaling")

INTERVAL = 1.0
"""Seconds between two looks."""
STALE_AFTER = 3.0
"""A verdict older than so many seconds says nothing any more."""
_EACH = Wanted(None, "each queue has consumers of its own: see there")


Observer = Callable[[str, str | None, Wanted, int | None, float | None, float | None], None]
"""Told the route, the queue (None: all of them together), what is wanted, how many consumers there are, what they take
and what comes, when another number is wanted."""


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
        self._routes: dict[str, Route] = {}
        self._scalings: dict[tuple[str, str | None], Scaling] = {}
        """By route and queue; None: all its queues together."""
        self._told: dict[tuple[str, str | None], int] = {}
        """What was wanted last."""
        self.last: dict[str, Demand] = {}
        """By route, as of the last look."""
        self.go_by(settings)

    def go_by(self, settings: Settings) -> None:
        """Go by other settings from now on; a route that says the same of its scaling goes on as it was."""
        before, self._routes = self._routes, {n: one for n, one in settings.routes.items() if one.scaling is not None}
        self._highest = settings.queue_delays[0]
        self._backlogs.go_by({name: route for name, route in self._routes.items() if route.scales_apart})
        for name in before.keys() - self._routes.keys():
            self.last.pop(name, None)
        known, self._scalings = self._scalings, {}
        for name, route in self._routes.items():
            assert route.scaling is not None
            own, is_apart = route.scaling, route.scales_apart
            stays = name in before and (before[name].scaling, before[name].scales_apart) == (own, is_apart)
            for queue in route.queue_names if is_apart else (None,):
                made = Scaling(own.consumers_per_process, own.work_off, is_one_of_several=is_apart)
                self._scalings[name, queue] = known.get((name, queue), made) if stays else made

    @property
    def is_asked_for(self) -> bool:
        """Whether any route has `scaling`."""
        return bool(self._routes)

    def told(self) -> dict[str, Any]:
        """Return all of it as JSON; what is not known is null, what never ends as well."""
        return {"routes": {name: as_json(demand) for name, demand in self.last.items()}}

    async def run(self) -> None:
        """Look until cancelled."""
        now = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._backlogs.run(), name="backlogs")
            while True:
                for name, route in self._routes.items():
                    self._look(name, route, now())
                await asyncio.sleep(INTERVAL)

    def _look(self, name: str, route: Route, now: float) -> None:
        verdict = self._verdict_of(name)
        if verdict is not None and now - verdict.reading.at > STALE_AFTER:
            verdict = None
        backlogs = self._backlogs.of(name)
        if not route.scales_apart:
            self.last[name] = self._look_at_all(name, now, verdict, backlogs)
            return
        queues = {queue: self._look_at(name, route, queue, now, verdict) for queue in route.queue_names}
        self.last[name] = Demand(_EACH, backlogs=backlogs or {}, work_off=latest(queues.values()), queues=queues)

    def _look_at_all(
        self, name: str, now: float, verdict: BudgetVerdict | None, backlogs: Mapping[str, ClassBacklog] | None
    ) -> Demand:
        sees = verdict is not None and verdict.cause is not Sign.BLIND
        return self._decide(
            name,
            None,
            now,
            consumers=None if verdict is None else _consumers(verdict),
            taken=verdict.drain.rate if verdict is not None and sees else None,
            is_capacity=verdict is not None and verdict.drain.is_capacity,
            waiting=0.0 if verdict is None else verdict.waiting,
            backlogs=backlogs,
        )

    def _look_at(self, name: str, route: Route, queue: str, now: float, verdict: BudgetVerdict | None) -> Demand:
        view = None if verdict is None else next((one for one in verdict.queues if one.name == queue), None)
        if view is not None and not view.is_known:
            view = None
        of_queue = self._backlogs.of_queue(name, queue)
        taken, because = (None, "") if verdict is None or view is None else self._taken(route, verdict, view)
        if of_queue is not None and of_queue.unknown:
            because = f"{_names(of_queue)}: each event's routing key decides whether it goes there"
        return self._decide(
            name,
            queue,
            now,
            consumers=None if view is None else view.consumers,
            taken=taken,
            is_capacity=view is not None and view.estimate is not None and view.estimate.is_capacity,
            given=0.0 if view is None or view.estimate is None else view.estimate.inflow,
            waiting=0.0 if view is None else view.waiting,
            backlogs=None if of_queue is None or of_queue.unknown else of_queue.classes,
            because=because,
        )

    def _taken(self, route: Route, verdict: BudgetVerdict, view: View) -> tuple[float | None, str]:
        """Return what the consumers of a queue take, None with the reason if that is not known."""
        if not view.consumers:
            return 0.0, ""
        is_meant = route.judged_by == "min" or (route.judged_by == "tagged" and view.name in route.tagged)
        is_counted = is_meant and verdict.states.get(view.name) is not Tether.RESTING
        if not is_counted and (view.delay is None or view.delay > self._highest):
            # What it throws away looks as if it were taken.
            return None, "nobody is held back by this queue, so it may have begun to throw events away"
        return (view.estimate.rate, "") if view.sees and view.estimate is not None else (None, "")

    def _decide(
        self,
        name: str,
        queue: str | None,
        now: float,
        *,
        consumers: int | None,
        taken: float | None,
        is_capacity: bool,
        waiting: float,
        backlogs: Mapping[str, ClassBacklog] | None,
        given: float = 0.0,
        because: str = "",
    ) -> Demand:
        known = backlogs or {}
        sight = Sight(
            at=now,
            consumers=consumers,
            taken=taken,
            is_capacity=is_capacity,
            demand=None if backlogs is None else sum(one.demand_work for one in known.values()),
            backlog=None if backlogs is None else waiting + sum(one.lag_work for one in known.values()),
            given=given,
            because=because,
        )
        wanted = self._scalings[name, queue].look(sight)
        work_off = {} if backlogs is None or taken is None else seconds_to_work_off(known, self._classes, taken)
        if wanted.consumers is not None and self._told.get((name, queue)) != wanted.consumers:
            self._told[name, queue] = wanted.consumers
            which = {} if queue is None else {"queue": queue}
            _say.info(
                "consumers_wanted", route=name, **which, wanted=wanted.consumers, consumers=consumers, why=wanted.why
            )
            self._observer(name, queue, wanted, consumers, taken, sight.demand)
        return Demand(wanted, consumers, taken, known, work_off)


def _consumers(verdict: BudgetVerdict) -> int | None:
    queues = verdict.reading.queues
    known = [queue.consumers for queue in queues if queue is not None]
    return sum(known) if queues and len(known) == len(queues) else None


def _names(of_queue: QueueBacklog) -> str:
    first, *more = sorted(set(of_queue.unknown))
    return f"{first} and {len(more)} more" if more else first
