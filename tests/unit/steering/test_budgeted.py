"""Throttles that wait for tokens: fair turns, tokens that come back, caps that hold whatever an event weighs."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from random import Random

import pytest

from proxy.bridge.throttle import OpenThrottle, Throttle
from proxy.congestion.divider import Divider
from proxy.congestion.pools import PERIOD
from proxy.simulation import virtual_time
from proxy.steering.budgeted import (
    AGAIN_PATIENCE,
    BudgetedThrottle,
    CappedThrottle,
    Charge,
    HeldThrottle,
    Tiers,
    pass_in_time,
)
from proxy.steering.gate import Gate
from proxy.steering.route_control import BURST

P1, P2, P3 = 0, 1, 2


def now() -> float:
    return asyncio.get_running_loop().time()


def budget_gate(*rates: float) -> Gate:
    """Return a gate with a pool per class, nothing in stock."""
    gate = Gate(Divider(tiers=len(rates), pools=len(rates)))
    for pool, rate in enumerate(rates):
        gate.set_rate(pool, rate, inf if rate == inf else max(5.0, rate * BURST))
        gate._divider._pools[pool].balance = 0.0
    return gate


def cap_gate(rate: float, *, burst: float = 0.1, strict: bool = False) -> Gate:
    """Return the gate of a hard cap with one pool for three classes, nothing in stock."""
    gate = Gate(Divider(tiers=3, strict=strict))
    gate.set_rate(0, rate, rate * burst)
    gate._divider._pools[0].balance = 0.0
    return gate


def balances(gate: Gate) -> list[float]:
    gate._tell(gate._divider.advance(now()))
    return [pool.balance for pool in gate._divider._pools]


def lived(story: Callable[[], Awaitable[None]]) -> None:
    async def live() -> None:
        await story()

    virtual_time.run(live())


async def cancelled(task: asyncio.Task[int] | asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# -- who gets how much ------------------------------------------------------------------------------------------------


def jain(shares: Sequence[float]) -> float:
    """Return 1 for equal shares, 1/n if one has everything."""
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))


async def takes(throttle: Throttle, want: int, until: float) -> int:
    """Return how many events a type gets that always has `want` waiting."""
    got = 0
    while now() < until:
        granted = await throttle.admit(want, size=100.0, again=False)
        throttle.settle(granted, granted * 100)
        got += granted
    return got


@pytest.mark.parametrize("rate", [37.0, 300.0, 3_000.0])
def test_types_of_a_class_get_equal_shares_when_their_appetites_differ(rate: float) -> None:
    async def story() -> None:
        gate = budget_gate(inf, rate, rate)
        appetites = [31, 45, 60, 80, 100, 200, 500, 1_000, 5_000, 200]
        got = await asyncio.gather(*[takes(BudgetedThrottle(gate, Tiers(P3, 3)), want, 30) for want in appetites])
        assert sum(got) == pytest.approx(rate * 30, rel=0.02, abs=10)
        assert jain(got) > 0.999
        assert max(got) - min(got) <= max(1.0, rate * PERIOD) * 1.01

    lived(story)


def test_what_types_with_little_to_send_leave_goes_to_the_others_when_they_want_more() -> None:
    async def story() -> None:
        gate = budget_gate(inf, 300.0, 300.0)

        async def trickles(throttle: Throttle) -> int:
            got = 0
            while now() < 30:
                await asyncio.sleep(0.2)
                got += await throttle.admit(1, size=1.0, again=False)
            return got

        modest = [trickles(BudgetedThrottle(gate, Tiers(P3, 3))) for _ in range(5)]
        greedy = [takes(BudgetedThrottle(gate, Tiers(P3, 3)), 500, 30) for _ in range(5)]
        got = await asyncio.gather(*modest, *greedy)
        assert min(got[:5]) >= 110  # nearly all of its 5/s, waiting for its turn each time
        assert jain(got[5:]) > 0.999
        assert sum(got) == pytest.approx(9_000, rel=0.02)

    lived(story)


def test_the_top_class_passes_at_once_when_the_lowest_waits() -> None:
    async def story() -> None:
        gate = budget_gate(inf, 100.0, 100.0)
        waiting = [asyncio.create_task(takes(BudgetedThrottle(gate, Tiers(P3, 3)), 100, 5)) for _ in range(20)]
        urgent = BudgetedThrottle(gate, Tiers(P1, 3))
        for _ in range(100):
            await asyncio.sleep(0.0137)
            before = now()
            assert await urgent.admit(7, size=1.0, again=False) == 7
            assert now() == before
        await asyncio.gather(*waiting)

    lived(story)


def test_a_class_that_is_used_up_from_above_gets_nothing_but_its_trickle() -> None:
    async def story() -> None:
        gate = budget_gate(inf, 300.0, 300.0)
        gate.set_trickle(2, 6.0, 3.0)
        above = takes(BudgetedThrottle(gate, Tiers(P2, 3)), 1_000, 20)
        below = takes(BudgetedThrottle(gate, Tiers(P3, 3)), 1_000, 20)
        got = await asyncio.gather(above, below)
        assert got[1] == pytest.approx(6 * 20, abs=6)

    lived(story)


# -- tokens that come back --------------------------------------------------------------------------------------------


def test_tokens_of_every_pool_below_come_back_when_less_is_sent_than_was_admitted() -> None:
    async def story() -> None:
        gate = budget_gate(inf, 10_000.0, 10_000.0)
        throttle = BudgetedThrottle(gate, Tiers(P2, 3))
        assert await throttle.admit(1_000, size=1.0, again=False) == 100
        before = balances(gate)
        throttle.settle(30, 30)
        assert [after - then for after, then in zip(balances(gate), before, strict=True)] == [0, 70, 70]
        throttle.settle(0, 0)
        assert [after - then for after, then in zip(balances(gate), before, strict=True)] == [0, 70, 70]

    lived(story)


def test_both_gates_are_passed_as_another_class_when_a_capped_type_is_lifted() -> None:
    async def story() -> None:
        own, at_cap = Tiers(P3, 3), Tiers(P3, 3)
        budget = BudgetedThrottle(budget_gate(inf, 1.0, 1.0), own)
        throttle = CappedThrottle(budget, cap_gate(1.0), at_cap, counts_bytes=False)
        throttle.lift(1)
        assert (own.first, at_cap.first) == (1, 1)
        throttle.lift(None)
        assert (own.first, at_cap.first) == (P3, P3)

    lived(story)


def test_both_gates_are_passed_as_another_class_when_a_lifted_type_is_held_by_a_person() -> None:
    async def story() -> None:
        own, at_hold = Tiers(P3, 3), Tiers(P3, 3)
        throttle = HeldThrottle(BudgetedThrottle(budget_gate(inf, 1.0, 1.0), own), at_hold)
        throttle.lift(1)
        assert (own.first, at_hold.first) == (1, 1)

    lived(story)


@pytest.mark.parametrize("turn", [0, 1, 2, 3], ids=["asking", "in the first", "in the second", "granted"])
def test_no_token_is_lost_when_a_capped_type_gives_up_at_any_await(turn: int) -> None:
    async def story() -> None:
        budget, cap = budget_gate(inf, 100.0, 100.0), cap_gate(50.0)
        throttle = CappedThrottle(BudgetedThrottle(budget, Tiers(P3, 3)), cap, Tiers(P3, 3), counts_bytes=False)
        asking = asyncio.create_task(throttle.admit(1, size=1.0, again=False))
        if turn:
            await asyncio.sleep((0.5, 1.5, 2.0)[turn - 1] * PERIOD)
        await cancelled(asking)
        refills = now() / PERIOD // 1
        assert balances(budget)[1:] == pytest.approx([refills, refills])
        assert balances(cap) == pytest.approx([refills / 2])
        assert budget._waiting == cap._waiting == {}

    lived(story)


@pytest.mark.parametrize("rates", [(50.0, 100.0), (100.0, 50.0)], ids=["for the budget", "for the cap"])
@pytest.mark.parametrize("refills", [0.5, 1.5])
def test_no_token_is_lost_when_dead_letters_are_given_up_at_any_await(
    refills: float, rates: tuple[float, float]
) -> None:
    async def story() -> None:
        budget, cap = budget_gate(inf, rates[0], rates[0]), cap_gate(rates[1])
        throttle = CappedThrottle(BudgetedThrottle(budget, Tiers(P3, 3)), cap, Tiers(P3, 3), counts_bytes=False)
        asking = asyncio.create_task(throttle.admit_letters(1, size=1.0))
        await asyncio.sleep(refills * PERIOD)
        await cancelled(asking)
        whole = now() / PERIOD // 1
        assert balances(budget)[1:] == pytest.approx([whole * rates[0] * PERIOD] * 2)
        assert balances(cap) == pytest.approx([whole * rates[1] * PERIOD])

    lived(story)


def test_dear_events_take_as_many_tokens_as_they_cost_and_bring_them_back_when_not_sent() -> None:
    async def story() -> None:
        gate = budget_gate(inf, 10_000.0, 10_000.0)
        throttle = BudgetedThrottle(gate, Tiers(P2, 3), Charge(10.0, turn=10.0))
        assert await throttle.admit(1_000, size=1.0, again=False) == 10
        assert gate.taken == 100
        before = balances(gate)
        throttle.settle(3, 3)
        assert [after - then for after, then in zip(balances(gate), before, strict=True)] == [0, 70, 70]
        assert gate.taken == 30

    lived(story)


def test_a_cap_counts_events_or_bytes_as_it_says_when_events_cost_more() -> None:
    async def story() -> None:
        for counts_bytes, taken in ((True, 2 * 70), (False, 2)):
            budget, cap = budget_gate(inf, inf, inf), cap_gate(10_000.0)
            capped = BudgetedThrottle(budget, Tiers(P3, 3), Charge(10.0, turn=10.0))
            throttle = CappedThrottle(capped, cap, Tiers(P3, 3), counts_bytes=counts_bytes)
            await asyncio.sleep(1.0)
            throttle.settle(await throttle.admit(2, size=70.0, again=False), 2 * 70)
            assert (cap.taken, budget.taken) == (taken, 20)

    lived(story)


@pytest.mark.parametrize("kind", ["letters", "retries"])
def test_what_must_go_again_waits_its_patience_once_when_budget_and_cap_have_nothing(kind: str) -> None:
    async def story() -> None:
        tiers = Tiers(P3, 3, gates=2)
        throttle = CappedThrottle(
            BudgetedThrottle(budget_gate(inf, 0.0, 0.0), tiers), cap_gate(0.0), tiers, counts_bytes=False
        )
        if kind == "letters":
            await throttle.admit_letters(5, size=1.0)
        else:
            await throttle.admit(5, size=1.0, again=True)
        assert now() == pytest.approx(AGAIN_PATIENCE)

    lived(story)


# -- what must go again -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rank", "classes", "again"), [(0, 3, 1), (1, 3, 1), (2, 3, 2), (0, 1, 0), (0, 2, 1), (1, 2, 1), (4, 9, 4)]
)
def test_what_goes_again_never_stands_above_the_middle(rank: int, classes: int, again: int) -> None:
    tiers = Tiers(rank, classes)
    assert tiers.of(again=False) == rank
    assert tiers.of(again=True) == again


def test_retries_and_letters_wait_in_the_middle_when_the_top_class_is_without_limit() -> None:
    async def story() -> None:
        gate = budget_gate(inf, 100.0, 100.0)
        throttle = BudgetedThrottle(gate, Tiers(P1, 3))
        await throttle.admit(1, size=1.0, again=False)
        assert now() == 0
        await throttle.admit(1, size=1.0, again=True)
        assert now() == pytest.approx(2 * PERIOD)  # the lowest two pools were debited for the first
        await throttle.admit_letters(3, size=1.0)
        assert now() == pytest.approx(5 * PERIOD)

    lived(story)


@pytest.mark.parametrize("rate", [0.0, 300.0])
def test_what_goes_again_waits_no_longer_than_its_patience_when_the_classes_above_take_everything(rate: float) -> None:
    async def story() -> None:
        gate = budget_gate(inf, rate, rate)
        above = [asyncio.create_task(takes(BudgetedThrottle(gate, Tiers(P2, 3)), 1_000, 5)) for _ in range(500)]
        await asyncio.sleep(0.5)
        throttle = BudgetedThrottle(gate, Tiers(P3, 3))
        before, began = gate._divider._pools[P3].balance, now()
        assert await throttle.admit(1, size=1.0, again=True) == 1
        assert now() - began == pytest.approx(AGAIN_PATIENCE)
        if not rate:
            assert gate._divider._pools[P3].balance == before - 1, "subtracted all the same"
        await throttle.admit_letters(2, size=1.0)
        assert now() - began == pytest.approx(2 * AGAIN_PATIENCE)
        for task in above:
            task.cancel()
        await asyncio.wait(above)

    lived(story)


def test_the_top_class_goes_again_in_one_piece_when_the_class_below_has_next_to_nothing() -> None:
    async def story() -> None:
        throttle = BudgetedThrottle(budget_gate(inf, 1.0, 1.0), Tiers(P1, 3))
        for turn in (1, 2, 3):
            assert await throttle.admit(200, size=1.0, again=True) == 200
            throttle.settle(200, 200)
            assert now() == pytest.approx(turn * AGAIN_PATIENCE)

    lived(story)


def test_tokens_are_taken_once_when_they_come_in_the_turn_in_which_patience_ends() -> None:
    async def story() -> None:
        gate = cap_gate(100.0, burst=10.0)
        await pass_in_time(gate, P3, 100.0, again=True)
        assert now() == pytest.approx(AGAIN_PATIENCE)
        assert balances(gate) == pytest.approx([0.0])

    lived(story)


# -- caps -------------------------------------------------------------------------------------------------------------

MB = 1_000_000


async def sends(throttle: Throttle, size: Callable[[], int], until: float, sent: list[tuple[float, int]]) -> None:
    """Send events of the given sizes until then, as a listener does: the estimate is the mean of what waits."""
    waiting = [size() for _ in range(200)]
    while now() < until:
        granted = await throttle.admit(len(waiting), size=sum(waiting) / len(waiting), again=False)
        batch, waiting = waiting[:granted], waiting[granted:] + [size() for _ in range(granted)]
        throttle.settle(granted, sum(batch))
        sent.append((now(), sum(batch)))


def capped(gate: Gate, rank: int, *, counts_bytes: bool) -> Throttle:
    return CappedThrottle(OpenThrottle(), gate, Tiers(rank, 3), counts_bytes=counts_bytes)


def most_beyond(sent: list[tuple[float, int]], rate: float) -> float:
    """Return by how much any stretch of time, however short, held more than `rate` of it allows."""
    worst = lowest = total = 0.0
    for at, size in sorted(sent):
        lowest = min(lowest, total - rate * at)
        total += size
        worst = max(worst, total - rate * at - lowest)
    return worst


def test_events_larger_than_a_refill_neither_starve_nor_exceed_the_cap_when_small_ones_compete() -> None:
    async def story() -> None:
        gate = cap_gate(10 * MB)  # 100 KB a refill
        large: list[tuple[float, int]] = []
        small: list[tuple[float, int]] = []
        await asyncio.gather(
            sends(capped(gate, P3, counts_bytes=True), lambda: MB, 20, large),
            sends(capped(gate, P3, counts_bytes=True), lambda: 256, 20, small),
        )
        assert all(size == MB for _, size in large)
        total = sum(size for _, size in large + small)
        assert total == pytest.approx(20 * 10 * MB, rel=0.01)
        assert most_beyond(large + small, 10 * MB) <= 2.2 * MB  # a burst, and one large event in one piece
        assert len(large) > 150
        assert len(small) == pytest.approx(len(large), abs=1)  # they take turns

    lived(story)


@pytest.mark.parametrize("rank", [P1, P3])
@pytest.mark.parametrize("types", [1, 5])
def test_the_byte_rate_is_the_cap_in_the_long_run_when_events_weigh_very_differently(rank: int, types: int) -> None:
    async def story() -> None:
        gate = cap_gate(1.0 * MB, strict=True)
        sent: list[tuple[float, int]] = []
        chance = Random(4)

        def weigh() -> int:
            return chance.choice([100, 100, 100, 1_000, 50_000, 900_000])

        throttles = [capped(gate, rank, counts_bytes=True) for _ in range(types)]
        await asyncio.gather(*[sends(throttle, weigh, 600, sent) for throttle in throttles])
        assert sum(size for _, size in sent) == pytest.approx(600 * MB, rel=0.01)

    lived(story)


@pytest.mark.parametrize(("real", "next_at"), [(100, 0.1), (1_000, 0.2), (50_000, 5.1), (900_000, 90.1)])
def test_the_next_waits_for_what_was_really_sent_when_the_estimate_was_wrong(real: int, next_at: float) -> None:
    async def story() -> None:
        throttle = capped(cap_gate(10_000.0, burst=0.01), P3, counts_bytes=True)
        assert await throttle.admit(50, size=1_000.0, again=False) == 1
        assert now() == pytest.approx(0.1)
        throttle.settle(1, real)
        await throttle.admit(50, size=1_000.0, again=False)
        assert now() == pytest.approx(max(0.1, next_at), abs=0.011)

    lived(story)


@pytest.mark.parametrize("counts_bytes", [False, True])
@pytest.mark.parametrize("strict", [False, True])
def test_the_top_class_is_bound_only_when_the_cap_is_strict(*, counts_bytes: bool, strict: bool) -> None:
    async def story() -> None:
        rate = 100_000.0 if counts_bytes else 100.0
        gate = cap_gate(rate, strict=strict)
        throttle = capped(gate, P1, counts_bytes=counts_bytes)
        got = 0
        for _ in range(300):
            granted = await throttle.admit(10, size=1_000.0, again=False)
            throttle.settle(granted, granted * 1_000)
            got += granted
            if now() >= 10:
                break
            await asyncio.sleep(0.01)
        if strict:
            assert got == pytest.approx(now() * 100, abs=12)
        else:
            assert got == 300
            assert now() == pytest.approx(3)

    lived(story)


def test_the_cap_is_kept_as_a_whole_when_classes_share_it() -> None:
    async def story() -> None:
        gate = cap_gate(200.0)
        got: Counter[int] = Counter()

        async def urgent() -> None:
            throttle = capped(gate, P1, counts_bytes=False)
            for _ in range(1_000):
                await asyncio.sleep(0.02)
                got[P1] += await throttle.admit(1, size=1.0, again=False)

        async def rest(rank: int) -> None:
            got[rank] += await takes(capped(gate, rank, counts_bytes=False), 50, 20)

        await asyncio.gather(urgent(), rest(P3))
        assert got[P1] == 1_000
        assert sum(got.values()) == pytest.approx(4_000, abs=25)

    lived(story)


# -- what is old ------------------------------------------------------------------------------------------------------


def test_a_job_without_a_partition_goes_at_its_pace_behind_what_is_live_and_faster_when_that_is_raised() -> None:
    """A redrive of 300 letters in 10 s, told after 4 s to be done in 2 more; P2 leaves 60/s of 100."""

    async def story() -> None:
        gate, pace = budget_gate(inf, 100.0, 100.0), Gate(Divider(tiers=1, strict=True))
        pace.set_rate(0, 300 / 10, 1.0)
        job = CappedThrottle(
            BudgetedThrottle(gate, Tiers(P2, 3, catches_up=True)), pace, Tiers(0, 1), counts_bytes=False
        )
        live = asyncio.create_task(asks(BudgetedThrottle(gate, Tiers(P2, 3)), 40, 8.0))
        assert await takes(job, 10**6, 4.0) == pytest.approx(4 * 30, abs=4)
        pace.set_rate(0, 90.0, 1.0)
        assert await takes(job, 10**6, 8.0) == pytest.approx(4 * 60, rel=0.05)
        assert await live == pytest.approx(40 * 8, abs=2)

    lived(story)


async def asks(throttle: Throttle, rate: float, until: float) -> int:
    """Return how many events a type gets that has one every so often."""
    got, begun = 0, now()
    while now() < until:
        await asyncio.sleep(max(0.0, begun + (got + 1) / rate - now()))
        got += await throttle.admit(1, size=100.0, again=False)
        throttle.settle(1, 100)
    return got


@pytest.mark.parametrize(("rank", "again"), [(P1, 3 + P2), (P2, 3 + P2), (P3, 3 + P3)])
def test_retries_of_what_is_old_stay_behind_what_is_live(rank: int, again: int) -> None:
    tiers = Tiers(rank, 3, catches_up=True)
    assert (tiers.of(again=False), tiers.of(again=True)) == (3 + rank, again)
