"""AutoMQ's rules, one by one, and its own scenario; then a pool per tier."""

from collections import Counter
from math import inf, sin, tau

import pytest

from proxy.congestion.divider import Divider
from proxy.congestion.pools import PERIOD, Ticket

REFILL = 10.0
"""Tokens of one refill at the rate below."""
RATE = REFILL / PERIOD


def limiter(*, stock: float = 0.0, **options: bool | int) -> Divider:
    """Return one pool of 1,000 tokens a second, burst 50, with so much in stock at time 0."""
    divider = Divider(tiers=4, **options)
    divider.set_rate(0, RATE, 50.0, 0.0)
    divider.give_back(1, stock - REFILL)
    return divider


def ask(divider: Divider, tier: int, size: float, now: float) -> Ticket:
    return divider.request(tier, size, now)[0]


def test_a_lower_tier_passes_at_once_when_there_are_tokens_and_nobody_waits() -> None:
    divider = limiter(stock=20)
    assert ask(divider, 2, 20, 0.0).granted
    assert not ask(divider, 2, 1, 0.0).granted


def test_stock_never_exceeds_the_burst_when_nobody_asks_for_long() -> None:
    divider = limiter()
    assert ask(divider, 1, 50, 60.0).granted
    assert not ask(divider, 1, 1, 60.0).granted


def test_tier_0_passes_at_once_and_the_balance_falls_to_minus_burst_when_it_takes_more_than_there_is() -> None:
    divider = limiter()
    assert ask(divider, 0, 1_000, 0.0).granted
    waiting = ask(divider, 1, 1, 0.0)
    assert divider.next_due() == pytest.approx(6 * PERIOD)  # five refills for the debt of 50, the sixth for itself
    assert divider.advance(5 * PERIOD) == []
    assert divider.advance(6 * PERIOD) == [waiting]


def test_tier_0_waits_like_the_others_when_the_cap_is_strict() -> None:
    divider = limiter(strict=True)
    waiting = ask(divider, 0, 5, 0.0)
    assert not waiting.granted
    assert divider.advance(PERIOD) == [waiting]


def test_a_request_of_three_refills_takes_three_and_goes_in_one_piece_when_it_is_larger_than_one() -> None:
    divider = limiter()
    large = ask(divider, 1, 3 * REFILL, 0.0)
    assert divider.advance(PERIOD) == divider.advance(2 * PERIOD) == []
    assert divider.advance(3 * PERIOD) == [large]


def test_nothing_overtakes_a_waiting_head_of_its_tier_when_it_would_fit() -> None:
    divider = limiter()
    large = ask(divider, 2, 3 * REFILL, 0.0)
    small = ask(divider, 2, 1, 0.0)
    assert divider.advance(2 * PERIOD) == []
    assert divider.advance(4 * PERIOD) == [large, small]


def test_a_higher_tier_goes_first_and_what_was_set_aside_stays_when_it_comes_later() -> None:
    divider = limiter()
    large = ask(divider, 3, 3 * REFILL, 0.0)
    assert divider.advance(2 * PERIOD) == []
    urgent = ask(divider, 1, REFILL, 2 * PERIOD)
    assert divider.advance(3 * PERIOD) == [urgent]
    assert divider.advance(4 * PERIOD) == [large]


def test_what_was_set_aside_goes_to_the_next_when_a_request_is_cancelled() -> None:
    divider = limiter()
    large = ask(divider, 1, 10 * REFILL, 0.0)
    following = ask(divider, 1, 2 * REFILL, 0.0)
    assert divider.advance(2 * PERIOD) == []
    assert divider.cancel(large, 2 * PERIOD) == [following]


def test_all_that_was_set_aside_goes_to_the_next_when_it_is_more_than_the_burst() -> None:
    divider = limiter()
    large = ask(divider, 1, 100 * REFILL, 0.0)
    following = [ask(divider, 1, 20 * REFILL, 0.0) for _ in range(3)]
    assert divider.advance(60 * PERIOD) == []
    assert divider.cancel(large, 60 * PERIOD) == following


def test_refills_add_nothing_to_what_came_back_beyond_the_burst_when_nobody_asks() -> None:
    divider = limiter()
    divider.give_back(1, 10 * REFILL)
    assert ask(divider, 1, 10 * REFILL, 60.0).granted
    assert not ask(divider, 1, 1, 60.0).granted


def test_tokens_go_back_when_a_granted_request_is_cancelled() -> None:
    divider = limiter(stock=20)
    granted = ask(divider, 1, 20, 0.0)
    divider.cancel(granted, 0.0)
    assert ask(divider, 1, 20, 0.0).granted


def test_a_new_rate_acts_from_the_next_refill_and_keeps_debt_and_reserves_when_it_changes() -> None:
    divider = limiter()
    ask(divider, 0, 20, 0.0)
    waiting = ask(divider, 1, 3 * REFILL, 0.0)
    assert divider.advance(3 * PERIOD) == []  # two refills paid the debt, one is set aside
    divider.set_rate(0, 2 * RATE, 50.0, 3 * PERIOD)
    assert divider.next_due() == pytest.approx(4 * PERIOD)
    assert divider.advance(4 * PERIOD) == [waiting]


def test_a_stall_of_the_caller_loses_no_refill_that_was_waited_for_when_it_is_longer_than_the_burst() -> None:
    divider = limiter()
    waiting = [ask(divider, 1, REFILL, 0.0) for _ in range(100)]
    assert divider.advance(1.0) == waiting


def test_nobody_waits_when_there_is_no_rate() -> None:
    assert ask(Divider(tiers=2), 1, 10**9, 0.0).granted


def automq() -> dict[int, list[float]]:
    """Return MB/s by tier and second: a cap of 100 MB/s, tier 0 to 100, tiers 1 and 2 to 60, two-minute cycles.

    The pressure comes in requests of 0.25 MB; after 480 s tier 0 ends, after 600 s all do.
    """
    divider = Divider(tiers=3)
    divider.set_rate(0, 100.0, 1.0, 0.0)
    owed, sent = Counter[int](), {tier: [0.0] * 720 for tier in range(3)}
    size = 0.25
    for step in range(720 * 100):
        now = step * PERIOD
        wave = (1 + sin(tau * now / 120 - tau / 4)) / 2
        for ticket in divider.advance(now):
            sent[ticket.tier][int(now)] += ticket.size
        for tier, peak in enumerate((100.0, 60.0, 60.0)):
            if now < (480 if tier == 0 else 600):
                owed[tier] += peak * wave * PERIOD
            while owed[tier] >= size:
                owed[tier] -= size
                ticket, granted = divider.request(tier, size, now)
                for one in [ticket, *granted]:
                    sent[one.tier][int(now)] += one.size if one.granted else 0.0
    return sent


def test_tiers_yield_and_return_in_their_order_when_automqs_own_scenario_is_played() -> None:
    sent = automq()
    total = [sum(sent[tier][second] for tier in range(3)) for second in range(720)]
    assert max(total) <= 100 * 1.02  # one burst above the cap at most
    pressure = [100 * (1 + sin(tau * (second + 0.5) / 120 - tau / 4)) / 2 for second in range(480)]
    for second, wanted in enumerate(pressure):
        assert sent[0][second] == pytest.approx(wanted, abs=1.5), "tier 0 is untouched"

    def zero_from(tier: int) -> int:
        return next(second for second in range(20, 120) if sent[tier][second] < 1)

    def back_from(tier: int, zero: int) -> int:
        return next(second for second in range(zero, 240) if sent[tier][second] > 1)

    assert zero_from(2) < zero_from(1), "tier 2 falls to zero first, then tier 1"
    assert back_from(1, zero_from(1)) < back_from(2, zero_from(2)), "tier 1 is freed before tier 2"
    assert sum(sent[1]) == pytest.approx(sum(sent[2]), rel=0.01), "all pressure is through in the end"


# -- a pool per tier --------------------------------------------------------------------------------------------------


def budget(rates: tuple[float, ...], burst: float = 10.0) -> Divider:
    divider = Divider(tiers=len(rates), pools=len(rates))
    for pool, rate in enumerate(rates):
        divider.set_rate(pool, rate, burst, 0.0)
    return divider


def through(divider: Divider, wants: dict[int, float], seconds: float, size: float = 1.0) -> Counter[int]:
    """Return tokens by tier when each asks for so many a second, one request at a time waiting."""
    got, owed, waiting = Counter[int](), Counter[int](), Counter[int]()
    for step in range(int(seconds / PERIOD)):
        now = step * PERIOD
        for ticket in divider.advance(now):
            got[ticket.tier] += ticket.size
            waiting[ticket.tier] -= 1
        for tier, rate in wants.items():
            owed[tier] = min(owed[tier] + rate * PERIOD, 100)
            while owed[tier] >= size and waiting[tier] < 5:
                owed[tier] -= size
                ticket, granted = divider.request(tier, size, now)
                for one in granted:
                    got[one.tier] += one.size
                    waiting[one.tier] -= 1
                if ticket.granted:
                    got[tier] += size
                else:
                    waiting[tier] += 1
    return got


def test_the_lowest_class_gets_what_the_others_leave_when_the_top_class_has_no_limit() -> None:
    got = through(budget((inf, 300.0, 300.0)), {0: 180, 1: 60, 2: 1000}, 20)
    assert got[0] == pytest.approx(180 * 20, rel=0.01)
    assert got[1] == pytest.approx(60 * 20, rel=0.01)
    assert got[2] == pytest.approx(60 * 20, rel=0.05)


def test_a_cut_of_the_lowest_pool_takes_nothing_from_a_class_above_when_that_needs_all_of_its_own() -> None:
    got = through(budget((inf, 300.0, 30.0)), {1: 1000, 2: 1000}, 20)
    assert got[1] == pytest.approx(300 * 20, rel=0.02)
    assert got[2] == 0


def test_the_lowest_class_gets_its_trickle_when_those_above_take_everything() -> None:
    divider = budget((inf, 300.0, 300.0))
    divider.set_trickle(2, 6.0, 1.0, 0.0)
    got = through(divider, {0: 200, 1: 1000, 2: 1000}, 20)
    assert got[2] == pytest.approx(6 * 20, rel=0.1)


def test_each_class_gets_its_own_trickle_when_the_first_takes_everything() -> None:
    divider = budget((300.0, 300.0, 300.0))
    for rank, rate in ((1, 6.0), (2, 3.0)):
        divider.set_trickle(rank, rate, 1.0, 0.0)
    got = through(divider, {0: 1000, 1: 1000, 2: 1000}, 20)
    assert got[0] == pytest.approx(300 * 20, rel=0.01)
    assert got[1] == pytest.approx(6 * 20, rel=0.1)
    assert got[2] == pytest.approx(3 * 20, rel=0.1)


def test_it_is_due_when_any_trickle_grants_next() -> None:
    divider = budget((300.0, 0.0, 0.0))
    for rank, rate in ((1, 10.0), (2, 2.0)):
        divider.set_trickle(rank, rate, 1.0, 0.0)
    for tier in (1, 2):
        divider.request(tier, 1.0, 0.0)
    assert divider.next_due() == pytest.approx(0.1)
    assert [ticket.tier for ticket in divider.advance(0.1 + PERIOD / 2)] == [1]
    assert divider.next_due() == pytest.approx(0.5)


def test_no_more_than_its_burst_is_left_of_a_trickle_that_has_become_nothing() -> None:
    divider = budget((300.0, 0.0, 0.0))
    divider.set_trickle(2, 10.0, 5.0, 0.0)
    divider.request(2, 100.0, 0.0)
    divider.advance(0.1)
    divider.set_trickle(2, 0.0, 1.0, 0.1)
    assert divider.advance(10.0) == []
    assert divider.next_due() is None


def test_the_trickle_comes_out_of_the_class_budget_when_the_lowest_class_has_one_anyway() -> None:
    divider = budget((inf, 300.0, 300.0))
    divider.set_trickle(2, 6.0, 1.0, 0.0)
    got = through(divider, {2: 1000}, 20)
    assert got[2] == pytest.approx(300 * 20, rel=0.01)


def test_a_debt_larger_than_the_burst_is_not_forgiven_when_tier_0_takes_on() -> None:
    divider = limiter()
    divider.give_back(1, -1_000)  # an event larger than was thought
    assert ask(divider, 0, 1, 0.0).granted
    ask(divider, 1, 1, 0.0)
    assert divider.next_due() == pytest.approx(101 * PERIOD)


def test_the_balance_falls_to_minus_burst_and_no_further_when_it_is_overdrawn_again_and_again() -> None:
    divider = limiter()
    for _ in range(1_000):
        divider.overdraw(1, REFILL)
    ask(divider, 1, 1, 0.0)
    assert divider.next_due() == pytest.approx(6 * PERIOD)


def test_a_minute_of_refills_is_made_up_for_when_the_caller_was_frozen_for_a_day() -> None:
    divider = limiter()
    divider.set_rate(0, 1.0, 50.0, 0.0)
    day = 86_400.0
    heads = [ask(divider, 1, 10, 0.0) for _ in range(20)]
    assert divider.advance(day) == heads[:6]
    assert divider.next_due() == pytest.approx(day + 10, abs=PERIOD)


def test_a_fair_request_is_the_stock_when_nobody_waits_and_one_refill_when_somebody_does() -> None:
    divider = limiter(stock=35)
    assert divider.portion(1) == 35
    ask(divider, 2, 100, 0.0)
    assert divider.portion(1) == REFILL  # what was in stock is set aside
    assert divider.portion(2) == REFILL
    assert Divider(tiers=2).portion(1) == inf


def test_a_pool_grants_its_stock_and_no_more_until_it_is_told_anew() -> None:
    divider = Divider(tiers=2, pools=2)
    divider.set_stock(0, 5.0, 0.0)
    first, _ = divider.request(0, 4.0, 0.0)
    second, _ = divider.request(0, 4.0, 0.0)
    assert (first.granted, second.granted) == (True, False)
    assert divider.advance(10.0) == []
    assert divider.next_due() is None
    assert divider.set_stock(0, 5.0, 10.0) == [second]


def test_what_is_left_of_a_stock_is_gone_and_a_debt_stays_when_there_is_a_new_one() -> None:
    divider = Divider(tiers=2, pools=2)
    divider.set_stock(0, 5.0, 0.0)
    divider.set_stock(0, 2.0, 0.0)
    assert divider.portion(0) == 2.0
    divider.overdraw(0, 3.0)
    divider.set_stock(0, 5.0, 0.0)
    assert divider.portion(0) == 4.0


def test_a_tier_that_nobody_below_counts_keeps_nobody_below_waiting() -> None:
    divider = Divider(tiers=2, pools=2)
    divider.set_rate(0, 1.0, 1.0, 0.0)
    divider.set_rate(1, 100.0, 5.0, 0.0)
    above, _ = divider.request(0, 5.0, 0.0)
    below, _ = divider.request(1, 1.0, 0.0)
    assert not above.granted
    assert divider.advance(1.0) == [], "it waits behind the one above"
    assert divider.set_counts(1, [False, True], 1.0) == [below]
    assert not above.granted


def test_tokens_of_a_tier_are_taken_from_the_pools_that_count_it_only() -> None:
    divider = Divider(tiers=2, pools=2)
    for pool in (0, 1):
        divider.set_rate(pool, 100.0, 10.0, 0.0)
    divider.set_counts(1, [False, True], 0.0)
    divider.advance(1.0)
    ticket, _ = divider.request(0, 8.0, 1.0)
    assert ticket.granted
    assert (divider.portion(0), divider.portion(1)) == (2.0, 10.0)


def test_the_earliest_of_all_who_do_not_wait_for_another_is_due_next() -> None:
    divider = Divider(tiers=2, pools=2)
    divider.set_rate(0, 1.0, 1.0, 0.0)
    divider.set_rate(1, 100.0, 5.0, 0.0)
    divider.set_counts(1, [False, True], 0.0)
    divider.request(0, 5.0, 0.0)
    divider.request(1, 4.0, 0.0)
    due = divider.next_due()
    assert due is not None
    assert due < 0.1
