"""A listener at a gate: what it was granted and did not send comes back, and nothing waits for its wait."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from proxy.bridge.throttle import OpenThrottle, Throttle
from proxy.congestion.divider import Divider
from proxy.congestion.pools import Pool
from proxy.errors import LogError
from proxy.model import Outcome, Reason
from proxy.steering.budgeted import BudgetedThrottle, CappedThrottle, Charge, Tiers
from proxy.steering.gate import Gate
from tests.support.events import PARTITION, events
from tests.support.world import World, lived

STOCK = 1_000.0


def told(
    story: Callable[[World, Gate], Awaitable[None]], *, capped: bool = False, cost: float = 1.0, **traits: object
) -> None:
    """Let a world live behind a gate whose tokens never come again: what is missing was taken."""
    made: list[Gate] = []

    def throttle() -> Throttle:
        gate = Gate(Divider(tiers=3, pools=1 if capped else 3, strict=True))
        for pool in range(1 if capped else 3):
            gate.set_rate(pool, STOCK / 0.01, STOCK)
            gate._divider._pools[pool].rate = 0.0
        gate.refill = lambda _: STOCK
        made.append(gate)
        return (
            CappedThrottle(OpenThrottle(), gate, Tiers(1, 3), counts_bytes=False)
            if capped
            else BudgetedThrottle(gate, Tiers(1, 3), Charge(cost, turn=cost))
        )

    async def with_gate(world: World) -> None:
        await story(world, made[0])
        assert made[0]._waiting == {}

    lived(with_gate, throttle=throttle, **traits)


def pool_of(gate: Gate) -> Pool:
    """Return the pool that binds the world's type, a P2."""
    return gate._divider._pools[gate._divider._tiers[1].gates[0]]


def taken(gate: Gate) -> float:
    return STOCK - pool_of(gate).balance


BOTH = pytest.mark.parametrize("capped", [False, True], ids=["budget", "cap"])


@BOTH
def test_as_many_tokens_are_taken_as_events_are_sent_when_all_goes_well(*, capped: bool) -> None:
    async def story(world: World, gate: Gate) -> None:
        await world.feed(*events(0, 30))
        assert len(world.written) == 30
        assert taken(gate) == 30

    told(story, capped=capped)


@BOTH
def test_tokens_come_back_for_what_the_lane_left_unwritten_when_its_partition_is_revoked(*, capped: bool) -> None:
    async def story(world: World, gate: Gate) -> None:
        world.lane.room = asyncio.Semaphore(4)
        await world.feed(*events(0, 30))
        assert len(world.written) == 4
        world.lane.finish_written()
        began = asyncio.get_running_loop().time()
        await world.assignment.on_revoked([PARTITION])
        assert asyncio.get_running_loop().time() == began
        await asyncio.sleep(0)
        assert taken(gate) == 4

    told(story, capped=capped)


@pytest.mark.parametrize("cost", [0.5, 10.0])
def test_what_they_cost_comes_back_for_events_left_unwritten_when_their_partition_is_revoked(cost: float) -> None:
    async def story(world: World, gate: Gate) -> None:
        world.lane.room = asyncio.Semaphore(4)
        await world.feed(*events(0, 30))
        assert taken(gate) == 30 * cost
        world.lane.finish_written()
        await world.assignment.on_revoked([PARTITION])
        await asyncio.sleep(0)
        assert taken(gate) == 4 * cost

    told(story, cost=cost)


def test_tokens_come_back_for_what_the_lane_left_unwritten_when_a_nack_calls_the_rest_back() -> None:
    async def story(world: World, gate: Gate) -> None:
        world.lane.room = asyncio.Semaphore(4)
        await world.feed(*events(0, 30))
        world.lane.handed[0].recipient.on_outcome(world.lane.handed[0], 0, 4, Outcome.NACKED, seconds=0.001)
        await asyncio.sleep(0.01)
        assert len(world.written) == 4
        assert taken(gate) == 4

    told(story)


def test_tokens_come_back_for_events_too_old_to_be_sent() -> None:
    async def story(world: World, gate: Gate) -> None:
        old = events(0, 10)
        await world.feed(*old, *[world.recent(number) for number in range(10, 13)])
        assert world.written == ["p10", "p11", "p12"]
        assert len(world.dead_lane.written) == 10
        assert taken(gate) == 13  # a dead letter takes one as well

    told(story, max_age=60.0)


def test_tokens_come_back_when_the_type_stops_between_grant_and_lease() -> None:
    async def story(world: World, gate: Gate) -> None:
        world.log.failure = LogError("unreachable")
        await asyncio.sleep(4)
        await world.feed(*events(0, 30))
        assert taken(gate) == 30
        world.listener.is_stopped = True
        world.log.failure = None
        await asyncio.sleep(1)
        assert world.written == []
        assert taken(gate) == 0

    told(story)


def test_tokens_come_back_when_the_listener_ends_between_grant_and_lease() -> None:
    async def story(world: World, gate: Gate) -> None:
        world.log.failure = LogError("unreachable")
        await asyncio.sleep(4)
        await world.feed(*events(0, 30))
        assert taken(gate) == 30
        world.end_listener()
        await asyncio.sleep(0)
        assert taken(gate) == 0

    told(story)


def test_tokens_come_back_when_the_listener_ends_while_the_lane_is_full() -> None:
    async def story(world: World, gate: Gate) -> None:
        world.lane.room = asyncio.Semaphore(7)
        await world.feed(*events(0, 30))
        world.end_listener()
        await asyncio.sleep(0)
        assert taken(gate) == 7

    told(story)


@BOTH
def test_a_revocation_is_over_at_once_when_the_type_waits_for_tokens(*, capped: bool) -> None:
    async def story(world: World, gate: Gate) -> None:
        pool_of(gate).balance = 0.0
        await world.feed(*events(0, 30))
        assert world.written == []
        assert gate._divider.waiting(1) == 1
        began = asyncio.get_running_loop().time()
        await world.assignment.on_revoked([PARTITION])
        assert asyncio.get_running_loop().time() == began
        world.assignment.on_assigned([PARTITION])
        await asyncio.sleep(100)
        gate.give_back(1, 20.0)
        gate.set_rate(0 if capped else 1, 100.0, STOCK)
        await asyncio.sleep(1)
        assert world.written == []
        gate.set_rate(0 if capped else 1, 0.0, STOCK)
        assert taken(gate) == pytest.approx(STOCK - 20 - 100, abs=1.1)

    told(story, capped=capped)


@BOTH
def test_a_stop_is_over_at_once_when_the_type_waits_for_tokens(*, capped: bool) -> None:
    async def story(world: World, gate: Gate) -> None:
        pool_of(gate).balance = 0.0
        await world.feed(*events(0, 30))
        began = asyncio.get_running_loop().time()
        world.pump.stop()
        world.assignment.close()
        assert await world.assignment.drain(world.assignment.flows(), 20.0) == 0
        assert asyncio.get_running_loop().time() == began
        world.end_listener()
        await asyncio.sleep(0)

    told(story, capped=capped)


def test_dead_letters_go_within_their_patience_when_there_are_no_tokens() -> None:
    async def story(world: World, gate: Gate) -> None:
        await world.feed(*events(0, 3))
        pool_of(gate).balance = -5.0
        world.lane.finish(Outcome.UNDELIVERABLE, reason=Reason.UNROUTABLE)
        await asyncio.sleep(0.9)
        assert world.dead_lane.written == []
        await asyncio.sleep(0.2)
        assert len(world.dead_lane.written) == 3

    told(story, capped=True)
