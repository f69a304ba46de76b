"""What is old stands behind what is live: in which order, for which tokens, with what share; and who owes what."""

from collections import Counter
from math import inf

import pytest

from proxy.congestion.divider import Divider
from proxy.congestion.pools import PERIOD, Ticket

P1, P2, P3 = 0, 1, 2


def budget(rates: tuple[float, ...], *, last: bool = False, share: float = 0.0) -> Divider:
    """Return one pool per class, each with a burst of 10."""
    divider = Divider(tiers=len(rates), pools=len(rates), last=last, share=share)
    for pool, rate in enumerate(rates):
        divider.set_rate(pool, rate, 10.0, 0.0)
    return divider


def names(divider: Divider, tickets: list[Ticket]) -> list[str]:
    """Return what was granted, as `P2` and `old P2`."""
    told = {rank: f"P{rank + 1}" for rank in range(3)} | {
        divider.catch_up(rank): f"old P{rank + 1}" for rank in range(3)
    }
    return [told[ticket.tier] for ticket in tickets]


def through(divider: Divider, wants: dict[int, float], seconds: float) -> Counter[int]:
    """Return tokens by tier when each asks for so many a second, five requests of one token waiting at most."""
    got, owed, waiting = Counter[int](), Counter[float](), Counter[int]()

    def take(granted: list[Ticket]) -> None:
        for ticket in granted:
            got[ticket.tier] += 1
            waiting[ticket.tier] -= 1

    for step in range(round(seconds / PERIOD)):
        now = step * PERIOD
        take(divider.advance(now))
        for tier, rate in wants.items():
            owed[tier] = min(owed[tier] + rate * PERIOD, 100.0)
            while owed[tier] >= 1 and waiting[tier] < 5:
                owed[tier] -= 1
                waiting[tier] += 1
                ticket, others = divider.request(tier, 1.0, now)
                take([ticket, *others] if ticket.granted else others)
    return got


@pytest.mark.parametrize(
    ("last", "order"),
    [
        (False, ["P1", "P2", "old P2", "P3", "old P3"]),
        (True, ["P1", "P2", "P3", "old P2", "old P3"]),
    ],
)
def test_what_is_old_goes_behind_its_own_class_or_behind_everything_as_it_is_set(last: bool, order: list[str]) -> None:
    divider = budget((100.0, 100.0, 100.0), last=last)
    divider.overdraw(P1, 10.0)
    for tier in (divider.catch_up(P3), divider.catch_up(P2), P3, P2, P1):
        divider.request(tier, 1.0, 0.0)
    assert names(divider, divider.advance(1.0)) == order


@pytest.mark.parametrize("last", [False, True])
def test_what_is_old_gets_all_that_what_is_live_leaves(last: bool) -> None:
    divider = budget((inf, 300.0, 300.0), last=last)
    got = through(divider, {P1: 60, P2: 60, divider.catch_up(P2): 1000}, 20)
    assert got[P2] == pytest.approx(60 * 20, rel=0.01)
    assert got[divider.catch_up(P2)] == pytest.approx(180 * 20, rel=0.02)


@pytest.mark.parametrize("last", [False, True])
def test_what_is_old_is_counted_by_the_pools_of_its_class(last: bool) -> None:
    divider = budget((inf, 300.0, 300.0), last=last)
    divider.advance(1.0)
    assert divider.request(divider.catch_up(P2), 8.0, 1.0)[0].granted
    assert (divider.portion(P2), divider.portion(P3)) == (pytest.approx(3.0), pytest.approx(3.0))


def test_what_is_old_has_no_more_than_the_lowest_class_may_when_it_stands_behind_everything() -> None:
    divider = budget((inf, 300.0, 30.0), last=True)
    assert through(divider, {divider.catch_up(P2): 1000}, 20)[divider.catch_up(P2)] == pytest.approx(600, rel=0.05)
    above = budget((inf, 300.0, 30.0))
    assert through(above, {above.catch_up(P2): 1000}, 20)[above.catch_up(P2)] == pytest.approx(6000, rel=0.05)


def test_what_is_old_and_goes_elsewhere_needs_no_tokens_of_the_lowest_class() -> None:
    divider = budget((inf, 300.0, 30.0), last=True)
    divider.set_counts(P3, [False, False, True], 0.0)
    got = through(divider, {divider.catch_up(P2): 1000, P3: 1000}, 20)
    assert got[divider.catch_up(P2)] == pytest.approx(6000, rel=0.05)


@pytest.mark.parametrize("share", [0.0, 0.025])
def test_what_is_old_gets_its_share_of_its_class_and_no_more_when_what_is_live_takes_all(share: float) -> None:
    divider = budget((inf, 300.0, 300.0), share=share)
    got = through(divider, {P2: 1000, divider.catch_up(P2): 1000}, 40)
    assert sum(got.values()) == pytest.approx(300 * 40, rel=0.01)
    assert got[divider.catch_up(P2)] == pytest.approx(share * got[P2], abs=2)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("rate", [30.0, 180.0, 950.0])
def test_what_is_old_waits_for_one_that_asks_anew_when_its_last_events_are_written(last: bool, rate: float) -> None:
    """Each type asks for a refill, one event at least, and again 3 ms after it was granted: more than there is."""
    divider = budget((inf, rate, rate), last=last)
    got, asks_at = Counter[int](), {P3 if last else P2: 0.0, divider.catch_up(P2): 0.0}
    waiting: dict[Ticket, None] = {}
    for ms in range(20_000):
        now = ms / 1000
        granted = divider.advance(now)
        for tier, at in asks_at.items():
            if now >= at and not any(one.tier == tier for one in waiting):
                ticket, others = divider.request(tier, max(1.0, float(int(divider.portion(tier)))), now)
                waiting[ticket] = None
                granted += [ticket, *others] if ticket.granted else others
        for ticket in granted:
            got[ticket.tier] += 1
            del waiting[ticket]
            asks_at[ticket.tier] = now + 0.003
    assert got[divider.catch_up(P2)] <= 1


def test_what_is_old_gets_its_share_of_what_stands_between_when_it_stands_behind_everything() -> None:
    divider = budget((inf, 300.0, 300.0), last=True, share=0.025)
    got = through(divider, {P3: 1000, divider.catch_up(P2): 1000}, 40)
    assert got[divider.catch_up(P2)] == pytest.approx(0.025 * got[P3], rel=0.02)


def test_classes_above_lose_nothing_to_the_share_of_what_is_old() -> None:
    divider = budget((inf, 100.0, 300.0), share=0.5)
    got = through(divider, {P2: 1000, P3: 1000, divider.catch_up(P3): 1000}, 20)
    assert got[P2] == pytest.approx(100 * 20, rel=0.01)


def test_a_share_that_nobody_waits_for_is_not_saved_up() -> None:
    divider = budget((inf, 300.0, 300.0), share=0.5)
    for second in range(20):
        divider.request(P2, 10.0, second)
    divider.request(P2, 30.0, 20.0)
    old, _ = divider.request(divider.catch_up(P2), 1.0, 20.0)
    assert divider.advance(20.0) == []
    assert old.reserve == 0


def test_the_trickle_of_the_lowest_class_goes_to_what_is_live_of_it_first() -> None:
    divider = budget((inf, 300.0, 300.0))
    divider.set_trickle(P3, 6.0, 1.0, 0.0)
    got = through(divider, {P2: 1000, P3: 4, divider.catch_up(P3): 1000}, 20)
    assert got[P3] == pytest.approx(4 * 20, abs=2)
    assert got[divider.catch_up(P3)] == pytest.approx(2 * 20, rel=0.1)


@pytest.mark.parametrize(("last", "for_whom"), [(False, [False, True, False]), (True, [False, False, True])])
def test_who_waits_counts_for_the_level_whose_rate_is_waited_for(last: bool, for_whom: list[bool]) -> None:
    divider = budget((inf, 300.0, 300.0), last=last)
    divider.request(divider.catch_up(P2), 100.0, 0.0)
    assert [divider.has_waited(rank) for rank in range(3)] == for_whom


@pytest.mark.parametrize("last", [False, True])
def test_it_is_due_when_every_pool_that_it_needs_has_enough(last: bool) -> None:
    divider = budget((inf, 300.0, 30.0), last=last)
    waiting, _ = divider.request(divider.catch_up(P2), 6.0, 0.0)
    due = divider.next_due()
    assert due is not None
    assert divider.advance(due - PERIOD) == []
    assert divider.advance(due) == [waiting]


def test_a_cap_has_the_same_tiers_over_its_one_pool() -> None:
    divider = Divider(tiers=3)
    divider.set_rate(0, 100.0, 1.0, 0.0)
    got = through(divider, {P1: 20, P2: 30, divider.catch_up(P2): 40, P3: 1000}, 20)
    assert [round(got[tier] / 20) for tier in (P1, P2, divider.catch_up(P2), P3)] == [20, 30, 40, 10]


# -- what becomes of a debt -------------------------------------------------------------------------------------------


def cap(burst: float) -> Divider:
    divider = Divider(tiers=3)
    divider.set_rate(0, 100.0, burst, 0.0)
    return divider


def sustained(divider: Divider, rates: list[float]) -> list[float]:
    """Return what P3 gets in each second while P1 takes these rates; P3 always wants."""
    got = []
    waiting, _ = divider.request(P3, 1.0, 0.0)
    for second, rate in enumerate(rates):
        got.append(0.0)
        for step in range(1, 101):
            now = second + step * PERIOD
            divider.request(P1, rate * PERIOD, now)
            divider.advance(now)
            while waiting.granted:
                got[-1] += 1
                waiting, _ = divider.request(P3, 1.0, now)
    return got


def test_nothing_lower_goes_while_the_top_class_is_above_the_cap_and_all_of_it_one_burst_later() -> None:
    assert sustained(cap(10.0), [150, 150, 150, 0, 0]) == [
        pytest.approx(0, abs=1),
        0,
        0,
        pytest.approx(90, abs=1),
        pytest.approx(100, abs=1),
    ]


def test_a_longer_burst_makes_lower_classes_pay_longer() -> None:
    assert sustained(cap(150.0), [150, 150, 150, 0, 0]) == [pytest.approx(0, abs=1), 0, 0, 0, pytest.approx(50, abs=1)]


def test_what_nobody_pays_for_is_counted() -> None:
    divider = cap(10.0)
    sustained(divider, [150, 150, 150, 0, 0])
    assert divider.forgiven == pytest.approx(3 * 50 - 10, abs=2)


@pytest.mark.parametrize(("last", "of_old"), [(False, 6 * 20), (True, 0)])
def test_what_is_old_gets_the_trickle_of_its_class_unless_it_stands_behind_everything(last: bool, of_old: int) -> None:
    divider = budget((100.0, 100.0, 100.0), last=last)
    divider.set_trickle(P2, 6.0, 1.0, 0.0)
    got = through(divider, {P1: 1000, divider.catch_up(P2): 1000}, 20)
    assert got[divider.catch_up(P2)] == pytest.approx(of_old, rel=0.1, abs=12)
