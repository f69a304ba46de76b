"""Ranks: the first goal that tells two apart decides, and chance decides nothing."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from proxy.tuning.goals import Figures, ranked

CLASSES = ("P1", "P3")


def of(latency: Sequence[float], use: float = 0.9, through: float = 0.5, first: float = 1.0) -> list[Figures]:
    """Return the figures of as many seeds as there are latencies."""
    return [
        {"P1.consumed_p99": one, "P1.through": first, "use": use, "P3.consumed_p99": 1.0, "P3.through": through}
        for one in latency
    ]


def order(*runs: list[Figures]) -> list[int]:
    return [one.place for one in ranked(runs, CLASSES, 0.5)]


def test_the_first_class_s_goal_goes_before_use() -> None:
    assert order(of([0.7] * 3, use=1.0), of([0.4] * 3, use=0.5)) == [1, 0]


def test_of_two_that_miss_the_goal_the_nearer_one_is_better() -> None:
    assert order(of([3.0] * 3), of([0.7] * 3), of([0.9] * 3)) == [1, 2, 0]


def test_use_goes_before_the_other_classes_and_these_before_the_first_one_s_latency() -> None:
    assert order(of([0.1] * 3, use=0.8, through=0.9), of([0.4] * 3, use=0.9, through=0.1)) == [1, 0]
    assert order(of([0.1] * 3, through=0.4), of([0.4] * 3, through=0.6)) == [1, 0]


def test_a_goal_is_missed_when_too_few_events_came_through() -> None:
    found = ranked([of([0.1] * 3, first=0.9), of([0.4] * 3)], CLASSES, 0.5)
    assert [(one.place, one.is_met) for one in found] == [(1, True), (0, False)]


def test_the_recorded_settings_stay_first_when_nothing_differs_by_a_step() -> None:
    assert order(of([0.400] * 3, use=0.902), of([0.399] * 3, use=0.904)) == [0, 1]


def test_a_difference_counts_when_it_is_there_in_every_seed() -> None:
    found = ranked([of([0.3, 0.3, 0.3]), of([0.1, 0.1, 0.31]), of([0.1, 0.1, 0.2])], CLASSES, 0.5)
    told = {one.place: one.difference for one in found}
    assert told[0] is None
    assert told[1] is None
    assert told[2] is not None
    assert (told[2].goal, round(told[2].by, 3)) == ("P1 P99", 0.2)


def test_the_difference_is_told_in_the_first_goal_that_has_one() -> None:
    found = ranked([of([0.7] * 3, use=0.9), of([0.6] * 3, use=0.5)], CLASSES, 0.5)
    told = next(one.difference for one in found if one.place == 1)
    assert told is not None
    assert (told.goal, round(told.by, 3)) == ("P1 beyond its goal", 0.1)


@given(st.lists(st.tuples(st.floats(0.01, 3), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8))
def test_ranks_do_not_depend_on_the_order_in_which_others_were_given(
    ways: list[tuple[float, float, float]],
) -> None:
    runs = [of([latency] * 3, use, through) for latency, use, through in dict.fromkeys(ways)]
    straight = [runs[place][0] for place in order(*runs)]
    turned = [runs[0], *reversed(runs[1:])]
    again = [turned[place][0] for place in order(*turned)]
    assert [_key(one) for one in straight] == [_key(one) for one in again]


def _key(one: Figures) -> tuple[float, ...]:
    """Return what decides, as far as a step tells it apart."""
    latency, use, through = (one[name] or 0.0 for name in ("P1.consumed_p99", "use", "P3.through"))
    return (max(0.0, latency - 0.5) > 1e-9, round(use / 0.01), round(through / 0.01))
