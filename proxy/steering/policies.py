"""What a route's policy means: the throttle of each of its event types, and the control of the route."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Literal

from proxy.bridge.broker import Lane
from proxy.bridge.catch_up import CatchUp
from proxy.bridge.throttle import OpenThrottle, PacedThrottle, Throttle
from proxy.congestion import laws
from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.collector import Way
from proxy.congestion.divider import Divider
from proxy.congestion.group import Rules
from proxy.congestion.laws import Beginning
from proxy.congestion.loop import ControlLoop
from proxy.congestion.per_type import AimdBatchSize
from proxy.congestion.rate_law import RateLaw
from proxy.settings import Cap, EventType, Route, Settings
from proxy.steering.budgeted import BudgetedThrottle, CappedThrottle, Charge, HeldThrottle, Tiers
from proxy.steering.depths import Depths
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
        lowest_part: Callable[[str], float],
        *,
        observers: Sequence[Observer],
        heard: Sequence[Observer] = (),
        judging: Judging = by_budget,
    ) -> None:
        """Make them; `heard` are told only of what holds back, and not of what is only watched."""
        self._lowest_part = lowest_part
        self._settings = settings
        self._loop = loop
        self._judging = judging
        self._paced = 0
        routes = settings.routes.items()
        self.caps = {name: self._cap_gate(route.cap) for name, route in routes if route.cap is not None}
        """The gates of hard caps, by route."""
        self._costs = {name: settings.costs(name) for name, _ in routes}
        self.shadows = {
            name: RouteShadow(len(settings.classes), lambda name=name: lowest_part(name))  # type: ignore[misc]
            for name, route in routes
            if route.shadow
        }
        """Of the routes whose policy is only watched."""
        self._controlled = {
            name: self._controlled_route(
                name,
                lanes[name],
                others,
                [*observers, QueueNews().on_verdict]
                if route.shadow
                else [*observers, *heard, QueueNews().on_verdict, RouteNews().on_verdict],
            )
            for name, route in routes
            if route.policy == "class_budget"
        }

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

    def throttle(self, event_type: EventType, *, catches_up: bool = False) -> Throttle:
        """Return a new throttle for what is live of an event type, or for what catches up."""
        route = self._settings.routes[event_type.route]
        gates = 2 if route.cap is not None and route.policy == "class_budget" else 1
        rank, classes = self._settings.rank(event_type.priority), len(self._settings.classes)
        tiers = Tiers(rank, classes, gates=gates, catches_up=catches_up)
        throttle: Throttle
        match route.policy:
            case "static":
                throttle = OpenThrottle()
            case "per_type":
                throttle = self._paced_throttle(event_type)
            case "class_budget":
                controlled = self._controlled[event_type.route]
                costs = self._costs[event_type.route][rank]
                charge = Charge(event_type.cost, turn=max(costs) if len(costs) > 1 else None)
                throttle = BudgetedThrottle(controlled.gate, tiers, charge)
        if route.shadow:
            way = Way(route.way(event_type.name, event_type.routing_key), event_type.cost)
            throttle = self.shadows[event_type.route].around(event_type, rank, way, throttle, catches_up=catches_up)
        if route.cap is None:
            return throttle
        counts_bytes = route.cap.bytes is not None
        return CappedThrottle(throttle, self.caps[event_type.route], tiers, counts_bytes=counts_bytes)

    def forget(self, event_type: EventType, throttle: Throttle) -> None:
        """Tell a throttle that no event type has any more nothing of its route."""
        while isinstance(throttle, CappedThrottle | HeldThrottle):
            throttle = throttle.inner
        if isinstance(throttle, ShadowThrottle):
            self.shadows[event_type.route].forget(event_type, throttle)
            throttle = throttle.inner
        if isinstance(throttle, PacedThrottle):
            self._loop.forget(event_type.route, throttle.on_verdict)

    def _paced_throttle(self, event_type: EventType) -> PacedThrottle:
        tick = self._settings.throttling.tick
        # Fractions of the golden ratio spread any number of types evenly over the tick.
        phase = (self._paced * _GOLDEN) % 1.0 * tick
        self._paced += 1
        size = AimdBatchSize(self._settings.classes[event_type.priority])
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

    def _controlled_route(
        self, name: str, lane: Lane, others: Callable[[str, str | None], Others | None], observers: Sequence[Observer]
    ) -> ControlledRoute:
        settings, classes = self._settings, len(self._settings.classes)
        route = settings.routes[name]
        rules = Rules(
            route.judged_by,
            group_min=route.group_min,
            untether=route.untether,
            tags=route.tagged,
        )
        now = asyncio.get_running_loop().time()
        dearest = tuple(max(costs) for costs in self._costs[name])
        budget = RouteBudget(
            name, settings.queue_delays, settings.class_budget, rules, dearest[0], law=self._law(name, route)
        )
        return ControlledRoute(
            budget=self._judging(name, budget),
            gate=Gate(self._divider(classes, now)),
            lane=lane,
            statistics=self._loop.statistics[name],
            queues=route.queue_names,
            others=lambda queue: others(name, queue),
            lowest_part=lambda: self._lowest_part(name),
            dearest=dearest,
            shadow=self.shadows.get(name),
            observers=observers,
        )
