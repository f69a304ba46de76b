"""What one route's readings mean: which sign, which levels, which rates."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from proxy.congestion.aimd import Aimd
from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.group import Rules
from proxy.congestion.rate_law import RateLaw
from proxy.congestion.reading import Inflow, QueueReading, Reading
from proxy.congestion.receiver import FEWEST
from proxy.congestion.signs import OLDEST, PATIENCE, Sign
from proxy.settings import ClassBudget

THRESHOLDS = (0.5, 0.2, 0.08)
TICK = 0.05
CAPACITY = 300.0

Change = Callable[[Reading], Reading]


class Route:
    """A budget that is told of a queue with some depth, taken from at the capacity while that lasts."""

    def __init__(self, *, has_queue: bool = True, sends: tuple[float, float, float] = (60, 60, 180)) -> None:
        self.budget = RouteBudget("r", THRESHOLDS, ClassBudget())
        self.now = 100.0
        self._sends = sends
        self._has_queue = has_queue
        self._confirmed = [0.0, 0.0, 0.0]

    def see(self, seconds: float, ready: float, change: Change = lambda reading: reading) -> BudgetVerdict:
        """Return the last verdict after the same was seen for some seconds."""
        for _ in range(max(1, round(seconds / TICK))):
            self.now += TICK
            for rank, rate in enumerate(self._sends):
                self._confirmed[rank] += rate * TICK
            queue = QueueReading(round(ready), 4, self.now, 3 * TICK)
            reading = Reading(
                at=self.now,
                queues=(queue,) if self._has_queue else (),
                confirmed=tuple(round(count) for count in self._confirmed),
                latency=0.002,
                waited=(False, False, True),
            )
            verdict = self.budget.judge(change(reading))
        return verdict


def at_work() -> Route:
    """Return a route that has found its rate: 20 ms of queue, never empty."""
    route = Route()
    route.see(3.0, 40)
    route.see(3.0, 6)
    return route


@pytest.mark.parametrize(
    ("ready", "hot"),
    [
        (20, (False, False, False)),
        (30, (False, False, True)),
        (75, (False, True, True)),
        (180, (True, True, True)),
    ],
)
def test_the_lower_the_class_the_sooner_it_is_hot_when_the_queue_grows(ready: int, hot: tuple[bool, ...]) -> None:
    route = at_work()
    verdict = route.see(1.5, ready)
    assert verdict.hot == hot
    assert verdict.congested is any(hot)
    assert verdict.cause is (Sign.DEPTH if any(hot) else Sign.NONE)
    assert verdict.delay == pytest.approx(ready / CAPACITY, rel=0.1)


def test_only_the_lowest_class_is_cut_when_only_its_threshold_is_passed() -> None:
    verdict = at_work().see(0.5, 30)
    assert verdict.rates[0] == inf
    assert verdict.rates[2] <= 0.92 * CAPACITY * 1.05


def test_a_level_above_may_always_send_as_much_as_one_below_when_anything_is_seen() -> None:
    route = at_work()
    for ready in (0, 30, 100, 300, 30, 0):
        rates = route.see(1.0, ready).rates
        assert list(rates) == sorted(rates, reverse=True)


def test_a_few_messages_are_no_sign_when_almost_nothing_is_sent() -> None:
    route = Route(sends=(1, 0, 0))
    assert not any(route.see(5.0, FEWEST - 1).hot)


def test_a_burst_is_no_congestion_when_the_queue_was_empty_a_moment_ago() -> None:
    route = Route(sends=(5, 0, 0))
    route.see(5.0, 0)
    assert not any(route.see(TICK, 30).hot)


def test_nothing_is_said_and_nothing_grows_when_the_depth_is_too_old() -> None:
    route = at_work()
    before = route.budget.rates

    def is_old(reading: Reading) -> Reading:
        return replace(reading, queues=tuple(replace(queue, at=100.0) for queue in reading.queues if queue))

    verdict = route.see(5.0, 0, is_old)
    assert (verdict.congested, verdict.cause) == (None, Sign.BLIND)
    assert verdict.delay is None
    assert all(now <= then for now, then in zip(verdict.rates, before, strict=True))


@pytest.mark.parametrize(
    "blinds",
    [
        lambda reading: replace(reading, queues=(None,)),
        lambda reading: replace(reading, others=None),
    ],
)
def test_nothing_grows_when_one_thing_needed_is_not_known(blinds: Change) -> None:
    route = at_work()
    before = route.budget.rates
    verdict = route.see(5.0, 0, blinds)
    assert verdict.cause is Sign.BLIND
    assert all(now <= then for now, then in zip(verdict.rates, before, strict=True))


def has_none(reading: Reading) -> Reading:
    return replace(reading, queues=tuple(replace(queue, consumers=0) for queue in reading.queues if queue))


def test_the_route_stops_when_a_backlog_has_no_consumer() -> None:
    verdict = at_work().see(0.5, 20, has_none)
    assert (verdict.cause, verdict.congested, verdict.rates) == (Sign.NO_CONSUMERS, True, (0.0, 0.0, 0.0))


def test_it_is_as_quick_as_before_within_two_seconds_when_the_consumers_come_back() -> None:
    route = at_work()
    before = route.budget.rates[-1]
    route.see(20.0, 20, has_none)
    assert route.see(2.0, 0).rates[-1] >= before


def test_a_rate_doubles_every_third_of_a_second_when_the_queue_stays_empty() -> None:
    route = at_work()
    before = route.see(0.5, 0).rates[-1]
    assert route.see(0.6, 0).rates[-1] == pytest.approx(4 * before, rel=0.2)


def test_no_rate_is_searched_when_the_queue_was_empty_for_a_moment_only() -> None:
    route = at_work()
    before = route.budget.rates[-1]
    for _ in range(10):
        route.see(0.1, 0)
        route.see(0.05, 5)
    assert route.budget.rates[-1] < 1.5 * before


def test_the_search_ends_when_the_first_messages_wait() -> None:
    route = at_work()
    before = route.see(1.0, 0).rates[-1]
    assert route.see(0.2, 10).rates[-1] <= 1.1 * before


def is_left(reading: Reading) -> Reading:
    return replace(reading, queues=tuple(replace(queue, consumers=0) for queue in reading.queues if queue))


@pytest.mark.parametrize("before", [is_left, lambda reading: replace(reading, can_publish=False)])
def test_growth_ends_at_a_bound_when_no_queue_was_ever_seen_in_front_of_consumers(before: Change) -> None:
    route = Route()
    route.see(4.0, 10 if before is is_left else 0, before)
    assert route.see(20.0, 0).rates[-1] == ClassBudget().unseen_rate


def test_growth_has_no_bound_when_consumers_were_seen_to_let_a_queue_form() -> None:
    route = Route()
    route.see(1.0, 10)
    assert route.see(20.0, 0).rates[-1] > 10**6


def is_wanted(reading: Reading) -> Reading:
    return replace(reading, waited=(True, False, True))


def test_the_top_class_may_send_twice_as_much_after_each_answer_when_it_waits_and_the_queue_is_empty() -> None:
    route = at_work()
    first = route.see(TICK, 0, is_wanted).allowance
    assert first is not None
    assert first >= 0.25 * CAPACITY
    grown = [route.see(TICK, 0, is_wanted).allowance for _ in range(3)]
    assert grown == [pytest.approx(first * 2**step, rel=0.1) for step in (1, 2, 3)]


def test_the_top_class_may_fill_the_queue_to_half_its_threshold_when_there_is_one() -> None:
    verdict = at_work().see(2.0, 30, is_wanted)
    assert verdict.allowance == pytest.approx(0.5 * THRESHOLDS[0] * CAPACITY - 30, rel=0.1)
    verdict = at_work().see(2.0, 140, is_wanted)
    assert verdict.allowance == pytest.approx(0.9 * CAPACITY * TICK, rel=0.1)


def test_the_top_class_is_held_to_what_consumers_took_when_the_depth_is_not_known() -> None:
    route = at_work()
    route.see(0.5, 6)
    verdict = route.see(5.0, 0, lambda reading: replace(reading, queues=(None,), waited=(True, True, True)))
    assert verdict.allowance is None
    assert verdict.rates[0] == pytest.approx(max(CAPACITY, verdict.rates[1]), rel=0.1)


def test_nothing_is_told_anew_when_the_depth_was_not_asked_since() -> None:
    route = at_work()
    at = route.now

    def is_old(reading: Reading) -> Reading:
        return replace(reading, queues=tuple(replace(queue, at=at) for queue in reading.queues if queue))

    assert route.see(TICK, 6, is_old).allowance is None


def test_the_top_class_of_a_route_without_queues_has_no_limit_when_nothing_speaks_against_it() -> None:
    verdict = Route(has_queue=False).see(1.0, 0)
    assert (verdict.rates[0], verdict.allowance) == (inf, inf)


def test_the_queue_may_be_half_as_long_when_the_consumers_have_become_slow() -> None:
    route = Route(sends=(30, 30, 90))
    assert not any(route.see(3.0, 10).hot)
    route = Route(sends=(60, 60, 180))
    route.see(3.0, 10)
    route._sends = (30, 30, 90)
    assert route.see(2.0, 10).hot == (False, False, True), "what the consumers hold stands for twice as long"


def test_every_class_is_hot_when_consumers_only_take() -> None:
    verdict = at_work().see(0.5, 0, lambda reading: replace(reading, unacked_growing=True))
    assert (verdict.cause, verdict.hot) == (Sign.UNACKED, (True, True, True))


def nacking(share: float, start: float) -> Change:
    def change(reading: Reading) -> Reading:
        return replace(reading, failed=round(max(0.0, reading.at - start) * share * CAPACITY))

    return change


def test_nacks_are_held_against_the_lowest_class_first_and_then_one_more_when_they_go_on() -> None:
    route = at_work()
    nacks = nacking(0.1, route.now)
    assert route.see(0.4, 2, nacks).hot == (False, False, True)
    assert route.see(PATIENCE, 2, nacks).hot == (False, True, True)
    verdict = route.see(PATIENCE, 2, nacks)
    assert (verdict.cause, verdict.hot) == (Sign.NACKS, (True, True, True))


def test_one_nack_in_a_thousand_is_no_sign_when_events_flow() -> None:
    route = at_work()
    assert not any(route.see(3.0, 2, nacking(0.001, route.now)).hot)


def test_nacks_are_held_against_the_only_class_that_sends_when_the_others_do_not() -> None:
    route = Route(sends=(300, 0, 0))
    route.see(6.0, 6)
    assert route.see(0.4, 2, nacking(0.1, route.now)).hot[0]


def test_a_route_without_queues_grows_when_nothing_speaks_against_it() -> None:
    route = Route(has_queue=False)
    assert route.see(10.0, 0).rates[2] > 10 * CAPACITY


def test_the_route_stops_when_its_connection_can_t_send() -> None:
    verdict = at_work().see(0.2, 2, lambda reading: replace(reading, can_publish=False))
    assert (verdict.congested, verdict.cause, verdict.rates, verdict.trickles) == (
        True,
        Sign.BLOCKED,
        (0, 0, 0),
        (0, 0, 0),
    )


def test_the_route_stops_when_an_event_has_been_unconfirmed_for_long() -> None:
    route = at_work()
    assert route.see(0.2, 2, lambda reading: replace(reading, oldest=OLDEST - 0.1)).cause is Sign.NONE
    assert route.see(0.2, 2, lambda reading: replace(reading, oldest=OLDEST + 0.1)).cause is Sign.UNCONFIRMED


def test_a_wait_is_no_sign_when_twice_as_long_a_one_ended_well() -> None:
    route = at_work()
    route.see(0.2, 2, lambda reading: replace(reading, oldest=1.9))
    route.see(0.2, 2)
    assert route.see(0.2, 2, lambda reading: replace(reading, oldest=3.0)).cause is Sign.NONE


def test_each_class_below_the_first_is_sure_of_a_share_of_what_the_consumers_take_when_they_are_busy() -> None:
    of_each = 0.025 * CAPACITY
    assert at_work().see(1.0, 20).trickles == pytest.approx((0, of_each, of_each), rel=0.1)


def test_a_slow_broker_is_a_sign_when_even_its_quickest_confirm_is_late() -> None:
    verdict = at_work().see(1.5, 2, lambda reading: replace(reading, latency=0.3))
    assert (verdict.cause, verdict.hot[2]) == (Sign.LATENCY, True)


def fan_out(
    budget: RouteBudget, seconds: float, start: float, fast: float, slow: float, **slow_queue: Any
) -> BudgetVerdict:
    """Return the last verdict on two queues that get every event, 100 a second, and stay as deep as they are."""
    for step in range(round(seconds / TICK)):
        now = start + step * TICK
        queues = [QueueReading(round(ready), 4, now, 3 * TICK) for ready in (fast, slow)]
        queues[1] = replace(queues[1], **slow_queue)
        count = round(100 * now)
        verdict = budget.judge(
            Reading(
                at=now,
                queues=tuple(queues),
                names=("fast", "slow"),
                confirmed=(count // 5, 0, count - count // 5),
                waited=(False, False, True),
            )
        )
    return verdict


def judged(strategy: str, **rules: Any) -> RouteBudget:
    return RouteBudget("r", THRESHOLDS, ClassBudget(), Rules(strategy, **rules))


@pytest.mark.parametrize(("strategy", "ruled_by", "is_hot"), [("min", "slow", True), ("max", "fast", False)])
def test_the_queue_that_rules_is_named_and_judged_by_itself(strategy: str, ruled_by: str, is_hot: bool) -> None:
    verdict = fan_out(judged(strategy), 3.0, 100.0, fast=2, slow=15)
    assert (verdict.ruled_by, any(verdict.hot)) == (ruled_by, is_hot)
    assert [view.name for view in verdict.queues] == ["fast", "slow"]
    assert [view.delay for view in verdict.queues] == [pytest.approx(0.02, rel=0.2), pytest.approx(0.15, rel=0.2)]


def test_no_queue_is_named_when_they_are_judged_together() -> None:
    verdict = fan_out(judged("sum"), 3.0, 100.0, fast=2, slow=15)
    assert verdict.ruled_by is None
    assert verdict.delay == pytest.approx(0.17, rel=0.2)


def test_nothing_is_sent_when_fewer_queues_have_consumers_than_the_group_needs() -> None:
    budget = judged("min", group_min=2)
    assert fan_out(budget, 3.0, 100.0, fast=2, slow=2).cause is Sign.NONE
    verdict = fan_out(budget, 6.0, 103.0, fast=0, slow=0, consumers=0)
    assert (verdict.cause, verdict.rates) == (Sign.NO_CONSUMERS, (0.0, 0.0, 0.0))


def test_the_others_go_on_when_a_queue_has_left_the_group() -> None:
    budget = judged("min")
    fan_out(budget, 3.0, 100.0, fast=2, slow=2)
    assert fan_out(budget, 3.0, 103.0, fast=2, slow=200, consumers=0).hot[2]
    verdict = fan_out(budget, 3.0, 106.0, fast=2, slow=500, consumers=0)
    assert (verdict.ruled_by, verdict.cause) == ("fast", Sign.NONE)


def split(seconds: float, *, slow: int) -> BudgetVerdict:
    """Return the last verdict where P1 goes to one queue, at 60/s, and P3 to another, at 30/s."""
    budget = judged("min")
    for step in range(round(seconds / TICK)):
        now = 100.0 + step * TICK
        fast_count, slow_count = round(60 * now), round(30 * now)
        verdict = budget.judge(
            Reading(
                at=now,
                queues=(QueueReading(0, 4, now, 3 * TICK), QueueReading(slow, 4, now, 3 * TICK)),
                names=("fast", "slow"),
                inflows=(
                    Inflow((fast_count, 0, 0), (True, False, False)),
                    Inflow((0, 0, slow_count), (False, False, True)),
                ),
                confirmed=(fast_count, 0, slow_count),
                waited=(False, False, True),
            )
        )
    return verdict


def test_a_class_is_held_by_its_own_queue_only_when_the_route_is_split() -> None:
    verdict = split(3.0, slow=9)
    assert (verdict.ruled_by, verdict.hot[0], verdict.hot[2]) == ("slow", False, True)
    assert verdict.rates[0] == inf
    assert verdict.rates[2] < 30, "the rate of P3 is that of its own queue"
    assert verdict.counts[2] == (False, False, True), "P1 takes nothing from it"
    assert verdict.trickles == pytest.approx((0, 0.025 * 30, 0.025 * 30), rel=0.1)


def test_every_class_counts_into_the_one_queue_when_all_go_there() -> None:
    assert fan_out(judged("min"), 1.0, 100.0, fast=2, slow=15).counts == (
        (True, False, False),
        (True, True, False),
        (True, True, True),
    )


def test_a_rate_is_brought_down_to_what_was_taken_when_the_depth_is_lost_in_an_overload() -> None:
    route = at_work()
    route.budget._levels[2]._law.rate = 330.0
    verdict = route.see(1.0, 0, lambda reading: replace(reading, queues=(None,)))
    assert verdict.rates[2] == pytest.approx(CAPACITY, rel=0.05)


def dear(reading: Reading) -> Reading:
    """Let an event of the lowest class cost 10."""
    urgent, middle, low = reading.confirmed
    return replace(reading, charged=(float(urgent), float(middle), 10.0 * low))


def test_delay_and_drain_are_of_work_when_a_class_costs_more() -> None:
    route = Route(sends=(60, 60, 18))  # as much work as ever: 300 a second
    route.see(3.0, 20, dear)
    verdict = route.see(1.0, 20, dear)
    assert verdict.drain.rate == pytest.approx(CAPACITY, rel=0.05)
    assert verdict.waiting == pytest.approx(20 * 300 / 138, rel=0.2)
    assert verdict.delay == pytest.approx(verdict.waiting / CAPACITY, rel=0.05)
    assert not verdict.is_even


def test_few_messages_are_hot_when_they_are_dear() -> None:
    route = Route(sends=(0, 0, 30))
    route.see(3.0, 2, dear)
    assert route.see(1.0, 5, dear).hot == (False, False, True)
    assert Route(sends=(0, 0, 30)).see(4.0, 2, dear).hot == (False, False, False)


def test_what_other_replicas_send_counts_by_its_cost() -> None:
    route = Route(sends=(60, 0, 0))
    verdict = route.see(4.0, 10, lambda reading: replace(reading, others=24.0, others_cost=10.0))
    assert verdict.drain.rate == pytest.approx(300, rel=0.05)
    assert verdict.waiting == pytest.approx(10 * 300 / 84, rel=0.1)


def test_an_event_of_the_top_class_may_always_go_when_it_is_dear() -> None:
    budget = RouteBudget("r", THRESHOLDS, ClassBudget(start_rate=1.0), dearest=40.0)
    queue = QueueReading(50, 4, 1.0, 3 * TICK)
    verdict = budget.judge(Reading(at=1.0, queues=(queue,), confirmed=(0, 0, 0), waited=(True, False, False)))
    assert verdict.allowance == 40.0


def test_what_the_consumers_take_is_known_at_once_when_other_thresholds_come_into_force() -> None:
    route = at_work()
    before = route.see(1.5, 30)
    assert before.hot == (False, False, True)
    route.budget.go_by((0.5, 0.2, 0.19), ClassBudget(), Rules(), 1.0, None, None)
    after = route.see(TICK, 30)
    assert after.drain.rate == pytest.approx(before.drain.rate, rel=0.05)
    assert after.hot == (False, False, False)
    assert after.rates[2] == pytest.approx(before.rates[2], rel=0.1)


def test_what_all_queues_together_took_is_forgotten_when_there_are_others() -> None:
    route = at_work()
    route.budget.go_by(THRESHOLDS, ClassBudget(), Rules(), 1.0, ("other",), None)
    verdict = route.see(TICK, 30)
    assert verdict.delay is None
    assert not any(verdict.hot)


def test_a_law_begins_at_the_rate_of_the_one_before_when_a_route_is_given_another() -> None:
    route = at_work()
    rates = route.budget.rates
    begun: list[float] = []

    def law(start: float) -> RateLaw:
        begun.append(start)
        return Aimd(ClassBudget(), start=start)

    route.budget.go_by(THRESHOLDS, ClassBudget(), Rules(), 1.0, None, law)
    assert route.budget.rates == rates
    assert begun[2] == rates[2]
