"""How fast letters go beside what is live."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.redrive.pace import LEAST_DEPTH, LOOK_SECONDS, SAVED, STALE, Pace

RATE = 1_000.0
STEP = 0.01


def given_over(pace: Pace, seconds: float, depth: int | None, begin: float = 0.0) -> int:
    """Return what is admitted if the queue is looked at ten times a second and holds so much."""
    went = 0
    for step in range(round(seconds / STEP)):
        now = begin + step * STEP
        if step % round(LOOK_SECONDS / STEP) == 0:
            pace.on_depths([("q", depth)], now)
        went += pace.admit(1_000, ["q"], now)
    return went


def test_the_rate_is_reached_within_a_second_and_not_exceeded_when_queues_are_empty() -> None:
    pace = Pace(RATE, 0.0)
    assert given_over(pace, 1.0, 0) < RATE
    assert given_over(pace, 10.0, 0, 1.0) == pytest.approx(10 * RATE, rel=0.02)


def test_nothing_goes_when_a_queue_is_too_deep_and_half_as_fast_afterwards() -> None:
    pace = Pace(RATE, 0.0)
    given_over(pace, 2.0, 0)
    assert given_over(pace, 5.0, round(pace.too_deep) + 1, 2.0) == 0
    assert pace.value == RATE / 2
    assert given_over(pace, LOOK_SECONDS, 0, 7.0) <= RATE * LOOK_SECONDS


def test_one_cut_is_made_when_a_queue_stays_deep() -> None:
    pace = Pace(RATE, 0.0)
    given_over(pace, 60.0, 10**6)
    assert pace.value == max(1.0, RATE / 100, RATE / 10 / 2)


@pytest.mark.parametrize("depth", [LEAST_DEPTH, 0])
def test_a_slow_redrive_bears_what_little_waits_in_a_queue(depth: int) -> None:
    assert given_over(Pace(10.0, 0.0), 20.0, depth) > 150


def test_nothing_goes_when_nothing_is_known_of_a_queue_or_no_longer() -> None:
    pace = Pace(RATE, 0.0)
    assert pace.admit(10, ["q"], 100.0) == 0
    given_over(pace, 2.0, 0)
    assert pace.admit(10, ["q"], 2.0) > 0
    assert pace.admit(10, ["q"], 2.0 + STALE) == 0
    assert pace.blind_since(["q"]) == pytest.approx(1.9)
    assert pace.admit(10, [], 20.0) > 0


@given(st.floats(1, 100_000), st.lists(st.tuples(st.floats(0, 0.3), st.integers(0, 10**6)), max_size=60))
def test_never_more_goes_than_the_rate_and_one_burst_when_depths_are_anything(
    rate: float, looks: list[tuple[float, int]]
) -> None:
    pace, now, went = Pace(rate, 0.0), 0.0, 0
    for seconds, depth in looks:
        now += seconds
        pace.on_depths([("q", depth)], now)
        went += pace.admit(10**6, ["q"], now)
        assert 1 <= pace.value <= max(1.0, rate)
        assert went <= rate * now + max(1.0, rate * SAVED) + 1e-6
