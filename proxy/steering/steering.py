"""All that holds events back and all that is read for it: made from the settings, run beside the bridge."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, NamedTuple, Protocol

from croniter import croniter

from proxy import config
from proxy.bridge.broker import DepthMonitor, Lane, QueueInsights
from proxy.bridge.event_log import EventLog
from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.collector import Way
from proxy.congestion.detector import Verdict
from proxy.congestion.loop import ControlLoop
from proxy.model import Partition
from proxy.settings import Settings
from proxy.steering.class_part import ClassPart, RouteClass
from proxy.steering.depths import Depths
from proxy.steering.episodes import Episodes
from proxy.steering.forms import judge
from proxy.steering.group_backlog import Backlogs
from proxy.steering.insights import Insights
from proxy.steering.letter_queues import letter_queues
from proxy.steering.other_replicas import Lead, OtherReplicas
from proxy.steering.policies import Policies
from proxy.steering.route_control import Judging
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

    def forget(self, route: str) -> None:
        """Keep no verdict on a route that is judged otherwise from now on, or is gone."""
        ...


class Steered(NamedTuple):
    """What became of it when it was to go by other settings."""

    routes: frozenset[str]
    """The event types of these need other throttles."""
    anew: frozenset[str]
    """Of its works, those that must begin again."""


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
        episodes: Episodes | None = None,
    ) -> None:
        settings = in_force.settings
        self._episodes = episodes
        self._in_force = in_force
        self._verdicts = verdicts
        self._wall = wall
        self.control = ControlLoop(list(settings.routes), len(settings.classes), settings.detector)
        for name in settings.routes:
            self.control.observe(name, self._on_verdict)
        queues = _queues(settings)
        timing = settings.broker.depth_interval, settings.broker.depth_polls
        self.depths = Depths(monitor, queues, *timing, letter_queues(settings))
        management = settings.broker.management
        self._insights = (
            None if insights is None or management is None else Insights(insights, queues, management.interval)
        )
        part = ClassPart(self._class_of)
        self._others = OtherReplicas(log, self._lead, done, part)
        self.policies = Policies(
            settings,
            self.control,
            lanes,
            self._others.rate,
            part.of,
            observers=[verdicts.on_budget_verdict],
            heard=[] if episodes is None else [episodes.on_verdict],
            judging=judging,
        )
        backlogs = Backlogs(log, topics, in_force.event_type)
        self.wanted = WantedConsumers(settings, verdicts.last_of_budgets.get, backlogs, on_wanted)

    def works(self) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return what is to run once the log is reached, by its name; `depths` runs from the beginning."""
        works: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {"control clock": self._turn_control}
        if self.policies.reads_others:
            works["others"] = self._others.run
            works["route control"] = self.policies.control(self.depths, self._insights).run
        if self.wanted.is_asked_for:
            works["wanted consumers"] = self.wanted.run
        if self._insights is not None:
            works["insights"] = self._insights.run
        works |= {f"shadow {name}": shadow.run for name, shadow in self.policies.shadows.items()}
        return works

    def go_by(self, before: Settings) -> Steered:
        """Go by what is in force now instead of what was `before`; nothing that is on its way waits for it."""
        settings = self._in_force.settings
        self.depths.look_for(letter_queues(settings))
        if steering_of(before) == steering_of(settings):
            return Steered(frozenset(), frozenset())
        then = settings.routes
        forgotten = {name for name, one in before.routes.items() if name not in then or judge(then[name]) != judge(one)}
        for name in forgotten:
            self._verdicts.forget(name)
        if self._episodes is not None:
            self._episodes.forget(forgotten)
        self.control.go_by(settings.routes, settings.detector)
        for name in settings.routes.keys() - before.routes.keys():
            self.control.observe(name, self._on_verdict)
        routes = self.policies.go_by(settings)
        if (queues := _queues(settings)) != _queues(before):
            self.depths.watch(queues)
            if self._insights is not None:
                self._insights.watch(queues)
        self.wanted.go_by(settings)
        anew = {"control clock"} if settings.statistics != before.statistics else set()
        anew |= {"route control"} if _controlling(settings) != _controlling(before) else set()
        return Steered(routes, frozenset(anew))

    def finish(self) -> None:
        """End all episodes: nothing is held back any more."""
        if self._episodes is not None:
            self._episodes.forget()

    def _on_verdict(self, verdict: Verdict) -> None:
        """Tell what the statistics say to whoever judges by it."""
        judges_itself = self._in_force.settings.routes[verdict.route].policy == "class_budget"
        (self._verdicts.on_statistics if judges_itself else self._verdicts.on_verdict)(verdict)

    def _lead(self, topic: str) -> Lead | None:
        """Return where a topic's events go; with one route only also those of one that this process does not know."""
        event_type = self._in_force.event_type(topic)
        routes = self._in_force.settings.routes
        if event_type is not None:
            queues = routes[event_type.route].way(event_type.name, event_type.routing_key)
            return event_type.route, Way(queues, event_type.cost)
        name, route = next(iter(routes.items()))
        return (name, Way(route.queue_names)) if len(routes) == 1 else None

    def _class_of(self, topic: str) -> RouteClass | None:
        """Return the route and the class of a topic's events."""
        event_type = self._in_force.event_type(topic)
        if event_type is None:
            return None
        return RouteClass(event_type.route, self._in_force.settings.rank(event_type.priority))

    async def _turn_control(self) -> None:
        """Turn the control loop every interval, or at the times of the cron expression."""
        statistics = self._in_force.settings.statistics
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


def steering_of(settings: Settings) -> tuple[object, ...]:
    """Return all that holds events back; what events cost, too, but not which types there are."""
    routes = settings.routes
    return (
        *(routes, settings.classes, settings.class_budget, settings.throttling, settings.statistics),
        *(settings.detector, [settings.costs(name) for name in routes]),
    )


def _controlling(settings: Settings) -> tuple[object, ...]:
    """Return what the one control of all routes goes by."""
    routes = settings.routes.items()
    return settings.class_budget.tick, [(name, one.policy, not one.queues) for name, one in routes]


def _queues(settings: Settings) -> list[str]:
    return sorted({queue for route in settings.routes.values() for queue in route.queue_names})
