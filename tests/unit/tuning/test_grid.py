"""What is tried: every combination once, every mistake at once, in the words of the settings."""

from typing import Any

import pytest
import yaml

from proxy.errors import SettingsError
from proxy.simulation import scenario_file
from proxy.simulation.scenario import Scenario
from proxy.tuning.grid import MOST_RUNS, Candidate, candidates


@pytest.fixture
def scenario() -> Scenario:
    return Scenario.model_validate(
        {
            "name": "recorded",
            "why": "by hand",
            "seconds": 20,
            "queues": {"shop": {"capacity": 100}},
            "routes": {"shop": {"queues": ["shop"], "policy": "aimd"}},
            "streams": {"P1": {"priority": "P1", "rate": 50}, "P3": {"priority": "P3", "rate": 90}},
            "settings": {"classes": {"P1": {}, "P2": {}, "P3": {}}, "class_budget": {"growth": 0.2}},
            "expect": [{"figure": "use", "at_least": 0, "why": "so"}],
        }
    )


def steered(scenario: Scenario, candidate: Candidate) -> Any:
    return scenario_file.settings(*candidate.applied(scenario, 7))


def test_the_recorded_settings_come_first_and_every_combination_once(scenario: Scenario) -> None:
    found = candidates(scenario, ["cubic", "static"], ["cut=0.9,0.95", "growth=0.1"], 5)
    assert [one.words for one in found] == [
        "as recorded",
        "cubic cut=0.9 growth=0.1",
        "cubic cut=0.95 growth=0.1",
        "static cut=0.9 growth=0.1",
        "static cut=0.95 growth=0.1",
    ]


def test_nothing_is_tried_when_nothing_is_named(scenario: Scenario) -> None:
    assert candidates(scenario, [], [], 5) == [Candidate()]


def test_what_is_not_tried_stays_as_recorded(scenario: Scenario) -> None:
    [recorded, tried] = candidates(scenario, [], ["lowest_queue_delay=60ms"], 1)
    before, after = steered(scenario, recorded), steered(scenario, tried)
    assert (before.class_budget.growth, before.class_budget.lowest_queue_delay) == (0.2, 0.08)
    assert (after.class_budget.growth, after.class_budget.lowest_queue_delay) == (0.2, 0.06)
    assert tried.applied(scenario, 7)[0].seed == 7


def test_a_policy_or_law_replaces_the_recorded_one_of_every_route(scenario: Scenario) -> None:
    [recorded, by_policy, by_law] = (
        steered(scenario, one).routes["shop"] for one in candidates(scenario, ["static", "cubic"], [], 1)
    )
    assert (recorded.policy, recorded.law) == ("class_budget", "aimd")
    assert by_policy.policy == "static"
    assert (by_law.policy, by_law.law) == ("class_budget", "cubic")


def test_other_parts_are_tried_by_their_path(scenario: Scenario) -> None:
    found = candidates(scenario, [], ["classes.P3.queue_delay=50ms", "routes.shop.cap.events=80"], 1)[-1]
    settings = steered(scenario, found)
    assert settings.classes["P3"].queue_delay == 0.05
    assert settings.classes["P1"].increase == 15
    assert settings.routes["shop"].cap.events == 80


def test_what_to_put_into_the_file_is_what_was_tried(scenario: Scenario) -> None:
    found = candidates(scenario, ["cubic"], ["growth=0.1", "classes.P3.queue_delay=50ms"], 1)[-1]
    assert yaml.safe_load(found.for_file(["shop"])) == {
        "class_budget": {"growth": 0.1},
        "classes": {"P3": {"queue_delay": "50ms"}},
        "routes": {"shop": {"policy": "class_budget", "law": "cubic"}},
    }
    assert Candidate().for_file(["shop"]) == ""


def test_every_mistake_is_told_at_once_in_the_words_of_the_settings(scenario: Scenario) -> None:
    tried = ["growth=7,0.1", "growht=0.1", "cut", "admin.listen=x", "routes.mail.law=cubic", "tick=5x"]
    with pytest.raises(SettingsError) as raised:
        candidates(scenario, ["cubik"], tried, 5)
    told = raised.value.mistakes
    assert any("cubik is no policy and no law" in line and "cubic" in line for line in told)
    assert any(line.startswith("--try growth=7,0.1: ") and "growth" in line and "0.01" in line for line in told)
    assert any("class_budget has no growht" in line for line in told)
    assert any("write SETTING=VALUE,VALUE" in line for line in told)
    assert any("admin does not steer" in line for line in told)
    assert any("recorded are shop" in line for line in told)
    assert any("is no duration" in line for line in told)
    assert len(told) == 7


def test_values_that_contradict_each_other_are_told(scenario: Scenario) -> None:
    with pytest.raises(SettingsError, match="lowest_queue_delay <= highest_queue_delay must hold"):
        candidates(scenario, [], ["lowest_queue_delay=600ms", "highest_queue_delay=500ms"], 1)


def test_a_setting_that_is_tried_twice_is_told(scenario: Scenario) -> None:
    with pytest.raises(SettingsError, match="is tried already"):
        candidates(scenario, [], ["growth=0.1", "class_budget.growth=0.2"], 1)


@pytest.mark.series
def test_no_more_runs_are_made_than_the_bound(scenario: Scenario) -> None:
    values = ",".join(str(at / 1_000) for at in range(100, 500))
    with pytest.raises(SettingsError, match=f"allowed: {MOST_RUNS}"):
        candidates(scenario, [], [f"growth={values}"], 5)
