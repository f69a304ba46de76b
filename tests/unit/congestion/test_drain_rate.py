"""What the consumers take, from confirms and depths."""

import pytest

from proxy.congestion.drain_rate import SHORTEST, Drain, DrainRate


def fed(
    *stretches: tuple[float, float, float], own: float = 1.0, tick: float = 0.05, ready: float = 100.0
) -> tuple[DrainRate, float]:
    """Return an estimator after stretches of (seconds, inflow, drain) in events a second, and the time."""
    drain, now, confirmed = DrainRate(), 0.0, 0.0
    drain.add(now, round(ready), (0, 0))
    for seconds, inflow, taken in stretches:
        for _ in range(round(seconds / tick)):
            now += tick
            confirmed += inflow * tick * own
            ready = max(0.0, ready + (inflow - taken) * tick)
            drain.add(now, round(ready), (round(confirmed / 3), round(confirmed) - round(confirmed / 3)))
            drain.estimate(0.0)  # asked at every tick
    return drain, now


def estimate(drain: DrainRate, others: float = 0.0) -> Drain:
    found = drain.estimate(others)
    assert found is not None
    return found


@pytest.mark.parametrize("inflow", [0, 150, 300, 900])
def test_it_is_the_capacity_of_the_consumers_when_the_queue_is_never_empty(inflow: float) -> None:
    drain, _ = fed((3.0, inflow, 300.0), ready=2_000)
    found = estimate(drain)
    assert found.rate == pytest.approx(300, abs=6)
    assert found.is_capacity
    assert found.inflow == pytest.approx(inflow, abs=6)


def test_it_is_no_capacity_when_the_queue_ran_empty() -> None:
    drain, _ = fed((3.0, 100, 300.0), ready=0)
    found = estimate(drain)
    assert found.rate == pytest.approx(100, abs=6)
    assert not found.is_capacity


def test_the_capacity_seen_last_counts_when_the_queue_has_been_empty_since() -> None:
    drain, _ = fed((3.0, 300, 300.0), (3.0, 10, 300.0))
    assert estimate(drain).rate == pytest.approx(300, rel=0.05)
    assert not estimate(drain).is_capacity


def test_what_consumers_could_take_is_not_forgotten_when_they_stood_still_for_a_while() -> None:
    drain, _ = fed((3.0, 300, 300.0), (5.0, 20, 0.0), (3.0, 20, 300.0))
    assert estimate(drain).rate > 200


def test_a_lower_capacity_is_believed_in_the_end_when_it_stays() -> None:
    drain, _ = fed((3.0, 300, 300.0), (60.0, 30, 30.0), (5.0, 10, 30.0))
    assert estimate(drain).rate == pytest.approx(30, rel=0.1)


def test_half_a_capacity_is_known_in_less_than_half_a_second_when_it_falls() -> None:
    drain, _ = fed((5.0, 300.0, 300.0), (0.4, 300.0, 150.0))
    assert estimate(drain).rate == pytest.approx(150, rel=0.1)


def test_the_steady_window_counts_when_the_queue_is_falling() -> None:
    drain, _ = fed((5.0, 300.0, 300.0), (0.3, 0.0, 300.0), ready=500)
    assert estimate(drain).rate == pytest.approx(300, rel=0.05)
    assert estimate(drain).slope < 0


def test_what_others_confirm_counts_when_there_are_others() -> None:
    drain, _ = fed((3.0, 300.0, 300.0), own=0.25)
    assert estimate(drain, others=225.0).rate == pytest.approx(300, rel=0.05)
    assert estimate(drain, others=225.0).own == pytest.approx((25, 50), rel=0.1)


def test_it_is_never_negative_when_somebody_unknown_fills_the_queue() -> None:
    drain, _ = fed((3.0, 900.0, 0.0), own=0.1)
    assert estimate(drain).rate == 0


def test_nothing_is_known_when_too_little_was_seen() -> None:
    drain, _ = fed((SHORTEST - 0.05, 300.0, 300.0))
    assert drain.estimate(0.0) is None


def test_what_was_seen_before_counts_no_more_when_the_depth_was_unknown_for_long() -> None:
    drain, now = fed((3.0, 300.0, 300.0))
    drain.add(now + 5, 100, (0, 10_000))
    assert drain.estimate(0.0) is None


def test_a_depth_read_once_counts_once_when_it_is_told_twice() -> None:
    drain, now = fed((3.0, 300.0, 300.0))
    before = estimate(drain)
    drain.add(now, 100, (0, 10_000))
    assert estimate(drain) == before


@pytest.mark.parametrize("gap", [1.02, 6.0])
def test_it_is_known_when_the_queue_is_asked_rarely(gap: float) -> None:
    drain = DrainRate()
    for turn in range(4):
        drain.add(turn * gap, 0, (0, round(40 * turn * gap)), 3 * gap)
    assert estimate(drain).rate == pytest.approx(40, rel=0.05)


def test_two_quick_samples_make_no_rate_when_they_follow_a_gap() -> None:
    drain = DrainRate()
    for at, confirmed in ((0.0, 0), (1.3, 390), (1.35, 450)):
        drain.add(at, 0, (0, confirmed))
    assert estimate(drain).rate == pytest.approx(450 / 1.35, rel=0.01)


def test_own_and_inflow_are_of_one_window_when_the_fast_one_gives_the_rate() -> None:
    drain, _ = fed((5.0, 300.0, 300.0), (0.3, 450.0, 300.0))
    found = estimate(drain)
    assert sum(found.own) == pytest.approx(found.inflow)


def test_a_fall_is_known_within_three_answers_when_chance_can_t_explain_it() -> None:
    drain, _ = fed((3.0, 300, 300.0), (0.15, 300, 30.0))
    assert estimate(drain).rate == pytest.approx(30, abs=20)


def test_what_was_taken_before_a_sudden_fall_is_forgotten_when_it_is_known() -> None:
    drain, _ = fed((3.0, 300, 300.0), (0.3, 300, 30.0), (0.4, 0, 30.0))
    assert estimate(drain).rate == pytest.approx(30, abs=12)


def test_a_rate_that_strays_by_a_fifth_is_no_sudden_fall() -> None:
    drain, _ = fed((3.0, 300, 300.0), (0.2, 200, 240.0))
    assert estimate(drain).rate > 270


def test_a_pause_between_dear_events_is_no_fall_when_work_comes_in_large_pieces() -> None:
    drain, now, taken = DrainRate(), 0.0, 0.0
    for tick in range(20):
        now += 0.05
        taken += 30.0 * (tick % 3 == 0)  # 200 a second, thirty at a time
        drain.add(now, 5_000.0 - taken, (0.0, 0.0))
    steady = drain.estimate(0.0, lump=30.0)
    for _ in range(5):
        now += 0.05
        drain.add(now, 5_000.0 - taken, (0.0, 0.0))
    found = drain.estimate(0.0, lump=30.0)
    assert steady is not None
    assert found is not None
    assert found.rate > 0.6 * steady.rate
    assert estimate(drain).rate == 0.0, "the same as single events could be no chance"
