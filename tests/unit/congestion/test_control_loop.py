"""The seed's mechanism: exact rules, exact coefficients."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.congestion.collector import RouteStatistics, Statistics, Way
from proxy.congestion.detector import Cause, Verdict, judge
from proxy.congestion.loop import ControlLoop
from proxy.congestion.per_type import AimdBatchSize
from proxy.settings import DEFAULT_CLASSES, Detector, PriorityClass

THRESHOLDS = Detector(publish_latency_p50=0.05, publish_errors=2, min_samples=10)


def verdict(*, congested: bool | None) -> Verdict:
    return Verdict("r", congested, Cause.NONE, Statistics("r", 0, 0, None))


@pytest.mark.parametrize(
    ("samples", "errors", "p50", "congested", "cause"),
    [
        (10, 0, 0.05, False, Cause.NONE),
        (10, 0, 0.0501, True, Cause.LATENCY),
        (10, 2, 0.01, False, Cause.NONE),
        (10, 3, 0.01, True, Cause.ERRORS),
        (10, 3, 0.06, True, Cause.BOTH),
        (10, 10, None, True, Cause.ERRORS),
        (9, 9, 9.0, None, Cause.TOO_FEW_SAMPLES),
        (0, 0, None, None, Cause.TOO_FEW_SAMPLES),
    ],
)
def test_congested_is_latency_or_errors_above_their_threshold_when_there_are_samples_enough(
    samples: int, errors: int, p50: float | None, congested: bool | None, cause: Cause
) -> None:
    judged = judge(Statistics("r", samples, errors, p50), THRESHOLDS)
    assert (judged.congested, judged.cause) == (congested, cause)


@pytest.mark.parametrize(
    ("name", "first", "grown", "shrunk"), [("P1", 15, 30, 24.0), ("P2", 10, 20, 12.0), ("P3", 5, 10, 4.0)]
)
def test_sizes_follow_the_seeds_coefficients_when_verdicts_come(
    name: str, first: float, grown: float, shrunk: float
) -> None:
    size = AimdBatchSize(DEFAULT_CLASSES[name])
    assert size.value == first
    size.on_verdict(verdict(congested=False))
    assert size.value == grown
    size.on_verdict(verdict(congested=True))
    assert size.value == pytest.approx(shrunk)
    size.on_verdict(verdict(congested=None))
    assert size.value == pytest.approx(shrunk)


@given(st.lists(st.sampled_from([True, False, None]), max_size=60))
def test_a_size_stays_between_floor_and_ceiling_whatever_the_verdicts(verdicts: list[bool | None]) -> None:
    size = AimdBatchSize(PriorityClass(increase=7, decrease=0.3, floor=0.5, ceiling=40))
    for congested in verdicts:
        size.on_verdict(verdict(congested=congested))
        assert 0.5 <= size.value <= 40


@given(st.lists(st.sampled_from([True, False, None]), max_size=60))
def test_a_more_important_type_is_never_smaller_when_both_hear_the_same(verdicts: list[bool | None]) -> None:
    sizes = [AimdBatchSize(coefficients) for coefficients in DEFAULT_CLASSES.values()]
    for congested in verdicts:
        for size in sizes:
            size.on_verdict(verdict(congested=congested))
        assert sizes[0].value >= sizes[1].value >= sizes[2].value


def test_nacks_never_lower_the_latency_when_they_come_faster_than_acks() -> None:
    statistics = RouteStatistics("r", 1)
    statistics.on_confirmed(0, 10, 0.080)
    statistics.on_errors(1000)
    report = statistics.report()
    assert report.p50 == pytest.approx(0.080, rel=0.01)
    assert (report.samples, report.errors) == (1010, 1000)


def test_a_report_starts_from_nothing_when_one_was_made_before() -> None:
    statistics = RouteStatistics("r", 1)
    statistics.on_confirmed(0, 10, 0.080)
    statistics.report()
    assert statistics.report() == Statistics("r", 0, 0, None)


def test_every_observer_of_a_route_hears_its_verdict_and_no_other_when_the_loop_turns() -> None:
    loop = ControlLoop(["a", "b"], 1, THRESHOLDS)
    heard: list[tuple[str, str, bool | None]] = []
    loop.observe("a", lambda v: heard.append(("first", v.route, v.congested)))
    loop.observe("a", lambda v: heard.append(("second", v.route, v.congested)))
    loop.observe("b", lambda v: heard.append(("other", v.route, v.congested)))
    loop.statistics["a"].on_confirmed(0, 10, 0.2)
    loop.turn()
    assert heard == [("first", "a", True), ("second", "a", True), ("other", "b", None)]


def test_confirms_are_counted_by_where_they_went_and_a_class_that_never_goes_there_is_told_apart() -> None:
    statistics = RouteStatistics("r", 3)
    statistics.open(0, Way(("quick",)))
    statistics.open(2, Way(("quick", "slow")))
    statistics.on_confirmed(0, 5, 0.001, Way(("quick",)))
    statistics.on_confirmed(2, 7, 0.001, Way(("quick", "slow")))
    assert statistics.by_way == {Way(("quick",)): [5, None, None], Way(("quick", "slow")): [None, None, 7]}
    assert statistics.confirmed == [5, 0, 7]
