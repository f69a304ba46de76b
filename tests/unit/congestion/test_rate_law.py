"""One level's rate: when it grows, when it is cut, where a cut lands."""

from dataclasses import replace
from math import inf

import pytest

from proxy.congestion.aimd import COOL_SHARE, DOUBLING, PATIENCE, Aimd
from proxy.congestion.rate_law import FEEDBACK, PROBE, Level, LevelRate
from proxy.settings import ClassBudget

SETTINGS = ClassBudget(growth=0.1, cut=0.9, start_rate=50)
CALM = Level(now=0.0, target=300.0, drain=300.0, is_used=True)
HOT = replace(CALM, is_hot=True, is_cool=False)


def law(start: float = 50, *, is_unlimited: bool = False) -> LevelRate:
    return LevelRate(Aimd(SETTINGS, start=inf if is_unlimited else start), is_top=is_unlimited)


def after(aimd: LevelRate, level: Level, start: float, seconds: float, tick: float = 0.05) -> float:
    """Let the same be seen for some seconds; return the rate at the end."""
    for step in range(round(seconds / tick) + 1):
        aimd.on_tick(replace(level, now=start + step * tick))
    return aimd.rate


def cut_down() -> LevelRate:
    """Return a law in its steady state just after a cut to 270/s at 0 s, cool again."""
    aimd = law(1000.0)
    aimd.on_tick(replace(HOT, now=0.0))
    return aimd


def test_it_doubles_in_half_a_second_when_no_queue_was_ever_seen() -> None:
    aimd = law()
    assert after(aimd, CALM, 0.0, 4 * DOUBLING) == pytest.approx(50 * 2**4)


def test_slow_start_ends_when_the_first_queue_is_rising() -> None:
    aimd = law()
    before = after(aimd, CALM, 0.0, DOUBLING)
    assert after(aimd, replace(CALM, is_rising=True), DOUBLING, 1.0) < 1.5 * before


def test_what_flows_anyway_raises_it_to_the_bound_and_no_further_when_nothing_would_tell_of_a_backlog() -> None:
    flows = replace(CALM, own=400.0, is_used=False)
    assert after(law(), flows, 0.0, 1.0) == 400
    assert after(law(), replace(flows, bound=270.0), 0.0, 1.0) == 270
    assert after(law(300), replace(flows, bound=270.0), 0.0, 1.0) == 300


def test_it_does_not_grow_when_nobody_waited_for_it() -> None:
    assert after(law(), replace(CALM, is_used=False), 0.0, 10.0) == 50


@pytest.mark.parametrize("held", [0.0, 40.0])
def test_something_still_goes_when_the_depth_is_lost_while_next_to_nothing_was_taken(held: float) -> None:
    blind = replace(CALM, sees=False, held=held)
    assert after(law(), blind, 0.0, 10.0) == max(PROBE, held)


def test_it_does_not_grow_when_something_needed_is_unknown() -> None:
    assert after(law(), replace(CALM, sees=False), 0.0, 10.0) == 50


@pytest.mark.parametrize("rate", [271.0, 400.0, 100_000.0])
def test_a_cut_lands_on_the_share_of_the_drain_rate_when_the_rate_was_anything_above(rate: float) -> None:
    aimd = law(rate)
    assert aimd.on_tick(HOT)
    assert aimd.rate == pytest.approx(270)


def test_a_cut_lands_lower_when_the_delay_is_far_above_its_threshold() -> None:
    aimd = law(400.0)
    aimd.on_tick(replace(HOT, excess=0.5))
    assert aimd.rate == pytest.approx(120)


def test_nothing_but_the_probe_is_left_when_the_delay_is_a_second_above() -> None:
    aimd = law(400.0)
    aimd.on_tick(replace(HOT, excess=1.0))
    assert aimd.rate == PROBE


def test_the_next_cut_waits_when_the_feedback_is_not_there_yet() -> None:
    aimd = law(400.0)
    aimd.on_tick(HOT)
    assert not aimd.on_tick(replace(HOT, now=FEEDBACK / 2, target=200.0))
    assert aimd.on_tick(replace(HOT, now=FEEDBACK, target=200.0))
    assert aimd.rate == pytest.approx(180)


def test_the_next_cut_comes_at_once_when_the_consumers_take_less_than_half() -> None:
    aimd = law(400.0)
    aimd.on_tick(HOT)
    assert aimd.on_tick(replace(HOT, now=FEEDBACK / 2, target=100.0))
    assert aimd.rate == pytest.approx(90)


def test_nothing_is_cut_again_when_the_queue_is_falling() -> None:
    aimd = cut_down()
    assert after(aimd, replace(HOT, is_falling=True, target=100.0), 0.05, 2.0) == pytest.approx(270)


def test_it_stays_when_it_is_neither_hot_nor_cool_right_after_a_cut() -> None:
    aimd = cut_down()
    assert after(aimd, replace(CALM, is_cool=False), 0.05, PATIENCE - 0.1) == pytest.approx(270)


def test_it_returns_at_once_to_just_under_the_drain_rate_when_the_queue_is_short_again() -> None:
    aimd = cut_down()
    aimd.on_tick(replace(CALM, now=0.05, is_used=False))
    assert aimd.rate == pytest.approx(COOL_SHARE * 300)


def test_growth_is_a_share_of_the_drain_rate_when_it_is_steady() -> None:
    aimd = cut_down()
    aimd.on_tick(replace(CALM, now=0.05, is_used=False))
    grown = after(aimd, CALM, 0.05, 1.0) - COOL_SHARE * 300
    assert grown == pytest.approx(0.1 * 300, rel=0.25)  # and a little more towards the last good rate


def test_it_is_never_less_than_what_flows_anyway_when_no_queue_forms() -> None:
    aimd = law()
    aimd.on_tick(replace(CALM, own=120.0, is_used=False))
    assert aimd.rate == 120


def test_it_grows_again_when_the_queue_has_been_neither_long_nor_short_for_a_while() -> None:
    aimd = cut_down()
    assert after(aimd, replace(CALM, is_cool=False), 0.05, PATIENCE + 1.0) > 280


def test_the_top_level_has_no_limit_until_it_is_hot() -> None:
    aimd = law(is_unlimited=True)
    assert after(aimd, CALM, 0.0, 1.0) == inf
    aimd.on_tick(replace(HOT, now=1.2))
    assert aimd.rate == pytest.approx(270)


ALLOWED = replace(CALM, has_allowance=True, is_used=False)


def test_the_top_level_is_without_limit_again_when_its_queue_is_short_and_an_allowance_bounds_it() -> None:
    aimd = law(is_unlimited=True)
    aimd.on_tick(HOT)
    assert after(aimd, replace(ALLOWED, is_cool=False), 0.05, 0.3) == pytest.approx(270)
    assert after(aimd, replace(ALLOWED, sees=False), 0.4, 0.3) == pytest.approx(270)
    assert after(aimd, ALLOWED, 0.8, 0.0) == inf


def test_the_top_level_is_without_limit_again_when_a_stop_ends_and_an_allowance_bounds_it() -> None:
    aimd = law(is_unlimited=True)
    assert after(aimd, replace(ALLOWED, must_stop=True), 0.0, 1.0) == 0
    assert after(aimd, ALLOWED, 1.1, 0.0) == inf


def test_the_top_level_begins_with_what_the_consumers_can_take_when_the_route_had_to_stop() -> None:
    aimd = law(is_unlimited=True)
    assert after(aimd, replace(CALM, must_stop=True), 0.0, 1.0) == 0
    assert after(aimd, replace(CALM, is_used=False), 1.1, 1.0) == 300


def test_nothing_is_sent_when_the_route_must_stop_and_the_last_good_rate_returns_within_five_seconds_after() -> None:
    aimd = cut_down()
    aimd.on_tick(replace(CALM, now=0.05))
    assert after(aimd, replace(CALM, must_stop=True), 0.1, 30.0) == 0
    resumed = after(aimd, CALM, 30.2, 0.0)
    assert 0 < resumed < 0.5 * 300
    assert after(aimd, CALM, 30.2, 5.0) > 0.95 * 300


def test_a_stall_does_not_become_the_last_good_rate_when_the_drain_rate_falls_to_nothing() -> None:
    aimd = cut_down()
    aimd.on_tick(replace(HOT, now=1.0, target=0.0))
    assert aimd.rate == PROBE
    assert after(aimd, replace(CALM, target=0.0), 1.1, 6.0) > 200  # slow start, then quickly towards 300/s


def test_it_grows_by_a_second_at_most_when_a_tick_comes_after_a_freeze() -> None:
    aimd = law()
    aimd.on_tick(CALM)
    aimd.on_tick(replace(CALM, now=86_400.0))
    assert aimd.rate == pytest.approx(50 * 2 ** (1 / DOUBLING))


def test_the_top_level_starts_at_no_less_than_the_start_rate_when_a_stop_came_while_consumers_stood_still() -> None:
    aimd = law(is_unlimited=True)
    aimd.on_tick(replace(CALM, must_stop=True))
    aimd.on_tick(replace(CALM, now=600.0, drain=1e-16, target=1e-16))
    assert aimd.rate >= 50
