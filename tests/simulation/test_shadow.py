"""A policy in shadow, run beside the same one obeyed and beside none: it holds nothing back, and says what it would."""

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from proxy.simulation import scenario_file
from proxy.simulation.figures import Figures
from proxy.simulation.scenario_run import simulate

pytestmark = pytest.mark.timeout(900)  # three runs of the scenario, each of a dozen seconds, whichever test comes first

SCENARIO = "campaign-deep-queue"
Record = Mapping[str, Any]


@cache
def run(policy: str, name: str = SCENARIO, **changed: Any) -> tuple[Figures, list[Record]]:
    scenario = scenario_file.load(scenario_file.shipped()[name]).model_copy(update=changed)
    records: list[Record] = []
    return Figures(scenario, simulate(scenario, policy, records.append)), records


def of(records: list[Record], kind: str) -> list[Record]:
    return [record for record in records if record["kind"] == kind]


def worst(records: list[Record], priority: str, field: str) -> float:
    return max(one[field] or 0 for one in of(records, "class") if one["class"] == priority)


@pytest.mark.series
def test_nothing_is_held_back_when_it_is_only_watched() -> None:
    (off, _), (shadow, told) = run("static"), run("shadow")
    for figure in ("P1.consumed_p99", "P3.consumed_p99", "queue_delay_p99", "use", "P3.goodput"):
        assert shadow.value(figure) == pytest.approx(off.value(figure), rel=0.03), figure
    assert [shadow.value(figure) for figure in ("lost", "duplicates")] == [0, 0]
    assert worst(told, "P3", "lag") < 20
    assert (shadow.value("P1.consumed_p99") or 0) > 30, "the campaign stands in the queue before it"


@pytest.mark.series
def test_it_says_what_becomes_true_when_it_is_obeyed() -> None:
    (_, watched), (_, obeyed) = run("shadow"), run("class_budget")
    shadows = of(watched, "shadow")
    by_class = Counter[str]()
    for one in shadows:
        by_class[one["class"]] += one["held"]
    sent = sum(one["sent"] for one in shadows if one["class"] == "P3")
    assert by_class["P3"] > 0.9 * sent
    assert by_class["P1"] == 0
    assert by_class["P2"] < 100, "at the start, as obeyed"
    most = max(one["waiting"] for one in shadows)
    assert most == pytest.approx(worst(obeyed, "P3", "lag"), rel=0.1)
    longest = max(one["longest_s"] for one in shadows)
    assert longest == pytest.approx(worst(obeyed, "P3", "lag_age_s"), rel=0.05)
    assert shadows[-1]["waiting"] == 0, "what would have waited is done with when it would have been"


@pytest.mark.series
def test_decisions_are_those_of_a_loop_that_is_obeyed() -> None:
    (_, watched), (_, obeyed) = run("shadow"), run("class_budget")

    def decided(records: list[Record]) -> tuple[int, set[str], float]:
        flood = [one for one in of(records, "verdict") if 30 < at(one) < 45]
        hot = {name for one in flood for name in one["hot"] or []}
        return sum(one["cuts"] for one in flood), hot, max(one["queue_delay_us"] or 0 for one in flood) / 1e6

    def at(one: Record) -> float:
        return float(one["at_ms"] / 1000 - 1_700_000_000)

    cuts, hot, delay = decided(watched)
    true_cuts, true_hot, true_delay = decided(obeyed)
    assert hot == true_hot == {"P3"}
    assert cuts == pytest.approx(true_cuts, rel=0.5)  # 10 to 17 each, by seed
    assert delay == pytest.approx(true_delay, rel=0.3)


@pytest.mark.long
def test_rates_do_not_run_away_when_more_is_sent_than_they_allow() -> None:
    _, watched = run("shadow")
    flood = [one for one in of(watched, "verdict") if 20 < one["at_ms"] / 1000 - 1_700_000_000 < 45]
    assert len(flood) > 10
    assert max(one["rates"]["P3"] for one in flood) < 450


def test_higher_classes_would_not_be_held_back_when_the_broker_refuses_what_is_too_much() -> None:
    _, watched = run("shadow", "flash-campaign", seconds=40.0)
    shadows = of(watched, "shadow")
    held = {name: sum(one["held"] for one in shadows if one["class"] == name) for name in ("P1", "P2", "P3")}
    sent = {name: sum(one["sent"] for one in shadows if one["class"] == name) for name in ("P1", "P2", "P3")}
    assert held["P3"] > 0.8 * sent["P3"]
    assert held["P1"] < 0.05 * sent["P1"]
    assert max(one["longest_s"] for one in shadows if one["class"] == "P1") < 0.5


@pytest.mark.long
def test_replicas_say_together_what_one_would() -> None:
    _, alone = run("shadow", seconds=45.0)
    scenario = scenario_file.load(scenario_file.shipped()[SCENARIO])
    streams = {name: one.model_copy(update={"partitions": 4}) for name, one in scenario.streams.items()}
    _, both = run_of(streams)
    for name, least in (("P3", 0.85), ("P1", 0.0)):
        held = sum(one["held"] for one in of(both, "shadow") if one["class"] == name)
        by_one = sum(one["held"] for one in of(alone, "shadow") if one["class"] == name)
        assert held >= least * by_one
    sent = sum(one["sent"] for one in of(both, "shadow") if one["class"] == "P1")
    assert sum(one["held"] for one in of(both, "shadow") if one["class"] == "P1") < 0.05 * sent


def run_of(streams: Any) -> tuple[Figures, list[Record]]:
    scenario = scenario_file.load(scenario_file.shipped()[SCENARIO])
    scenario = scenario.model_copy(update={"streams": streams, "replicas": ((), ()), "seconds": 45.0})
    records: list[Record] = []
    return Figures(scenario, simulate(scenario, "shadow", records.append)), records


def test_a_batch_size_for_each_type_is_watched_too() -> None:
    scenario = scenario_file.load(scenario_file.shipped()[SCENARIO]).model_copy(
        update={"settings": {"routes": {"shop": {"policy": "per_type", "shadow": True}}}, "seconds": 30.0}
    )
    records: list[Record] = []
    figures = Figures(scenario, simulate(scenario, "per_type", records.append))
    assert worst(records, "P3", "lag") < 50
    assert (figures.value("lost"), figures.value("duplicates")) == (0, 0)
    told = of(records, "shadow")
    assert sum(one["sent"] for one in told) == sum(one["passed"] for one in told) + sum(
        one["waiting"] for one in told if one["at_ms"] == told[-1]["at_ms"]
    )
