"""Which throttle an event type gets, and what types of a route share."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from proxy.bridge.catch_up import CatchUp
from proxy.bridge.throttle import OpenThrottle, PacedThrottle, Throttle
from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.loop import ControlLoop
from proxy.settings import (
    DEFAULT_CLASSES,
    BrokerSettings,
    Cap,
    ClassBudget,
    EventType,
    LogSettings,
    Policy,
    PriorityClass,
    Route,
    RoutingKey,
    Settings,
)
from proxy.simulation import virtual_time
from proxy.steering.budgeted import BudgetedThrottle, CappedThrottle
from proxy.steering.depths import Depths
from proxy.steering.gate import Gate
from proxy.steering.other_replicas import Others
from proxy.steering.policies import Policies
from tests.support.bridge_fakes import ScriptedLane, ScriptedMonitor

KINDS: dict[Policy, type] = {"static": OpenThrottle, "per_type": PacedThrottle, "class_budget": BudgetedThrottle}


class Made:
    """Policies of some routes; made inside a running loop."""

    def __init__(
        self,
        *,
        budget: dict[str, object] | None = None,
        classes: dict[str, PriorityClass] | None = None,
        **routes: Route,
    ) -> None:
        self.settings = Settings(
            log=LogSettings(hosts=["memory:1"], group="g"),
            broker=BrokerSettings(hosts=["memory:1"]),
            routes=routes,
            class_budget=ClassBudget.model_validate(budget or {}),
            classes=classes or DEFAULT_CLASSES,
        )
        self.verdicts: list[BudgetVerdict] = []
        self.loop = ControlLoop(list(routes), 3, self.settings.detector)
        lanes = {name: ScriptedLane() for name in routes}
        self.policies = Policies(
            self.settings, self.loop, lanes, lambda *_: Others(0.0), lambda *_: 1.0, observers=[self.verdicts.append]
        )

    def throttle(self, route: str, priority: str = "P2") -> Throttle:
        return self.policies.throttle(_type(route, priority))

    def catch_up(self, route: str, priority: str) -> CatchUp | None:
        return self.policies.catch_up(_type(route, priority))

    def gate(self, route: str, priority: str = "P2") -> Gate:
        throttle = self.throttle(route, priority)
        assert isinstance(throttle, BudgetedThrottle | CappedThrottle)
        return throttle._gate


def _type(route: str, priority: str) -> EventType:
    return EventType(name="t", topic="t", priority=priority, route=route, routing_key=RoutingKey(constant="q"))


def lived(story: Callable[[], Awaitable[None]]) -> None:
    async def live() -> None:
        await story()

    virtual_time.run(live())


@pytest.mark.parametrize("policy", list(KINDS))
@pytest.mark.parametrize("cap", [None, Cap(events=5), Cap(bytes=5)], ids=["free", "events", "bytes"])
def test_a_type_gets_the_throttle_of_its_routes_policy_within_the_cap_when_there_is_one(
    policy: Policy, cap: Cap | None
) -> None:
    async def story() -> None:
        throttle = Made(r=Route(exchange="x", policy=policy, cap=cap)).throttle("r")
        if cap is not None:
            assert isinstance(throttle, CappedThrottle)
            assert throttle._counts_bytes is (cap.bytes is not None)
            throttle = throttle.inner
        assert type(throttle) is KINDS[policy]

    lived(story)


@pytest.mark.parametrize("route", [Route(exchange="x"), Route(exchange="x", policy="static", cap=Cap(events=5))])
def test_types_share_a_gate_when_they_take_the_same_route(route: Route) -> None:
    async def story() -> None:
        made = Made(one=route, other=route)
        assert made.gate("one", "P1") is made.gate("one", "P3")
        assert made.gate("one") is not made.gate("other")

    lived(story)


def test_a_cap_has_its_burst_and_binds_the_top_class_only_when_it_is_strict() -> None:
    async def story() -> None:
        made = Made(
            soft=Route(exchange="x", policy="static", cap=Cap(events=100, burst=0.5)),
            hard=Route(exchange="x", policy="static", cap=Cap(bytes=10_000, strict=True)),
        )
        assert [(pool.rate, pool.burst) for pool in made.gate("soft")._divider._pools] == [(100, 50)]
        assert [(pool.rate, pool.burst) for pool in made.gate("hard")._divider._pools] == [(10_000, 1_000)]
        assert await made.throttle("soft", "P1").admit(10_000, size=1.0, again=False) == 1
        for _ in range(1_000):
            await made.throttle("soft", "P1").admit(1, size=1.0, again=False)
        assert asyncio.get_running_loop().time() == 0
        for _ in range(10):
            await made.throttle("hard", "P1").admit(1, size=1_000.0, again=False)
        assert asyncio.get_running_loop().time() == pytest.approx(1.0, abs=0.1)

    lived(story)


def test_a_budget_begins_with_the_start_rate_for_every_class() -> None:
    async def story() -> None:
        made = Made(r=Route(exchange="x"))
        assert [pool.rate for pool in made.gate("r")._divider._pools] == 3 * [made.settings.class_budget.start_rate]

    lived(story)


def test_releases_of_types_are_spread_over_the_tick_when_their_policy_is_per_type() -> None:
    async def story() -> None:
        made = Made(r=Route(exchange="x", policy="per_type"))
        phases = sorted(
            throttle._phase for _ in range(100) if isinstance(throttle := made.throttle("r"), PacedThrottle)
        )
        gaps = [later - sooner for sooner, later in pairwise(phases)]
        assert max(gaps) < 3 * made.settings.throttling.tick / 100

    lived(story)


def test_only_routes_under_class_budget_are_controlled_and_their_verdicts_told() -> None:
    async def story() -> None:
        made = Made(
            a=Route(exchange="x", queues=("q",)),
            b=Route(exchange="x", policy="static"),
            c=Route(exchange="x", policy="per_type"),
            d=Route(exchange="x"),
        )
        assert made.policies.reads_others
        assert not Made(b=Route(exchange="x", policy="static")).policies.reads_others
        control = made.policies.control(Depths(ScriptedMonitor({}), ["q"], 0.05), None)
        task = asyncio.create_task(control.run())
        await asyncio.sleep(1)
        task.cancel()
        assert {verdict.route for verdict in made.verdicts} == {"a", "d"}

    lived(story)


@pytest.mark.parametrize(("law", "is_heard"), [("aimd", False), ("cubic", False), ("vegas", True)])
def test_trips_are_noted_on_a_route_whose_law_asks_for_them_only(law: str, *, is_heard: bool) -> None:
    async def story() -> None:
        made = Made(r=Route(exchange="x", law=law), other=Route(exchange="x"))
        assert made.loop.statistics["r"].trips.is_heard is is_heard
        assert not made.loop.statistics["other"].trips.is_heard

    lived(story)


def test_a_route_has_the_rates_of_its_own_law() -> None:
    async def story() -> None:
        made = Made(r=Route(exchange="x", queues=("q",), law="cubic"), other=Route(exchange="x", queues=("q",)))
        laws = {name: made.policies._controlled[name].budget._levels[2]._law for name in ("r", "other")}
        assert {name: type(law).__name__ for name, law in laws.items()} == {"r": "Cubic", "other": "Aimd"}

    lived(story)


@pytest.mark.parametrize(
    ("place", "priority", "rank"), [("class", "P2", 1), ("class", "P3", 2), ("last", "P2", 2), ("last", "P3", 2)]
)
def test_what_is_old_has_a_throttle_and_a_rank_of_its_own_under_class_budget(
    place: str, priority: str, rank: int
) -> None:
    async def story() -> None:
        made = Made(budget={"catch_up": {"after": 60, "place": place}}, r=Route(exchange="x"))
        told = made.catch_up("r", priority)
        assert told is not None
        assert (told.after, told.rank) == (60, rank)
        assert isinstance(told.throttle, BudgetedThrottle)
        assert told.throttle._tiers.first == 3 + {"P2": 1, "P3": 2}[priority]
        assert told.throttle._gate is made.gate("r", priority)
        assert told.throttle._gate._divider._ladder._last is (place == "last")

    lived(story)


@pytest.mark.parametrize(
    ("route", "priority", "settings"),
    [
        (Route(exchange="x"), "P1", {}),
        (Route(exchange="x"), "P2", {"catch_up": {"after": "off"}}),
        (Route(exchange="x", policy="static", cap=Cap(events=5)), "P2", {}),
        (Route(exchange="x", policy="per_type"), "P2", {}),
    ],
    ids=["the top class", "off", "static", "per_type"],
)
def test_what_is_old_goes_like_what_is_live_where_there_is_no_catch_up(
    route: Route, priority: str, settings: dict[str, object]
) -> None:
    async def story() -> None:
        assert Made(budget=settings, r=route).catch_up("r", priority) is None

    lived(story)


def test_what_is_old_goes_like_what_is_live_where_the_class_says_so() -> None:
    async def story() -> None:
        classes = {name: own.model_copy(update={"catch_up": name != "P2"}) for name, own in DEFAULT_CLASSES.items()}
        made = Made(classes=classes, r=Route(exchange="x"))
        assert [made.catch_up("r", name) is None for name in classes] == [True, True, False]

    lived(story)


def test_what_is_old_gets_the_share_that_keeps_the_lowest_class_from_starving() -> None:
    async def story() -> None:
        made = Made(budget={"lowest_share": 0.1}, r=Route(exchange="x", cap=Cap(events=5)))
        assert [gate._divider._share for _, gate, _ in made.policies.gates] == [0.1, 0.1]

    lived(story)
