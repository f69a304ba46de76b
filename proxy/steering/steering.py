"""All that holds events back and all that is read for it: made from the settings, run beside the bridge."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Protocol

from croniter import croniter

from proxy import config
from proxy.bridge.broker import DepthMonitor, Lane, QueueInsights
from proxy.bridge.event_log import EventLog
from proxy.congestion.class_budget import BudgetVerdict
from proxy.congestion.collector import Way
from proxy.congestion.detector import Verdict
from proxy.congestion.loop import ControlLoop
from proxy.model import Partition
from proxy.steering.depths import Depths
from proxy.steering.group_backlog import Backlogs
from proxy.steering.insights import Insights
from proxy.steering.letter_queues import letter_queues
from proxy.steering.lowest_part import LowestPart
from proxy.steering.other_replicas import Lead, OtherReplicas
from proxy.steering.policies import Policies
from proxy.steering.route_control import Judging
from proxy.steering.route_control import Observer as Heard
from proxy.steering.wanted import Observer, WantedConsumers


class Verdicts(Protocol):
    """Who keeps the verdicts."""

    last_of_budgets: dict[str, BudgetVerdict]
    """By route."""

    def on_verdict(self, verdict: Verdict) -> None:
        """Take one of the statistics."""
        ...

    def on_statistics(self, verdict: Verdict) -> None:
        """Take what the statistics collector has seen of a route that `class_budget` judges."""
        ...

    def on_budget_verdict(self, verdict: BudgetVerdict) -> None:
        """Take one of a class budget."""
        ...


class Steering:
    """Of all routes. `topics` are those that are read, the rest see `App`. Made inside a running loop.

    `done` tells how many events of each own partition are done with.
    """

    def __init__(
        self,
        in_force: config.InForce,
        log: EventLog,
        lanes: Mapping[str, Lane],
        monitor: DepthMonitor,
        insights: QueueInsights | None,
        *,
        topics: Callable[[], Collection[str]],
        done: Callable[[], Mapping[Partition, int]],
        verdicts: Verdicts,
        on_wanted: Observer,
        wall: Callable[[], float],
        judging: Judging,
        heard: Sequence[Heard] = (),
    ) -> None:
        self._settings = settings = in_force.settings
        self._in_force = in_force
        self._wall = wall
        self.control = ControlLoop(list(settings.routes), len(settings.classes), settings.detector)
        for name, route in settings.routes.items():
            judges_itself = route.policy == "class_budget"
            self.control.observe(name, verdicts.on_statistics if judges_itself else verdicts.on_verdict)
        queues = sorted({queue for route in settings.routes.values() for queue in route.queue_names})
        timing = settings.broker.depth_interval, settings.broker.depth_polls
        self.depths = Depths(monitor, queues, *timing, letter_queues(settings))
        management = settings.broker.management
        self._insights = (
            None if insights is None or management is None else Insights(insights, queues, management.interval)
        )
        lowest = LowestPart(self._route_of_lowest)
        self._others = OtherReplicas(log, self._lead, done, lowest)
        self.policies = Policies(
            settings,
            self.control,
            lanes,
            self._others.rate,
            lowest.of,
            observers=[verdicts.on_budget_verdict],
            heard=heard,
            judging=judging,
        )
        apart = {name: route for name, route in settings.routes.items() if route.scales_apart}
        backlogs = Backlogs(log, topics, in_force.event_type, apart)
        self.wanted = WantedConsumers(settings, verdicts.last_of_budgets.get, backlogs, on_wanted)

    def works(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Yield what is to run once the log is reached, each with its name; `depths` runs from the beginning."""
        yield "control clock", self._turn_control()
        if self.policies.reads_others:
            yield "others", self._others.run()
            yield "route control", self.policies.control(self.depths, self._insights).run()
        if self.wanted.is_asked_for:
            yield "wanted consumers", self.wanted.run()
        if self._insights is not None:
            yield "insights", self._insights.run()
        for name, shadow in self.policies.shadows.items():
            yield f"shadow {name}", shadow.run()

    def look_anew(self) -> None:
        """Go by the event types that are in force now."""
        self.depths.look_for(letter_queues(self._in_force.settings))

    def _lead(self, topic: str) -> Lead | None:
        """Return where a topic's events go; with one route only also those of one that this process does not know."""
        event_type = self._in_force.event_type(topic)
        routes = self._settings.routes
        if event_type is not None:
            queues = routes[event_type.route].way(event_type.name, event_type.routing_key)
            return event_type.route, Way(queues, event_type.cost)
        name, route = next(iter(routes.items()))
        return (name, Way(route.queue_names)) if len(routes) == 1 else None

    def _route_of_lowest(self, topic: str) -> str | None:
        """Return the route of a topic of the lowest class."""
        event_type = self._in_force.event_type(topic)
        if event_type is None or self._settings.rank(event_type.priority) < len(self._settings.classes) - 1:
            return None
        return event_type.route

    async def _turn_control(self) -> None:
        """Turn the control loop every interval, or at the times of the cron expression."""
        statistics = self._settings.statistics
        clock = asyncio.get_running_loop().time
        due = clock()
        last = self._wall()
        while True:
            if statistics.cron is None:
                due = max(due + (statistics.period or 1.0), clock())
                await asyncio.sleep(due - clock())
            else:
                wall = self._wall()
                # A sleep that ended a little early must not find the same time again.
                since = last if 0 < last - wall < 1 else wall
                last = croniter(statistics.cron, since, second_at_beginning=True).get_next(float)
                await asyncio.sleep(last - wall)
            self.control.turn()
