"""What may be set of shadow and traces, and what `check` says of it."""

from pathlib import Path

import pytest

from proxy import config
from proxy.errors import SettingsError

FILE = """
log: {{hosts: [kafka:9092], group: g}}
broker: {{hosts: [rabbit:5672]}}
routes: {{main: {{exchange: x, queues: [q], {route}}}}}
defaults: {{route: main, class: P1, routing_key: k}}
event_types: {{orders: {{}}}}
{more}
"""


def loaded(folder: Path, route: str = "shadow: true", more: str = "") -> str:
    file = folder / "tidegate.yaml"
    file.write_text(FILE.format(route=route, more=more))
    return config.describe(config.load(file, {}))


@pytest.mark.parametrize("policy", ["class_budget", "per_type"])
def test_check_says_that_a_policy_holds_nothing_back_when_it_is_in_shadow(policy: str, tmp_path: Path) -> None:
    told = loaded(tmp_path, f"policy: {policy}, shadow: true")
    assert f"{policy} in shadow (holds nothing back)" in told
    assert "shadow" not in loaded(tmp_path, f"policy: {policy}, shadow: false")


@pytest.mark.parametrize(
    ("route", "why"),
    [
        ("policy: static, shadow: true", "decides nothing that could be watched"),
        ("shadow: true, scaling: {}", "too few consumers would be wanted"),
    ],
)
def test_shadow_is_refused_where_it_would_mislead(route: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=why):
        loaded(tmp_path, route)


def test_every_mistake_of_traces_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, more="traces: {endpoint: 'collector:4318', sample: 2, links: 0, spans_per_second: 0}")
    told = str(caught.value)
    for part in (
        "traces.endpoint",
        "http://host:port/path",
        "traces.sample",
        "traces.links",
        "traces.spans_per_second",
    ):
        assert part in told
