"""The tables of a comparison: goals, figures and verdicts as the scenario has them, misses and losses said as such."""

from pathlib import Path

import pytest

from load.control.comparison import Compared, document
from load.control.page import page
from load.control.results import conclusion, rows, text, worded
from load.control.run import Result
from proxy.simulation.scenario import Expectation
from proxy.simulation.trace import QueueSample, Trace
from tests.support.scenarios import plain

SCENARIO = plain(
    Expectation(figure="P1.consumed_p99", at_most=0.15, plus_unloaded=True, why="for a test"),
    Expectation(figure="queue_delay_p99", at_most=0.15, since=2, until=5, why="for a test"),
    Expectation(figure="lost", at_most=0, why="for a test"),
    why="Shows <nothing>.",
)


def result(waited: float, ready: int, *, lost: int = 0, lateness: float = 0.0, failed: int = 0) -> Result:
    trace = Trace(SCENARIO.seconds, lost=lost)
    for tick in range(200):
        trace.queues["work"].append(QueueSample(tick * 0.05, ready, 0, 100.0, 0.0, work=ready))
        trace.consumed["orders"].add(tick * 0.05, waited)
    return Result(SCENARIO, trace, lateness, failed, 0.1, 2.5)


def compared(**decisive: float) -> Compared:
    results = {"static": result(2.0, 200), "class_budget": result(**({"waited": 0.17, "ready": 5} | decisive))}
    return Compared(SCENARIO, {"work": 0.99}, results, unloaded=result(0.03, 0))


def test_the_goal_includes_what_was_measured_without_load() -> None:
    heading, first, second, third, *_ = rows(compared())

    assert heading == ["", "goal", "static", "class_budget", ""]
    assert first == ["P1.consumed_p99", "≤ 180 ms", "2,000 ms", "170 ms", "met"]
    assert second == ["queue_delay_p99 2-5 s", "≤ 150 ms", "2,000 ms", "50 ms", "met"]
    assert third == ["lost", "≤ 0", "0", "0", "met"]


def test_a_miss_is_said_when_it_is_the_decisive_policys() -> None:
    missing = compared(waited=0.19)

    assert rows(missing)[1][-1] == "MISSED"
    assert [one.expectation.figure for one in missing.missed()] == ["P1.consumed_p99"]
    assert compared().missed() == []


def test_nothing_is_judged_when_the_decisive_policy_did_not_run() -> None:
    alone = Compared(SCENARIO, {}, {"static": result(2.0, 200)})

    assert alone.missed() == []
    assert all(row[-1] == "" for row in rows(alone))


def test_losses_and_a_late_generator_are_faults_whatever_the_policy() -> None:
    found = Compared(SCENARIO, {}, {"static": result(2.0, 200, lost=3, lateness=1.5, failed=2)}).faults()

    assert found == [
        "static: 3 events LOST",
        "static: Kafka did not take 2 events",
        "static: the generator was up to 1.5 s late",
    ]


def test_a_skipped_scenario_says_why_everywhere() -> None:
    skipped = Compared(SCENARIO, skipped="for a reason")

    assert "skipped: for a reason" in text(skipped)
    assert document(skipped)["skipped"] == "for a reason"
    assert "skipped" in conclusion([compared(), skipped]).splitlines()[-1]


def test_the_conclusion_counts_the_goals_that_each_policy_met() -> None:
    assert conclusion([compared()]).splitlines()[-1].split() == ["plain", "1", "of", "3", "3", "of", "3"]


def test_the_record_holds_every_figure_goal_and_share() -> None:
    found = document(compared())

    assert found["full_queue_share"] == {"work": 0.99}
    assert found["unloaded"]["P1.consumed_p99"] == pytest.approx(0.03)
    decisive = found["policies"]["class_budget"]
    assert decisive["expectations"][0]["holds"] is True
    assert decisive["expectations"][0]["at_most"] == pytest.approx(0.18)
    assert decisive["figures"]["queue_delay_p50"] == pytest.approx(0.05)
    assert decisive["load_average"] == 2.5


def test_the_page_shows_tables_and_pictures_and_takes_no_text_for_markup() -> None:
    about = {"machine": {"processor": "a", "cores": 2, "memory_gib": 8}, "versions": {"kafka": "4"}}
    written = page(about, [compared(waited=0.19)], {"plain": Path("plain.png")})

    assert "Shows &lt;nothing&gt;." in written
    assert '<td class="missed">MISSED</td>' in written
    assert 'src="plain.png"' in written


@pytest.mark.parametrize(
    ("figure", "value", "words"),
    [
        ("use.work", 0.981, "98.1 %"),
        ("P1.goodput", 1.0, "100.0 %"),
        ("nack_ratio", 0.0041, "0.4 %"),
        ("cuts", 12.0, "12"),
        ("told.blind", 3.0, "3"),
        ("P1.consumed_p99", 0.1234, "123 ms"),
        ("settled_after.step", 12.0, "12.0 s"),
        ("balance", None, "-"),
    ],
)
def test_a_figure_has_its_unit(figure: str, value: float | None, words: str) -> None:
    assert worded(figure, value) == words
