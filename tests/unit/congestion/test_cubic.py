"""CUBIC with the documents' numbers: C 0.4, B 0.2 (Aeron) and 0.3 (RFC 9438)."""

from dataclasses import replace
from math import cbrt, inf

import pytest

from proxy.congestion.cubic import Cubic
from proxy.congestion.rate_law import FEEDBACK, PROBE, Level
from proxy.settings import ClassBudget
from proxy.settings.control import CubicSettings

TICK = 0.05
CALM = Level(now=0.0, target=300.0, drain=300.0, is_used=True)
HOT = replace(CALM, is_hot=True, is_cool=False)


def cubic(start: float = 300.0, *, cut: float = 0.2, tcp: bool = False) -> Cubic:
    return Cubic(ClassBudget(cubic=CubicSettings(cut=cut, tcp=tcp)), start=start)


def used(law: Cubic, seconds: float) -> float:
    """Let its rate be used for some seconds; return what it has become."""
    for _ in range(round(seconds / TICK)):
        law.on_calm(CALM)
        law.on_used(CALM, TICK)
    return law.rate


@pytest.mark.parametrize("cut", [0.2, 0.3])
def test_the_curve_is_the_published_one_when_the_rate_is_used_after_a_cut(cut: float) -> None:
    law = cubic(cut=cut)
    law.on_hot(HOT)
    assert law.rate == pytest.approx(300 * (1 - cut))
    flat = cbrt(300 * cut / 0.4)
    seconds = 0.0
    for step in (1.0, 1.0, 2.0, 4.0, 4.0):
        seconds += step
        assert used(law, step) == pytest.approx(0.4 * (seconds - flat) ** 3 + 300, abs=1e-6)


def test_it_is_back_after_k_seconds_when_it_was_cut_at_300() -> None:
    law = cubic()
    law.on_hot(HOT)
    assert used(law, 5.3) == pytest.approx(300, abs=0.01)


def test_it_is_updated_once_a_round_trip_when_ticks_are_shorter() -> None:
    law = cubic()
    law.on_hot(HOT)
    law.on_used(CALM, FEEDBACK / 2)
    assert law.rate == 240
    law.on_used(CALM, FEEDBACK / 2)
    assert law.rate > 240


def test_time_stands_still_when_the_rate_is_not_used() -> None:
    law = cubic()
    law.on_hot(HOT)
    for _ in range(1_000):
        law.on_calm(CALM)
    assert law.rate == 240


def test_room_is_left_for_others_when_it_is_cut_below_the_last_flat_part() -> None:
    law = cubic()
    law.on_hot(HOT)
    law.on_hot(replace(HOT, now=1.0))
    assert law.rate == pytest.approx(240 * 0.8)
    assert used(law, cbrt(240 * 1.8 / 2 * 0.2 / 0.4)) == pytest.approx(240 * (2 - 0.2) / 2, rel=0.001)


def test_it_sends_what_reno_would_when_tcp_mode_is_on_and_the_last_flat_part_is_not_reached() -> None:
    plain, tcp = cubic(3_000.0), cubic(3_000.0, tcp=True)
    for law in (plain, tcp):
        law.on_hot(HOT)
    reno = 3_000 * 0.8 + 3 * 0.2 / (2 - 0.2) * 10.0 / FEEDBACK
    assert used(plain, 10.0) > reno  # the curve is above: then it stands
    assert used(tcp, 10.0) == pytest.approx(plain.rate)
    low_plain, low_tcp = cubic(40.0), cubic(40.0, tcp=True)
    for law in (low_plain, low_tcp):
        law.on_hot(HOT)
    assert used(low_plain, 0.5) < 40 * 0.8 + 3 * 0.2 / 1.8 * 0.5 / FEEDBACK + 4
    assert used(low_tcp, 0.5) == pytest.approx(max(low_plain.rate, 40 * 0.8 + 3 * 0.2 / 1.8 * 0.5 / FEEDBACK))


def test_the_next_cut_waits_when_the_feedback_is_not_there_yet_or_the_queue_is_falling() -> None:
    law = cubic()
    law.on_hot(HOT)
    law.on_hot(replace(HOT, now=FEEDBACK / 2))
    law.on_hot(replace(HOT, now=1.0, is_falling=True))
    assert law.rate == 240
    law.on_hot(replace(HOT, now=1.0))
    assert law.rate == 192


def test_it_is_never_less_than_the_probe_when_it_is_cut_again_and_again() -> None:
    law = cubic()
    for second in range(100):
        law.on_hot(replace(HOT, now=float(second)))
    assert law.rate == PROBE


def test_slow_start_doubles_every_half_second_when_it_was_never_cut() -> None:
    assert used(cubic(50.0), 1.0) == pytest.approx(200)


def test_slow_start_ends_on_the_flat_part_when_a_queue_is_rising() -> None:
    law = cubic(50.0)
    law.on_used(replace(CALM, is_rising=True), TICK)
    assert used(law, 2.0) < 55


def test_the_curve_goes_on_from_there_when_somebody_else_has_set_the_rate() -> None:
    law = cubic()
    law.on_hot(HOT)
    law.rate = 500.0  # a search in front of empty queues
    assert 500 < used(law, 1.0) < 500 + 0.4 * (cbrt(200 / 0.4) + 1) ** 3 - 200 + 1
    law.rate = 250.0
    assert 250 < used(law, 1.0) < 300


def test_a_rate_without_limit_is_cut_to_a_share_of_what_drains() -> None:
    law = cubic(inf)
    law.on_hot(HOT)
    assert law.rate == 240


@pytest.mark.parametrize(("before", "after"), [(300.0, 75.0), (40.0, 40.0), (inf, 300.0)])
def test_it_begins_low_when_a_stop_is_over(before: float, after: float) -> None:
    law = cubic()
    law.on_resume(CALM, before)
    assert law.rate == after
