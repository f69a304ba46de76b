"""Names that the settings don't know are refused before anything is asked."""

from pathlib import Path

import pytest

from proxy.errors import SettingsError
from proxy.operations.scope import checked, class_of
from proxy.settings import Settings
from tests.support.settings_files import HEAD, Files

TYPES = """event_types:
  order-confirmed: {class: P1}
  brand-alert: {topic: alerts.brand}
  marketing: {pattern: "events.*.marketing", class: P3}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Files(tmp_path).load(HEAD + TYPES)


def test_each_name_is_taken_once_in_the_order_given_when_the_settings_know_it(settings: Settings) -> None:
    types = ["events.shoes.marketing", "order-confirmed", "events.shoes.marketing"]
    assert checked(settings, types, ["P3", "P3"]) == (("events.shoes.marketing", "order-confirmed"), ("P3",), ())


def test_every_unknown_name_is_told_with_the_nearest_and_what_there_is(settings: Settings) -> None:
    with pytest.raises(SettingsError) as refused:
        checked(settings, ["order-confirmd", "alerts.brand", "x\x1b"], ["p3"])
    first, second, third, fourth = refused.value.mistakes
    known = "allowed: order-confirmed, brand-alert, and what matches events.*.marketing"
    assert first == f'event type "order-confirmd" does not exist; did you mean "order-confirmed"? {known}'
    assert second == f'event type "alerts.brand" does not exist; {known}'
    assert "\x1b" not in third
    assert fourth == 'class "p3" does not exist; did you mean "P3"? allowed: P1, P2, P3'


def test_it_is_said_that_a_name_is_needed_when_there_is_none(settings: Settings) -> None:
    with pytest.raises(SettingsError, match="by --type NAME or --class NAME"):
        checked(settings, [], [])


@pytest.mark.parametrize(
    ("name", "found"),
    [("order-confirmed", "P1"), ("brand-alert", "P2"), ("alerts.brand", None), ("events.x.marketing", "P3")],
)
def test_the_class_of_an_event_type_is_that_of_its_name_and_not_of_its_topic(
    settings: Settings, name: str, found: str | None
) -> None:
    assert class_of(settings, name) == found
