"""DAGOR with the paper's numbers: 20 ms, one second or 2,000 requests, 5 % down, 1 % of all requests up."""

from math import inf

import pytest

from proxy.simulation.dagor import Dagor
from proxy.simulation.shedding import Look

FREE = (inf, inf, inf)
COHORT = 500 / 128
"""Requests of one cohort where 500 of a class ask."""


def look(
    seconds: float = 1.0,
    *,
    admitted: tuple[float, ...] = (200, 300, 500),
    rejected: tuple[float, ...] = (0, 0, 0),
    delay: float | None = 0.0,
) -> Look:
    total = sum(admitted)
    return Look(seconds, admitted, rejected, inflow=total, could=total, waiting=0.0, delay=delay)


def overloaded(windows: int = 1) -> Dagor:
    """Return the rule after so many windows of 1,000 requests that waited too long."""
    rule = Dagor(FREE)
    for _ in range(windows):
        rule.on_look(look(delay=0.021))
    return rule


def test_the_rates_are_those_to_begin_with_when_no_window_is_over() -> None:
    rule = Dagor((inf, 50.0, 50.0))
    rule.on_look(look(0.95))
    assert rule.rates == (inf, 50, 50)
    rule.on_look(look(0.05))
    assert rule.rates == FREE


def test_five_percent_of_the_admitted_go_in_whole_cohorts_when_a_window_was_overloaded() -> None:
    rule = overloaded()
    cohorts = 13  # 50 of 1,000 requests; 12 cohorts are 46.9, 13 are 50.8
    assert rule.level == 3 * 128 - cohorts
    assert rule.rates == (inf, inf, pytest.approx(500 - cohorts * COHORT))


def test_five_percent_more_go_when_the_next_window_was_overloaded_too() -> None:
    rule = overloaded()
    before = rule.level
    rule.on_look(look(admitted=(200, 300, 450), rejected=(0, 0, 50), delay=0.021))
    assert rule.level == before - 13  # 47.5 of 950
    assert rule.rates[2] == pytest.approx(500 - 26 * COHORT)


@pytest.mark.parametrize(("delay", "held"), [(0.02, False), (0.0201, True)])
def test_a_window_is_overloaded_when_the_mean_queuing_time_is_above_20_ms(delay: float, held: bool) -> None:
    rule = Dagor(FREE)
    for one in (delay - 0.01, delay, delay + 0.01):
        rule.on_look(look(0.34, admitted=(20, 30, 50), delay=one))
    assert (rule.rates[2] < inf) is held


def test_one_percent_of_all_requests_more_pass_when_a_window_was_not_overloaded() -> None:
    rule = overloaded()
    before = rule.level
    rule.on_look(look(admitted=(200, 300, 450), rejected=(0, 0, 50), delay=0.0))
    assert rule.level == before + 3  # 10 of 1,000; 2 cohorts are 7.8, 3 are 11.7


def test_it_rises_by_what_was_rejected_too_when_much_more_asked_than_passed() -> None:
    """The errata: 1 % of N, not of N_adm."""
    rule = overloaded()
    before = rule.level
    rule.on_look(look(admitted=(200, 300, 0), rejected=(0, 0, 9_500), delay=0.0))
    assert rule.level == before + 2  # 100 of 10,000: a cohort is 74.2


def test_a_class_falls_as_a_whole_when_the_one_below_is_gone() -> None:
    rule = overloaded(12)
    assert 128 < rule.level < 2 * 128
    assert rule.rates[0] == inf
    assert rule.rates[2] == 0


def test_one_cohort_of_the_top_class_passes_when_nothing_helps() -> None:
    rule = overloaded(500)
    assert rule.level == 1
    assert rule.rates[0] == pytest.approx(200 / 128)


def test_a_window_lasts_a_second_when_it_has_fewer_than_2000_requests() -> None:
    rule = Dagor(FREE)
    for _ in range(19):
        rule.on_look(look(0.05, admitted=(1, 1, 10), delay=1.0))
    assert rule.rates == (inf, inf, inf)
    rule.on_look(look(0.05, admitted=(1, 1, 10), delay=1.0))
    assert rule.rates[2] < inf


def test_a_window_ends_at_2000_requests_when_they_come_sooner() -> None:
    rule = Dagor(FREE)
    rule.on_look(look(0.05, admitted=(0, 0, 1_999), delay=1.0))
    assert rule.rates[2] == inf
    rule.on_look(look(0.05, admitted=(0, 0, 0), rejected=(0, 0, 1), delay=1.0))
    assert rule.rates[2] == pytest.approx(0.95 * 2_000 / 0.1, rel=0.01)


def test_the_level_stays_when_the_queuing_time_of_a_window_is_not_known() -> None:
    rule = overloaded()
    before = rule.level
    rule.on_look(look(delay=None))
    assert rule.level == before


def test_a_window_begins_anew_when_the_route_stopped_meanwhile() -> None:
    rule = Dagor(FREE)
    rule.on_look(look(0.9, delay=1.0))
    rule.on_stop()
    rule.on_look(look(0.5, delay=1.0))
    assert rule.rates == (inf, inf, inf)
