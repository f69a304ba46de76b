"""Cinnamon with the published numbers: 0.5 s, Kp 0.1, Ki 1.4, 128 cohorts a tier, the last 1,000 requests."""

from math import inf

import pytest

from proxy.simulation.cinnamon import Cinnamon
from proxy.simulation.shedding import Look

FREE = (inf, inf, inf)
PERIOD = 0.5


class Seen:
    """A rule and the queue in front of it."""

    def __init__(self) -> None:
        self.rule = Cinnamon(FREE)
        self.waiting = 0.0
        self.period(100, 100)  # periods begin when the queue was seen once

    def period(
        self,
        inflow: float,
        outflow: float,
        *,
        could: float = 100.0,
        asked: tuple[float, ...] = (100, 100, 100),
        seconds: float = PERIOD,
    ) -> float:
        """Let a period pass; return the ratio that is rejected then."""
        self.waiting += inflow - outflow
        nothing = (0.0, 0.0, 0.0)
        self.rule.on_look(Look(seconds, asked, nothing, inflow, could, waiting=self.waiting, delay=0.0))
        return self.rule.ratio


def test_the_rates_are_those_to_begin_with_when_no_period_is_over() -> None:
    rule = Cinnamon((inf, 50.0, 50.0))
    for _ in range(2):
        assert rule.rates == (inf, 50, 50)
        rule.on_look(Look(PERIOD, (1, 1, 1), (0, 0, 0), 3.0, 100.0, waiting=0.0, delay=0.0))
    assert rule.rates == FREE


def test_the_ratio_is_the_published_one_when_more_comes_than_goes() -> None:
    seen = Seen()
    assert seen.period(150, 100) == pytest.approx(0.1 * 0.5 + 1.4 * 0.5)
    assert seen.period(100, 100) == pytest.approx(1.4 * 0.5)
    assert seen.period(120, 100) == pytest.approx(0.1 * 0.2 + 1.4 * 0.7)
    assert seen.period(90, 100) == pytest.approx(-0.1 * 0.1 + 1.4 * 0.6)


def test_free_slots_lower_the_ratio_when_the_queue_is_empty() -> None:
    seen = Seen()
    seen.period(150, 100)
    seen.period(75, 125, could=125)
    assert seen.waiting == 0
    assert seen.rule.ratio == pytest.approx(max(0.0, 1.4 * (0.5 - 50 / 125) - 0.1 * 50 / 125))
    seen.period(150, 100)
    before = 0.5 - 50 / 125 + 0.5
    assert seen.rule.ratio == pytest.approx(0.1 * 0.5 + 1.4 * before)
    seen.period(50, 100, could=125)  # empty again, and 25 more could have been taken
    assert seen.rule.ratio == 0
    assert seen.period(110, 100) == pytest.approx(0.1 * 0.1 + 1.4 * 0.1)


def test_no_slot_is_free_when_requests_wait() -> None:
    seen = Seen()
    assert seen.period(150, 100, could=200) == pytest.approx(0.1 * 0.25 + 1.4 * 0.25)


def test_what_the_consumers_could_take_divides_when_nothing_goes_out() -> None:
    seen = Seen()
    assert seen.period(40, 0) == pytest.approx(0.1 * 0.4 + 1.4 * 0.4)


def test_nothing_is_calibrated_when_it_is_not_known_what_the_consumers_take() -> None:
    seen = Seen()
    assert seen.period(500, 0, could=0) == 0
    assert seen.period(150, 100) == pytest.approx(0.75)


def test_an_idle_minute_does_not_outweigh_an_overload() -> None:
    seen = Seen()
    for _ in range(120):
        seen.period(10, 10)
    assert seen.rule.ratio == 0
    assert seen.period(150, 100) == pytest.approx(0.75)


def test_an_error_is_forgotten_when_a_minute_has_passed() -> None:
    seen = Seen()
    seen.period(150, 100)
    for _ in range(119):
        seen.period(100, 100)
    assert seen.rule.ratio == pytest.approx(0.7)
    assert seen.period(100, 100) == pytest.approx(0.0)


def test_nothing_changes_when_half_a_second_has_not_passed() -> None:
    seen = Seen()
    assert seen.period(150, 100, seconds=0.45) == 0
    assert seen.period(0, 0, seconds=0.05, could=0) == pytest.approx(0.75)


def test_the_least_important_cohorts_are_rejected_when_a_ratio_is_to_be() -> None:
    seen = Seen()
    seen.period(100 + 100 * 0.5 / 1.5, 100)
    assert seen.rule.ratio == pytest.approx(0.5)
    assert seen.rule.level == 128 + 64  # half of what asked: the first class, and half of the second
    assert seen.rule.rates == (inf, pytest.approx(100 / 2 / PERIOD), 0)


def test_only_the_last_thousand_requests_tell_of_priorities_when_there_were_more() -> None:
    seen = Seen()
    for _ in range(20):
        seen.period(100, 100, asked=(300, 0, 0))
    for _ in range(4):
        seen.period(100, 100, asked=(0, 0, 300))
    seen.period(100 + 100 * 0.5 / 1.5, 100, asked=(0, 0, 300))
    assert seen.rule.level == 2 * 128 + 64


def test_nothing_is_learnt_when_the_queue_was_not_known() -> None:
    seen = Seen()
    seen.period(150, 100)
    ratio = seen.rule.ratio
    seen.rule.on_look(Look(PERIOD, (1, 1, 1), (0, 0, 0), 1_000.0, 100.0, waiting=None, delay=None))
    assert seen.rule.ratio == ratio
    assert seen.period(500, 100) == ratio  # what it grew by is not known; a period begins
    assert seen.period(100, 100) == pytest.approx(0.7)


def test_nothing_is_learnt_of_a_stop_when_the_route_goes_on() -> None:
    seen = Seen()
    seen.period(500, 100, seconds=0.4)
    seen.rule.on_stop()
    assert seen.period(500, 100) == 0
    assert seen.period(100, 100) == 0
