"""Waiting for tokens: whoever gives up gives back, and nobody waits longer for it."""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf

import pytest

from proxy.congestion.divider import Divider
from proxy.congestion.pools import PERIOD
from proxy.simulation import virtual_time
from proxy.steering.gate import Gate

RATE = 100.0
"""Tokens a second: one a refill."""


def opened(story: Callable[[Gate], Awaitable[None]], *, burst: float = 5.0) -> None:
    """Let a story happen at a gate of one pool with four tiers that starts with nothing in stock."""

    async def live() -> None:
        gate = Gate(Divider(tiers=4))
        gate.set_rate(0, RATE, burst)
        gate.give_back(1, -1.0)
        await story(gate)
        assert gate._waiting == {}

    virtual_time.run(live())


def now() -> float:
    return asyncio.get_running_loop().time()


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def passing(gate: Gate, tier: int, size: float) -> asyncio.Task[None]:
    return asyncio.create_task(gate.passed(tier, size))


def test_tokens_are_waited_for_as_long_as_the_rate_says_when_there_are_none() -> None:
    async def story(gate: Gate) -> None:
        await gate.passed(1, 3)
        assert now() == pytest.approx(3 * PERIOD)

    opened(story)


def test_the_top_tier_passes_at_once_when_others_wait() -> None:
    async def story(gate: Gate) -> None:
        waiting = passing(gate, 2, 10)
        await asyncio.sleep(0)
        await gate.passed(0, 3)
        assert now() == 0
        await waiting
        assert now() == pytest.approx(13 * PERIOD)  # what passed was subtracted

    opened(story)


def test_the_next_in_turn_gets_at_once_what_was_set_aside_when_the_first_gives_up() -> None:
    async def story(gate: Gate) -> None:
        first, second = passing(gate, 1, 10), passing(gate, 1, 4)
        await asyncio.sleep(5.5 * PERIOD)
        await cancelled(first)
        await second
        assert now() == pytest.approx(5.5 * PERIOD)

    opened(story)


def test_the_next_in_turn_waits_only_for_its_own_tokens_when_the_first_gives_up() -> None:
    async def story(gate: Gate) -> None:
        first, second = passing(gate, 1, 1_000), passing(gate, 1, 10)
        await asyncio.sleep(2.5 * PERIOD)
        await cancelled(first)
        await second
        assert now() == pytest.approx(10 * PERIOD)  # not when the first would have had its thousand

    opened(story)


def test_tokens_go_back_when_they_are_granted_and_given_up_in_the_same_turn_of_the_loop() -> None:
    async def story(gate: Gate) -> None:
        waiting = passing(gate, 1, 1_000)
        await asyncio.sleep(0)
        gate.set_rate(0, inf, inf)  # grants; the task has not run yet
        gate.set_rate(0, RATE, 2_000)
        gate.give_back(1, -1.0)
        await cancelled(waiting)
        await gate.passed(1, 1_000)
        assert now() == 0

    opened(story)


def test_those_who_wait_are_served_from_the_next_refill_when_tokens_are_given_back() -> None:
    async def story(gate: Gate) -> None:
        waiting = passing(gate, 1, 500)
        await asyncio.sleep(0.5 * PERIOD)
        gate.give_back(1, 499)
        await waiting
        assert now() == pytest.approx(PERIOD)

    opened(story, burst=1_000)


def test_nobody_waits_any_more_when_the_limit_goes() -> None:
    async def story(gate: Gate) -> None:
        waiting = passing(gate, 1, 10**9)
        await asyncio.sleep(1)
        gate.set_rate(0, inf, inf)
        await waiting
        assert now() == 1

    opened(story)


def test_everyone_waits_without_a_timer_when_the_rate_is_nothing() -> None:
    async def story(gate: Gate) -> None:
        gate.set_rate(0, 0.0, 5.0)
        waiting = passing(gate, 1, 1)
        await asyncio.sleep(3_600)
        assert not waiting.done()
        assert gate._timer is None
        gate.set_rate(0, RATE, 5.0)
        await waiting
        assert now() == pytest.approx(3_600 + PERIOD)

    opened(story)


def test_the_lowest_tier_gets_its_trickle_when_the_rate_is_nothing() -> None:
    async def live() -> float:
        gate = Gate(Divider(tiers=2, pools=2))
        for pool in range(2):
            gate.set_rate(pool, 0.0, 1.0)
        waiting = passing(gate, 1, 5)
        await asyncio.sleep(1)
        gate.set_trickle(1, 10.0, 1.0)
        await waiting
        return now()

    assert virtual_time.run(live()) == pytest.approx(1.5)


def test_nothing_is_left_behind_when_a_thousand_give_up_at_every_stage() -> None:
    async def story(gate: Gate) -> None:
        tasks = [passing(gate, 1 + number % 3, 1 + number % 7) for number in range(1_000)]
        for number, task in enumerate(tasks):
            if number % 3:
                await asyncio.sleep(PERIOD * (number % 4) / 3)
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert [gate._divider.waiting(tier) for tier in range(4)] == [0, 0, 0, 0]
        given = sum(1 + n % 7 for n, task in enumerate(tasks) if not task.cancelled())
        assert given <= now() * RATE + 5  # one burst
        assert given >= now() * RATE - 5

    opened(story)


def test_the_time_waited_counts_in_full_when_an_event_is_worth_many_minutes_of_the_rate() -> None:
    async def story(gate: Gate) -> None:
        await gate.passed(1, RATE * 600)
        assert now() == pytest.approx(600, abs=2 * PERIOD)

    opened(story)
