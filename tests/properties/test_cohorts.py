"""Whatever asks, and whatever the queues do: the more important pass first, and the levels keep their promises."""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from proxy.simulation import cohorts
from proxy.simulation.cohorts import COHORTS
from proxy.simulation.rivals import RIVALS
from proxy.simulation.shedding import Look

CLASSES = 3
_counts = st.lists(st.floats(0, 1e6), min_size=CLASSES, max_size=CLASSES)
_levels = st.integers(0, CLASSES * COHORTS)
_looks = st.lists(
    st.builds(
        Look,
        seconds=st.floats(0.01, 2),
        admitted=_counts.map(tuple),
        rejected=_counts.map(tuple),
        inflow=st.floats(0, 1e6),
        could=st.floats(0, 1e6),
        waiting=st.none() | st.floats(0, 1e6),
        delay=st.none() | st.floats(0, 60) | st.just(inf),
    ),
    max_size=60,
)


def keeps_order(rates: tuple[float, ...]) -> bool:
    """Return whether everything above the least important class that passes does so at once, and nothing below."""
    passing = [rank for rank, rate in enumerate(rates) if rate > 0]
    return all(rate == inf for rate in rates[: passing[-1]]) if passing else True


@given(st.sampled_from(sorted(RIVALS)), _looks, st.lists(st.integers(0, 59), max_size=5))
def test_no_class_is_held_while_one_below_it_passes_whatever_a_rule_sees(
    name: str, looks: list[Look], stops: list[int]
) -> None:
    rule = RIVALS[name]([inf] * CLASSES)
    for number, look in enumerate(looks):
        if number in stops:
            rule.on_stop()
        rule.on_look(look)
        assert keeps_order(rule.rates)
        assert all(rate >= 0 for rate in rule.rates)


@given(_levels, _counts, _counts, st.floats(0.05, 10))
def test_no_cohort_passes_before_one_above_it_at_any_level(
    level: int, admitted: list[float], rejected: list[float], seconds: float
) -> None:
    asked = [sum(both) for both in zip(admitted, rejected, strict=True)]
    rates = cohorts.rates(level, asked, rejected, seconds)
    assert keeps_order(rates)
    for rank, rate in enumerate(rates):
        part = min(max(level - rank * COHORTS, 0), COHORTS) / COHORTS
        assert rate == inf or rate <= asked[rank] / seconds * part + 1e-6


@given(_levels, _counts, st.floats(0, 1))
def test_a_level_is_lowered_until_enough_is_gone_and_no_further(level: int, asked: list[float], share: float) -> None:
    admitted = sum(asked[: level // COHORTS]) + (
        asked[level // COHORTS] * (level % COHORTS) / COHORTS if level < CLASSES * COHORTS else 0.0
    )
    new = cohorts.lowered(level, asked, admitted, share * admitted)
    assert min(level, 1) <= new <= level
    gone = sum(asked[one // COHORTS] / COHORTS for one in range(new, level))
    slack = 1e-6 * (1 + admitted)
    assert new <= 1 or admitted - gone <= share * admitted + slack
    assert new == level or admitted - gone + asked[new // COHORTS] / COHORTS > share * admitted - slack


@given(_levels, _counts, st.floats(0, 1e6))
def test_a_level_is_raised_until_enough_more_pass_and_no_further(level: int, asked: list[float], more: float) -> None:
    new = cohorts.raised(level, asked, 0.0, more)
    assert level <= new <= CLASSES * COHORTS
    added = sum(asked[one // COHORTS] / COHORTS for one in range(level, new))
    slack = 1e-6 * (1 + sum(asked))
    assert new == CLASSES * COHORTS or added >= more - slack
    assert new == level or added - asked[(new - 1) // COHORTS] / COHORTS < more + slack


@given(_counts, st.floats(0, 1))
def test_the_ratio_is_rejected_and_less_than_a_cohort_more(asked: list[float], ratio: float) -> None:
    level = cohorts.passing(asked, ratio)
    rejected = sum(asked[one // COHORTS] / COHORTS for one in range(level, CLASSES * COHORTS))
    slack = 1e-6 * (1 + sum(asked))
    assert rejected >= ratio * sum(asked) - slack
    assert rejected <= ratio * sum(asked) + max(asked) / COHORTS + slack
