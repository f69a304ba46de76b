"""The control tick with gate, monitor and lane: what is seen becomes rates; what is not never makes them grow."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from math import inf

import pytest

from proxy.bridge.broker import LaneState
from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.collector import Way
from proxy.congestion.group import Rules
from proxy.congestion.signs import Sign
from proxy.errors import BrokerError
from proxy.settings import ClassBudget
from proxy.simulation import virtual_time
from proxy.steering.other_replicas import Others
from proxy.steering.route_control import BURST, POLLS_KNOWN
from tests.support.route import Rig, ScriptedRoute

CAPACITY = 300.0


def lived(
    story: Callable[..., Awaitable[None]], *names: str, has_queue: bool = True, tick: float = 0.05, poll: float = 0.05
) -> None:
    """Let routes live through a story; each has a P3 type that always wants more, and a P1 type with 20 a second."""

    async def live() -> None:
        routes = [ScriptedRoute(name, capacity=CAPACITY, has_queue=has_queue) for name in names or ("r",)]
        async with Rig(*routes, tick=tick, poll=poll) as rig:
            for route in routes:
                rig.send(route, 2)
                rig.send(route, 0, want=1, pause=0.05)
            await story(rig, *routes)

    virtual_time.run(live())


async def rate_over(route: ScriptedRoute, seconds: float) -> float:
    """Return how many events a second are admitted from now on."""
    before = sum(route.admitted)
    await asyncio.sleep(seconds)
    return (sum(route.admitted) - before) / seconds


def test_the_rate_settles_at_what_consumers_take_when_types_want_more() -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(5)
        assert await rate_over(route, 20) == pytest.approx(CAPACITY, rel=0.02)
        assert route.depth < 0.15 * CAPACITY
        assert route.last.rates[0] == inf, "the top class was never its own problem"

    lived(story)


def test_the_top_class_has_all_it_wants_when_the_lowest_is_held() -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(5)
        before = route.admitted[0]
        await asyncio.sleep(20)
        assert route.admitted[0] - before >= 20 * 20 * 0.97  # a pause of 0.05 s and 1 ms each

    lived(story)


@pytest.mark.parametrize("phase", [number / 5 for number in range(5)])
@pytest.mark.parametrize("capacity", [50.0, 300.0, 3_000.0])
def test_a_single_message_seen_in_the_queue_does_not_end_the_slow_start(capacity: float, phase: float) -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        route.capacity = capacity
        await asyncio.sleep(0.2 + phase * 0.05)
        route.least_seen = 1
        await asyncio.sleep(0.06)
        route.least_seen = 0
        await asyncio.sleep(4)
        assert await rate_over(route, 5) == pytest.approx(capacity, rel=0.1)

    lived(story)


def test_a_burst_may_be_a_twentieth_of_a_second_and_one_event_at_least_when_rates_are_set() -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(10)
        pools = route.gate._divider._pools
        assert [pool.burst for pool in pools[1:]] == [pytest.approx(rate * 0.05) for rate in route.last.rates[1:]]
        route.state = LaneState.LOST
        await asyncio.sleep(0.2)
        assert [(pool.rate, pool.burst) for pool in pools[1:]] == [(0.0, 1.0)] * 2

    lived(story)


def test_routes_are_judged_once_a_tick_when_the_depth_is_asked_more_often() -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(20)
        assert len(route.verdicts) == pytest.approx(40, abs=2)

    lived(story, tick=0.5)


@pytest.mark.parametrize(("tick", "poll"), [(1.0, 0.05), (0.05, 2.0), (0.01, 1.02)])
def test_the_rate_leaves_its_start_when_the_tick_or_the_poll_is_slow(tick: float, poll: float) -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(60)
        assert await rate_over(route, 20) > 0.7 * CAPACITY

    lived(story, tick=tick, poll=poll)


# -- what is not seen -------------------------------------------------------------------------------------------------


def test_no_rate_grows_and_the_verdict_says_blind_when_the_monitor_is_lost() -> None:
    async def story(rig: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(1)  # still growing
        rig.monitor.failure = BrokerError("gone")
        await asyncio.sleep((POLLS_KNOWN + 2) * 0.05)
        held = route.last.rates
        until = len(route.verdicts)
        await asyncio.sleep(30)
        since = route.verdicts[until:]
        assert len(since) > 250, "ticks go on"
        assert all(verdict.rates == held for verdict in since)
        assert {(verdict.cause, verdict.congested, verdict.delay) for verdict in since} == {(Sign.BLIND, None, None)}

    lived(story)


def test_it_still_cuts_on_nacks_when_it_is_blind() -> None:
    async def story(rig: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(5)
        rig.monitor.failure = BrokerError("gone")
        await asyncio.sleep(1)
        before = route.last.rates[2]
        until = len(route.verdicts)
        route.capacity, route.bound = 60.0, 50.0
        await asyncio.sleep(10)
        since = route.verdicts[until:]
        assert Sign.NACKS in {verdict.cause for verdict in since}
        assert route.last.rates[2] < before / 2
        assert all(later.rates[2] <= sooner.rates[2] for sooner, later in pairwise(since))

    lived(story)


def test_it_holds_when_the_share_of_other_replicas_is_unknown() -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(1)
        route.others = None
        await asyncio.sleep(0.1)
        held = route.last.rates
        await asyncio.sleep(10)
        assert route.last.cause is Sign.BLIND
        assert route.last.rates == held
        route.others = 0.0
        await asyncio.sleep(5)
        assert route.last.rates[2] > held[2]

    lived(story)


def test_it_sees_and_grows_again_when_the_monitor_returns() -> None:
    async def story(rig: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(1)
        rig.monitor.failure = BrokerError("gone")
        await asyncio.sleep(20)
        rig.monitor.failure = None
        await asyncio.sleep(1.5)
        assert route.last.cause is not Sign.BLIND
        await asyncio.sleep(3)
        assert await rate_over(route, 10) == pytest.approx(CAPACITY, rel=0.03)

    lived(story)


# -- lanes that can't send --------------------------------------------------------------------------------------------


def test_a_class_is_given_a_part_of_what_it_is_sure_of_when_other_replicas_have_the_rest_of_it() -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        route.controlled.part = lambda rank: 0.1 * rank
        await asyncio.sleep(5)
        of_each = 0.025 * CAPACITY
        assert route.last.trickles == pytest.approx((0, of_each, of_each), rel=0.2)
        given = [trickle.rate for trickle in route.gate._divider._trickles]
        assert given == pytest.approx([0, 0.1 * route.last.trickles[1], 0.2 * route.last.trickles[2]])

    lived(story)


@pytest.mark.parametrize("state", [LaneState.BLOCKED, LaneState.LOST, LaneState.CONNECTING])
def test_the_rate_is_nothing_and_soon_full_again_when_the_lane_could_not_send(state: LaneState) -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(10)
        route.state = state
        await asyncio.sleep(0.15)
        assert route.last.cause is Sign.BLOCKED
        assert route.last.congested
        assert route.last.rates[1:] == (0.0, 0.0)
        assert not any(route.last.trickles)
        assert await rate_over(route, 20) < 1
        route.state = LaneState.OPEN
        await asyncio.sleep(4)
        assert await rate_over(route, 1) == pytest.approx(CAPACITY, rel=0.1)
        assert route.depth < 0.3 * CAPACITY, "no flood"

    lived(story)


# -- routes -----------------------------------------------------------------------------------------------------------


def test_a_route_without_queues_is_turned_every_tick_and_never_blind() -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(10)
        assert len(route.verdicts) == pytest.approx(200, abs=3)
        assert {verdict.cause for verdict in route.verdicts[10:]} == {Sign.NONE}
        assert route.last.rates[2] > CAPACITY, "nothing tells it that the queue grows"

    lived(story, has_queue=False)


def test_a_route_without_queues_is_held_by_nacks_when_the_queue_is_bounded() -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        route.bound = 60.0
        await asyncio.sleep(20)
        confirmed, nacked = sum(route.statistics.confirmed), route.nacked
        await asyncio.sleep(60)
        confirmed, nacked = sum(route.statistics.confirmed) - confirmed, route.nacked - nacked
        assert nacked / (nacked + confirmed) < 0.05
        assert confirmed / 60 > 0.9 * CAPACITY

    lived(story, has_queue=False)


def test_a_route_keeps_its_rate_when_another_is_stalled_blocked_or_its_queue_is_gone() -> None:
    async def story(_: Rig, well: ScriptedRoute, stalled: ScriptedRoute, blocked: ScriptedRoute) -> None:
        await asyncio.sleep(5)
        stalled.capacity = 0.0
        blocked.state = LaneState.BLOCKED
        assert await rate_over(well, 20) == pytest.approx(CAPACITY, rel=0.02)
        assert stalled.last.congested
        assert await rate_over(stalled, 5) < CAPACITY / 10
        assert blocked.last.cause is Sign.BLOCKED
        assert well.depth < 0.15 * CAPACITY

    lived(story, "well", "stalled", "blocked")


def test_little_is_admitted_when_a_quorum_queue_seems_empty_while_its_consumers_stand_still() -> None:
    """Three of four answers are what RabbitMQ says when the leader does not answer it in time."""

    async def story(rig: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(10)
        route.capacity = 0.0
        route.lies = 3
        before = sum(route.admitted)
        await asyncio.sleep(10)
        assert sum(route.admitted) - before < 1.5 * CAPACITY

    lived(story)


def test_a_stream_among_a_routes_queues_holds_nothing_back() -> None:
    async def story(rig: Rig, route: ScriptedRoute) -> None:
        route.is_stream = True
        await asyncio.sleep(5)
        assert route.last.cause is Sign.NONE
        assert route.last.reading.queues == ()
        assert route.nacked == 0
        assert await rate_over(route, 5) > 3 * CAPACITY

    lived(story)


def test_a_queue_is_told_the_cost_of_what_goes_there_and_of_what_others_send() -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        route.controlled.budget = RouteBudget("r", (0.5, 0.2, 0.08), ClassBudget(), Rules("min"))
        route.controlled.others = lambda queue: Others(30.0, 2.0 if queue is None else 5.0)
        here, elsewhere = Way((route.queue,), 10.0), Way(("another",), 3.0)
        for way in (here, elsewhere):
            route.statistics.open(2, way)
        charged = route.statistics.charged[2]
        route.statistics.on_confirmed(2, 4, 0.001, here)
        route.statistics.on_confirmed(2, 5, 0.001, elsewhere)
        assert route.statistics.charged[2] - charged == 55.0
        await asyncio.sleep(0.2)
        seen = route.last.reading
        assert seen.charged[2] - seen.confirmed[2] == 55.0 - 9
        assert (seen.everything.others_work, seen.inflows[0].others_work) == (60.0, 150.0)
        assert (seen.inflows[0].confirmed[2], seen.inflows[0].charged[2]) == (4, 40.0)

    lived(story)


def test_dear_events_above_are_subtracted_whole_when_the_rate_is_small() -> None:
    async def story(_: Rig, route: ScriptedRoute) -> None:
        route.controlled.dearest = (40.0, 1.0, 10.0)
        await asyncio.sleep(0.2)
        pools = route.gate._divider._pools
        assert pools[2].rate < 100
        assert [(pool.burst, pool.debt) for pool in pools[1:]] == [
            (max(least, pool.rate * BURST), 40.0) for least, pool in zip((1.0, 10.0), pools[1:], strict=True)
        ]

    lived(story)
