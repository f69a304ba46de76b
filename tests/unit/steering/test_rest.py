"""While nothing is sent and nothing waits the routes rest; the first event finds everything as if they had not."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from proxy.bridge.broker import LaneState
from proxy.congestion.signs import Sign
from proxy.errors import BrokerError
from proxy.simulation import virtual_time
from proxy.steering.depths import DOUBT
from proxy.steering.route_control import REST_AFTER, REST_LOOK
from tests.support.route import Rig, ScriptedRoute

TICK = 0.05
Story = Callable[[Rig, ScriptedRoute], Awaitable[None]]


def lived(story: Story, *, capacity: float = 300.0, may_rest: bool = True, has_queue: bool = True) -> None:
    """Let a story happen to a route of which nobody sends anything."""

    async def live() -> None:
        route = ScriptedRoute(capacity=capacity, has_queue=has_queue)
        async with Rig(route, may_rest=may_rest) as rig:
            await asyncio.sleep(5)
            await story(rig, route)

    virtual_time.run(live())


async def looks(rig: Rig, route: ScriptedRoute, seconds: float) -> tuple[float, float]:
    """Return how often a second the depth is asked and the route judged."""
    polls, verdicts = rig.monitor.polls, len(route.verdicts)
    await asyncio.sleep(seconds)
    return (rig.monitor.polls - polls) / seconds, (len(route.verdicts) - verdicts) / seconds


@pytest.mark.parametrize("has_queue", [True, False])
def test_queues_are_looked_at_and_routes_judged_seldom_when_nothing_is_sent(has_queue: bool) -> None:
    async def story(rig: Rig, route: ScriptedRoute) -> None:
        polls, verdicts = await looks(rig, route, 20)
        assert polls == pytest.approx(has_queue / REST_LOOK, abs=0.1)
        assert verdicts == pytest.approx(1 / REST_LOOK, abs=0.1)
        assert {verdict.cause for verdict in route.verdicts[-9:]} == {Sign.NONE}

    lived(story, has_queue=has_queue)


def test_the_depth_is_asked_at_once_and_at_full_pace_for_a_second_when_one_event_comes() -> None:
    async def story(rig: Rig, route: ScriptedRoute) -> None:
        await asyncio.sleep(0.9 * REST_LOOK)
        polls, verdicts = rig.monitor.polls, len(route.verdicts)
        await route.gate.passed(0, 1.0)
        await asyncio.sleep(0.002)  # the monitor takes half of that
        assert rig.monitor.polls == polls + 1
        assert len(route.verdicts) == verdicts + 1
        assert await looks(rig, route, REST_AFTER) == (pytest.approx(1 / TICK, abs=1), pytest.approx(1 / TICK, abs=1))
        await asyncio.sleep(4 * TICK)
        assert (await looks(rig, route, 10))[0] == pytest.approx(1 / REST_LOOK, abs=0.1)

    lived(story)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("phase", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("capacity", [20.0, 300.0])
def test_no_more_is_admitted_at_first_than_without_a_rest_when_many_events_come(
    capacity: float, phase: float, rank: int
) -> None:
    admitted: dict[bool, list[int]] = {}
    for may_rest in (False, True):

        async def story(rig: Rig, route: ScriptedRoute, may_rest: bool = may_rest) -> None:
            await asyncio.sleep(phase * REST_LOOK)
            rig.send(route, rank, want=1000)
            admitted[may_rest] = []
            for _ in range(40):
                await asyncio.sleep(TICK)
                admitted[may_rest].append(sum(route.admitted))

        lived(story, capacity=capacity, may_rest=may_rest)
    # The first look comes at once after a rest, and without one up to a tick later: so it may be ahead by a tick.
    for rested, awake in zip(admitted[True], admitted[False][1:], strict=False):
        assert rested <= 1.25 * awake + 2
    assert admitted[True][-1] >= 0.9 * admitted[False][-1]


def test_it_does_not_rest_when_messages_wait_or_a_consumer_is_missing() -> None:
    async def story(rig: Rig, route: ScriptedRoute) -> None:
        route.least_seen = 1
        await asyncio.sleep(REST_LOOK)
        assert (await looks(rig, route, 5))[0] == pytest.approx(1 / TICK, abs=1)
        route.least_seen = 0
        await asyncio.sleep(REST_AFTER + REST_LOOK)
        assert (await looks(rig, route, 5))[0] < 3
        route.consumers = 0
        await asyncio.sleep(DOUBT + 2 * REST_LOOK)
        assert (await looks(rig, route, 5))[0] == pytest.approx(1 / TICK, abs=1)

    lived(story)


def test_it_does_not_rest_when_something_is_on_its_way_or_others_are_not_known() -> None:
    async def story(rig: Rig, route: ScriptedRoute) -> None:
        route.in_flight = 1
        await asyncio.sleep(REST_LOOK)
        assert (await looks(rig, route, 5))[0] == pytest.approx(1 / TICK, abs=1)
        route.in_flight, route.others = 0, None
        assert (await looks(rig, route, 5))[0] == pytest.approx(1 / TICK, abs=1)

    lived(story)


def test_it_does_not_rest_when_the_lane_is_lost_and_nothing_goes_until_it_is_back() -> None:
    async def story(rig: Rig, route: ScriptedRoute) -> None:
        route.state = LaneState.LOST
        await asyncio.sleep(REST_LOOK + TICK)
        assert route.last.cause is Sign.BLOCKED
        assert (await looks(rig, route, 5))[1] == pytest.approx(1 / TICK, abs=1)
        route.state = LaneState.OPEN
        await asyncio.sleep(2 * TICK)
        assert route.last.cause is Sign.NONE

    lived(story)


def test_the_verdict_says_blind_within_two_ticks_when_the_monitor_is_silent_as_the_first_event_comes() -> None:
    async def story(rig: Rig, route: ScriptedRoute) -> None:
        rig.monitor.failure = BrokerError("gone")
        await route.gate.passed(0, 1.0)
        await asyncio.sleep(2.1 * TICK)
        assert route.last.cause is Sign.BLIND

    lived(story)


def test_it_never_rests_when_routes_send_that_it_does_not_see() -> None:
    async def story(rig: Rig, route: ScriptedRoute) -> None:
        assert await looks(rig, route, 5) == (pytest.approx(1 / TICK, abs=1), pytest.approx(1 / TICK, abs=1))

    lived(story, may_rest=False)
