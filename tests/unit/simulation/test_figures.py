"""Figures are what their names say, on traces made by hand."""

from typing import Any

import pytest

from proxy.simulation.figures import Figures
from proxy.simulation.scenario import Scenario
from proxy.simulation.trace import QueueSample, Told, Trace


def scenario(**given: Any) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "made",
            "why": "by hand",
            "seconds": 20,
            "warm_up": 0,
            "queues": {"work": {"capacity": 100}},
            "routes": {"shop": {"queues": ["work"]}},
            "streams": {"orders": {"priority": "P1", "rate": 50}, "campaign": {"priority": "P3", "rate": 50}},
            "events": [{"name": "half", "at": 10, "what": "capacity", "to": 50}],
            "expect": [{"figure": "use", "at_least": 1, "why": "so"}],
            **given,
        }
    )


@pytest.fixture
def trace() -> Trace:
    """Half orders, half campaign; the capacity halves at 10 s, the queue grows by 60 and drains by 12 s."""
    trace = Trace(20.0)
    for tick in range(200):
        at = tick / 10
        rate = 10 if at < 10 else 5
        for stream in ("orders", "campaign"):
            trace.offered[stream].add(at, 5)
            trace.sent[stream].add(at, rate // 2 + rate % 2)
            trace.consumed[stream].add(at, 0.01 * (tick + 1))
        trace.admitted["work"].add(at, 0 if 10 <= at < 12 else rate)
        trace.worked["work"].add(at, rate - 1)
        ready = 60 if 10 < at < 12 else 5
        trace.queues["work"].append(QueueSample(at, ready, 4, 10.0 * rate, 0.0, work=ready))
    trace.refused["campaign"].add(3, 30)
    trace.told += [
        Told(at, "shop", congested=congested, cause=cause)
        for at, congested, cause in ((5, True, "depth"), (15, False, "none"), (16, True, "nacks"))
    ]
    trace.confirmed[0].add(5, 80)
    trace.confirmed[1].add(5, 100)
    trace.reads |= {0: (), 1: ()}
    return trace


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("P1.consumed_p50", 1.01),
        ("P1.consumed_max", 2.0),
        ("P1.goodput", 0.2),
        ("campaign.share", 0.5),
        ("use", 0.8667),
        ("queue_delay_p50", 0.1),
        ("queue_delay_max.work", 1.2),
        ("nack_ratio", 30 / 1600),
        ("added_after.half", 0.55),
        ("settled_after.half", 2.0),
        ("cuts", 2),
        ("told.nacks", 1),
        ("balance", 0.8),
        ("lost", 0),
    ],
)
def test_figure_is_what_its_name_says_when_the_trace_is_known(figure: str, value: float, trace: Trace) -> None:
    assert Figures(scenario(), trace).value(figure) == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("first", [0.0, 0.1])
def test_what_was_added_counts_from_the_scenarios_capacity_when_it_changes_at_second_0(first: float) -> None:
    made = scenario(events=[{"name": "absent", "at": 0, "what": "consumers", "to": 0, "seconds": 4}])
    seen = Trace(20.0)
    seen.queues["work"] += [QueueSample(first + at, at, 0, 0.0, 0.0, work=30 * at) for at in range(3)]
    assert Figures(made, seen).value("added_after.absent") == pytest.approx(0.6)


def test_figure_counts_its_window_only_when_it_has_one(trace: Trace) -> None:
    figures = Figures(scenario(), trace)
    assert figures.value("cuts", 10, 20) == 1
    assert figures.value("use", 10, 20) == pytest.approx(0.8)


def test_expectation_is_missed_when_there_was_nothing_to_measure() -> None:
    made = scenario(expect=[{"figure": "P1.consumed_p99", "at_most": 1, "why": "so"}])
    assert not Figures(made, Trace(20.0)).judge(made.expect[0]).holds


def test_range_counts_from_the_unloaded_run_when_it_says_so(trace: Trace) -> None:
    made = scenario(expect=[{"figure": "P1.consumed_max", "at_most": 0.5, "plus_unloaded": True, "why": "so"}])
    figures = Figures(made, trace)
    assert not figures.judge(made.expect[0]).holds
    assert figures.judge(made.expect[0], figures).at_most == pytest.approx(2.5)


def test_stop_counts_from_the_first_refusal_when_there_is_one() -> None:
    made, trace = scenario(), Trace(20.0)
    for tick in range(200):
        trace.sent["orders"].add(tick / 10, 10 if tick < 135 else 0)
    trace.refused["orders"].add(13.0, 1)
    assert Figures(made, trace).value("stopped_after.half") == pytest.approx(0.5)
