"""What a topic may be called, which topics are no events, and what `check` says of whom else is spoken to."""

from pathlib import Path

import pytest

from proxy import config
from tests.support.settings_files import HEAD, ONE_TYPE, Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.mark.parametrize("name", [".", ".."])
def test_a_topic_is_refused_when_kafka_takes_no_such_name(files: Files, name: str) -> None:
    (found,) = files.mistakes(f"{HEAD}event_types: {{orders: {{topic: '{name}'}}}}\n")
    assert "event_types.orders.topic: can be no topic; allowed: " in found


@pytest.mark.parametrize(
    ("topic", "why"), [("tidegate.tidegate", "holds what people ask"), ("told", "is notices.topic")]
)
def test_an_event_type_is_refused_when_tidegate_writes_its_topic_itself(files: Files, topic: str, why: str) -> None:
    (found,) = files.mistakes(f"{HEAD}event_types: {{orders: {{topic: {topic}}}}}\nnotices: {{topic: told}}\n")
    assert f'event_types.orders: its topic "{topic}"' in found
    assert why in found


def test_no_pattern_takes_what_tidegate_writes_itself_when_it_matches(files: Files) -> None:
    settings = files.load(f"{HEAD}event_types: {{all: {{pattern: '*'}}}}\nnotices: {{topic: told}}\n")
    assert config.event_type_for(settings, "orders") is not None
    assert config.event_type_for(settings, "other.tidegate") is not None
    assert config.event_type_for(settings, "tidegate.tidegate") is None
    assert config.event_type_for(settings, "told") is None


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("", "admin    http://127.0.0.1:8080, to this host"),
        ("admin: {listen: null}", "admin    none: no probes, no metrics, no page"),
        ("admin: {listen: '[::]:1', token: abcdefghijklmnop}", "admin    http://[::]:1, to whoever shows a token"),
        ("notices: {topic: told}", "notices  to topic told, of classes held back for 10s"),
        (
            "notices: {webhook: {url: 'http://x/y?secret', key: k}}",
            "notices  to http://x/y?**********, signed, of classes held back for 10s",
        ),
        (
            "traces: {endpoint: 'http://x/v1/traces'}",
            "traces   to http://x/v1/traces, 1 % of what no producer has sampled",
        ),
    ],
)
def test_the_summary_says_who_else_is_spoken_to_when_anybody_is(files: Files, given: str, line: str) -> None:
    assert line in config.describe(files.load(f"{HEAD}{ONE_TYPE}\n{given}\n")).splitlines()


def test_only_the_missing_variable_is_told_when_it_leaves_a_list_empty(files: Files) -> None:
    (found,) = files.mistakes(HEAD.replace('["localhost:9092"]', '["${NOWHERE}"]') + ONE_TYPE)
    assert "log.hosts[0]: environment variable NOWHERE is not set" in found


@pytest.mark.parametrize(("key", "given"), [("classes", "[P1, P2]"), ("classes", "P1"), ("classes", "3")])
def test_a_mapping_is_asked_for_when_names_are_given_otherwise(files: Files, key: str, given: str) -> None:
    found = files.mistakes(f"{HEAD}{ONE_TYPE}\n{key}: {given}\n")
    assert any(f"{key}: must be a mapping; allowed: names, each " in line for line in found)
