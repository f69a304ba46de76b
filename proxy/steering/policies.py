"""What a route's policy means: the throttle of each of its event types, and the control of the route."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from random import Random
from typing import Literal

from proxy.bridge.broker import Lane
from proxy.bridge.catch_up import CatchUp
from proxy.bridge.throttle import OpenThrottle, PacedThrottle, Throttle
from proxy.congestion import laws
from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.collector import Way
from proxy.congestion.divider import Divider
from proxy.congestion.laws import Beginning
from proxy.congestion.loop import ControlLoop
from proxy.congestion.per_type import AimdBatchSize
from proxy.congestion.rate_law import RateLaw
from proxy.settings import Cap, EventType, Route, Settings
from proxy.steering.budgeted import BudgetedThrottle, CappedThrottle, Charge, HeldThrottle, Tiers
from proxy.steering.depths import Depths
from proxy.steering.forms import dividing, judging, rules_of, throttling, token_of
from proxy.steering.gate import Gate
from proxy.steering.insights import Insights
from proxy.steering.other_replicas import Others
from proxy.steering.queue_news import QueueNews
from proxy.steering.route_control import ControlledRoute, Judging, Observer, RouteControl, by_budget
from proxy.steering.route_news import RouteNews
from proxy.steering.shadow import RouteShadow, ShadowThrottle

_GOLDEN = 0.6180339887

Token = Literal["event", "byte", "work"]
"""What a token of a gate stands for; work is what events are charged, letters one each."""


class Policies:
    """Makes throttles. Made inside a running loop."""

    def __init__(
        self,
        settings: Settings,
        loop: ControlLoop,
        lanes: Mapping[str, Lane],
        others: Callable[[str, str | None], Others | None],
        part: Callable[[str, int], float],
        *,
        observers: Sequence[Observer],
        heard: Sequence[Observer] = (),
        judging: Judging = by_budget,
    ) -> None:
        """Make them; `heard` are told only of what holds back, and not of what is only watched."""
        self._lanes = lanes
        self._others = others
        self._observers = observers
        self._heard = heard
        self._part = part
        self._settings = settings
        self._loop = loop
        self._judging = judging
        self._paced = 0
        self.caps: dict[str, Gate] = {}
        """The gates of hard caps, by route."""
        self.shadows: dict[str, RouteShadow] = {}
        """Of the routes whose policy is only watched."""
        self._controlled: dict[str, ControlledRoute] = {}
        self._budgets: dict[str, RouteBudget] = {}
        """What the routes under `class_budget` have learned."""
        for name in settings.routes:
            self._begin(name)

    def go_by(self, settings: Settings) -> frozenset[str]:
        """Go by other settings from now on; return the routes whose event types need other throttles (`throttle`).

        What a route under `class_budget` has learned of its consumers, and what its gates have granted, stays.
        """
        before, self._settings = self._settings, settings
        for name in before.routes.keys() - settings.routes.keys():
            self._end(name)
        for name in settings.routes:
            if name in before.routes:
                self._go_on(name, before)
            else:
                self._begin(name)
        return frozenset(
            name
            for name in settings.routes
            if name in before.routes and throttling(before, name) != throttling(settings, name)
        )

    def _begin(self, name: str) -> None:
        route = self._settings.routes[name]
        if route.cap is not None:
            self.caps[name] = self._cap_gate(route.cap)
        if route.shadow:
            self.shadows[name] = self._route_shadow(name)
        if route.policy == "class_budget":
            self._controlled[name] = self._controlled_route(name)

    def _end(self, name: str) -> None:
        """Hold nothing back on a route that is gone: what is still sent over it is about to begin anew elsewhere."""
        cap, controlled = self.caps.pop(name, None), self._controlled.get(name)
        if cap is not None:
            cap.set_rate(0, inf, inf)
        for level in range(len(self._settings.classes)) if controlled is not None else ():
            assert controlled is not None
            controlled.gate.set_rate(level, inf, inf)
        self.shadows.pop(name, None)
        self._leave(name)

    def _leave(self, name: str) -> None:
        """Control a route no more."""
        self._budgets.pop(name, None)
        if (left := self._controlled.pop(name, None)) is not None:
            left.statistics.trips.hear(on=False)

    def _go_on(self, name: str, before: Settings) -> None:
        """Bring the gates and the control of a route in line with the settings in force."""
        was, now = before.routes[name], self._settings.routes[name]
        is_divided_alike = dividing(before) == dividing(self._settings)
        if now.cap is None:
            self.caps.pop(name, None)
        elif was.cap is not None and is_divided_alike and token_of(was.cap) == token_of(now.cap):
            self.caps[name].set_rate(0, now.cap.rate, now.cap.rate * now.cap.burst)
        else:
            self.caps[name] = self._cap_gate(now.cap)
        if was.shadow != now.shadow:
            self.shadows.pop(name, None)
        if now.shadow and not was.shadow:
            self.shadows[name] = self._route_shadow(name)
        if now.policy != "class_budget":
            self._leave(name)
        elif was.policy != "class_budget" or was.shadow != now.shadow:  # what was learned is of another queue
            self._controlled[name] = self._controlled_route(name)
        elif judging(before, name) != judging(self._settings, name):
            self._judge_otherwise(name, was, before, is_divided_alike=is_divided_alike)

    def _judge_otherwise(self, name: str, was: Route, before: Settings, *, is_divided_alike: bool) -> None:
        settings, controlled = self._settings, self._controlled[name]
        now, dearest = settings.routes[name], self._dearest(name)
        is_other_law = was.law != now.law or before.class_budget != settings.class_budget
        self._budgets[name].go_by(
            settings.queue_delays,
            settings.class_budget,
            rules_of(now),
            dearest[0],
            now.queue_names if was.queue_names != now.queue_names else None,
            self._law(name, now) if is_other_law else None,
        )
        if not is_divided_alike:
            controlled.gate = self._budget_gate()
        controlled.go_by(now.queue_names, dearest)

    @property
    def reads_others(self) -> bool:
        """Whether any route is controlled by what all replicas do."""
        return bool(self._controlled)

    @property
    def gates(self) -> list[tuple[str, Gate, Token]]:
        """Every gate there is, of which route, and what a token of it is."""
        routes = self._settings.routes
        caps: list[tuple[str, Gate, Token]] = [
            (name, gate, "byte" if (cap := routes[name].cap) is not None and cap.bytes is not None else "event")
            for name, gate in self.caps.items()
        ]
        return [*caps, *((name, route.gate, "work") for name, route in self._controlled.items())]

    def control(self, depths: Depths, insights: Insights | None) -> RouteControl:
        """Return the control of all routes under `class_budget`."""
        sees_all = len(self._controlled) == len(self._settings.routes)
        tick = self._settings.class_budget.tick
        return RouteControl(self._controlled, depths, insights, tick, may_rest=sees_all)

    def catch_up(self, event_type: EventType) -> CatchUp | None:
        """Return where what is old of an event type stands; None: with what is live."""
        settings, tier = self._settings, self._settings.class_budget.catch_up
        is_steered = settings.routes[event_type.route].policy == "class_budget"
        if tier.after is None or not is_steered or not settings.catches_up(event_type.priority):
            return None
        rank = len(settings.classes) - 1 if tier.place == "last" else settings.rank(event_type.priority)
        return CatchUp(tier.after, self.throttle(event_type, catches_up=True), rank)

    def throttle(self, event_type: EventType, *, catches_up: bool = False, before: Throttle | None = None) -> Throttle:
        """Return a new throttle for what is live of an event type, or for what catches up.

        One that is to follow another, `before`, has that one's batch size, if it had one.
        """
        route = self._settings.routes[event_type.route]
        gates = 2 if route.cap is not None and route.policy == "class_budget" else 1
        rank, classes = self._settings.rank(event_type.priority), len(self._settings.classes)
        tiers = Tiers(rank, classes, gates=gates, catches_up=catches_up)
        throttle: Throttle
        match route.policy:
            case "static":
                throttle = OpenThrottle()
            case "per_type":
                throttle = self._paced_throttle(event_type, before)
            case "class_budget":
                controlled = self._controlled[event_type.route]
                costs = self._settings.costs(event_type.route)[rank]
                charge = Charge(event_type.cost, turn=max(costs) if len(costs) > 1 else None)
                throttle = BudgetedThrottle(controlled.gate, tiers, charge)
        if (shadow := self.shadows.get(event_type.route)) is not None:
            way = Way(route.way(event_type.name, event_type.routing_key), event_type.cost)
            throttle = shadow.around(event_type, rank, way, throttle, catches_up=catches_up)
        if route.cap is None:
            return throttle
        counts_bytes = route.cap.bytes is not None
        return CappedThrottle(throttle, self.caps[event_type.route], tiers, counts_bytes=counts_bytes)

    def forget(self, event_type: EventType, throttle: Throttle) -> None:
        """Tell a throttle that no event type has any more nothing of its route."""
        shadow = self.shadows.get(event_type.route)
        for layer in _layers(throttle):
            if isinstance(layer, ShadowThrottle) and shadow is not None:
                shadow.forget(event_type, layer)
        innermost = _innermost(throttle)
        if isinstance(innermost, PacedThrottle):
            self._loop.forget(event_type.route, innermost.on_verdict)

    def _paced_throttle(self, event_type: EventType, before: Throttle | None) -> PacedThrottle:
        tick = self._settings.throttling.tick
        # Fractions of the golden ratio spread any number of types evenly over the tick.
        phase = (self._paced * _GOLDEN) % 1.0 * tick
        self._paced += 1
        followed = None if before is None else _innermost(before).batch_size
        size = AimdBatchSize(self._settings.classes[event_type.priority], followed)
        throttle = PacedThrottle(tick, size, phase=phase)
        self._loop.observe(event_type.route, throttle.on_verdict)
        return throttle

    def _cap_gate(self, cap: Cap) -> Gate:
        now = asyncio.get_running_loop().time()
        gate = Gate(self._divider(1, now, strict=cap.strict))
        gate.set_rate(0, cap.rate, cap.rate * cap.burst)
        return gate

    def _divider(self, pools: int, now: float, *, strict: bool = False) -> Divider:
        budget, classes = self._settings.class_budget, len(self._settings.classes)
        is_last = budget.catch_up.place == "last"
        return Divider(tiers=classes, pools=pools, strict=strict, last=is_last, share=budget.lowest_share, now=now)

    def _law(self, name: str, route: Route) -> Callable[[float], RateLaw]:
        make, chance = laws.find(route.law), Random(name).random  # noqa: S311 -- repeatable is what it must be
        return lambda start: make(Beginning(self._settings.class_budget, start=start, chance=chance))

    def _dearest(self, name: str) -> tuple[float, ...]:
        return tuple(max(costs) for costs in self._settings.costs(name))

    def _budget_gate(self) -> Gate:
        return Gate(self._divider(len(self._settings.classes), asyncio.get_running_loop().time()))

    def _route_shadow(self, name: str) -> RouteShadow:
        classes = len(self._settings.classes)
        return RouteShadow(classes, lambda: self._part(name, classes - 1))

    def _controlled_route(self, name: str) -> ControlledRoute:
        settings, route, dearest = self._settings, self._settings.routes[name], self._dearest(name)
        heard = [] if route.shadow else [*self._heard, RouteNews().on_verdict]
        self._budgets[name] = budget = RouteBudget(
            name,
            settings.queue_delays,
            settings.class_budget,
            rules_of(route),
            dearest[0],
            law=self._law(name, route),
        )
        return ControlledRoute(
            budget=self._judging(name, budget),
            gate=self._budget_gate(),
            lane=self._lanes[name],
            statistics=self._loop.statistics[name],
            queues=route.queue_names,
            others=lambda queue: self._others(name, queue),
            part=lambda rank: self._part(name, rank),
            dearest=dearest,
            shadow=self.shadows.get(name),
            observers=[*self._observers, QueueNews().on_verdict, *heard],
        )


def _layers(throttle: Throttle) -> Iterator[Throttle]:
    yield throttle
    while isinstance(throttle, CappedThrottle | HeldThrottle | ShadowThrottle):
        throttle = throttle.inner
        yield throttle


def _innermost(throttle: Throttle) -> Throttle:
    *_, innermost = _layers(throttle)
    return innermost
