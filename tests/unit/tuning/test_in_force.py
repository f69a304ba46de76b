"""What is replayed goes by the settings that were in force at the end of what was recorded."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from proxy.tuning.assumed import assumed
from proxy.tuning.rebuilt import steered
from proxy.tuning.recording import Recording

Make = Callable[..., dict[str, Any]]
CLASSES = {"classes": ["P1"]}


def told(kind: str, at: float, growth: float, policy: str) -> dict[str, Any]:
    plans = {"routes": {"r": {"policy": policy, "queues": []}}}
    settings = json.dumps({"class_budget": {"growth": growth}})
    return {"kind": kind, "instance": "one", "at_ms": round(1000 * at), "settings": settings, **plans, **CLASSES}


START = told("start", 0, 0.1, "static")
LATER = told("settings", 5, 0.2, "class_budget")


@pytest.mark.parametrize(
    ("records", "growth", "policy", "said"),
    [
        ([START], 0.1, "static", 0),
        ([START, LATER], 0.2, "class_budget", 1),
        ([START, LATER, told("settings", 9, 0.3, "per_type")], 0.3, "per_type", 2),
        ([START, LATER, told("start", 7, 0.4, "static")], 0.4, "static", 1),
        ([START, told("settings", 99, 0.5, "per_type")], 0.1, "static", 0),
        ([START, told("settings", 0.5, 0.6, "per_type")], 0.6, "per_type", 0),
    ],
    ids=["start alone", "changed", "changed twice", "another process later", "after the window", "before the window"],
)
def test_the_settings_are_those_of_the_end_and_it_is_said_that_they_changed(
    interval: Make, records: list[dict[str, Any]], growth: float, policy: str, said: int
) -> None:
    recording = Recording.of([*records, interval(2, confirmed=1), interval(20, confirmed=1)])
    settings, policies = steered(recording)
    assert (settings["class_budget"], policies) == ({"growth": growth}, {"r": policy})
    words = [word for word in assumed(recording, ["P1"], {}) if "settings changed" in word]
    assert [f"({said} records" in word for word in words] == [True] * bool(said)
