"""What is tried: the recorded settings, and every combination of policies or laws and values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

import yaml

from proxy.config.items import listing
from proxy.config.words import nearest
from proxy.congestion import laws
from proxy.errors import SettingsError
from proxy.settings import ClassBudget, Policy
from proxy.simulation import scenario_file
from proxy.simulation.scenario import Scenario

PARTS = ("class_budget", "classes", "detector", "limits", "routes", "statistics", "throttling")
"""Of the settings, those that steer."""
MOST_RUNS = 2_000
"""Simulations of one grid."""

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to steer."""

    policy: str | None = None
    """Of every route, or the name of a law; None: as recorded."""
    settings: tuple[tuple[tuple[str, ...], Value], ...] = ()
    """Path in the settings, and value; all others as recorded."""

    @property
    def words(self) -> str:
        """What is changed."""
        told = [
            ".".join(path[1:] if path[0] == "class_budget" else path) + f"={value}" for path, value in self.settings
        ]
        return " ".join([self.policy or "", *told]).strip() or "as recorded"

    @property
    def document(self) -> dict[str, Any]:
        """The settings that it changes, nested as in the file."""
        root: dict[str, Any] = {}
        for path, value in self.settings:
            part = root
            for key in path[:-1]:
                part = part.setdefault(key, {})
            part[path[-1]] = value
        return root

    def for_file(self, routes: Sequence[str]) -> str:
        """Return what to put into the settings file, as YAML."""
        root = self.document
        if self.policy is not None:
            by_law = self.policy in laws.names()
            steered = {"policy": "class_budget", "law": self.policy} if by_law else {"policy": self.policy}
            for route in routes:
                root.setdefault("routes", {}).setdefault(route, {}).update(steered)
        return yaml.safe_dump(root, sort_keys=False) if root else ""

    def applied(self, scenario: Scenario, seed: int) -> tuple[Scenario, str]:
        """Return the recorded scenario steered this way, and the policy of routes that have none of their own."""
        changes: dict[str, Any] = {"seed": seed, "settings": scenario_file.merged(scenario.settings, self.document)}
        if self.policy is not None:
            changes["routes"] = {
                name: route.model_copy(update={"policy": None}) for name, route in scenario.routes.items()
            }
        return scenario.model_copy(update=changes), self.policy or "class_budget"


def check_names(policies: Sequence[str], tried: Sequence[str]) -> None:
    """Find what is wrong whatever was recorded. Raises `SettingsError` with every mistake."""
    mistakes = list(_unknown_policies(policies))
    for text in tried:
        try:
            _parsed(text, None)
        except SettingsError as error:
            mistakes += error.mistakes
    if mistakes:
        raise SettingsError(mistakes)


def candidates(scenario: Scenario, policies: Sequence[str], tried: Sequence[str], seeds: int) -> list[Candidate]:
    """Return the recorded settings, then every combination; `tried` are texts like `growth=0.08,0.12`.

    Raises `SettingsError` with every mistake.
    """
    mistakes = list(_unknown_policies(policies))
    values: dict[tuple[str, ...], list[Value]] = {}
    for text in tried:
        try:
            path, given = _parsed(text, list(scenario.routes))
        except SettingsError as error:
            mistakes += error.mistakes
            continue
        if path in values:
            mistakes.append(f"--try {text}: {'.'.join(path)} is tried already; give all its values at once")
        values[path] = given
        each = [Candidate(None, ((path, value),)) for value in given]
        mistakes += [f"--try {text}: {line}" for one in each for line in _mistakes(scenario, one)]
    if mistakes:
        raise SettingsError(list(dict.fromkeys(mistakes)))
    chosen: Sequence[str | None] = policies or [None]
    combinations = [
        Candidate(policy, tuple(zip(values, of_each, strict=True)))
        for policy in chosen
        for of_each in product(*values.values())
    ]
    found = list(dict.fromkeys([Candidate(), *combinations]))
    if len(found) * seeds > MOST_RUNS:
        raise SettingsError(
            [f"{len(found)} combinations with {seeds} seeds are {len(found) * seeds} runs; allowed: {MOST_RUNS}"]
        )
    mistakes = [f"{one.words}: {line}" for one in found for line in _mistakes(scenario, one)]
    if mistakes:
        raise SettingsError(list(dict.fromkeys(mistakes)))
    return found


def _unknown_policies(policies: Sequence[str]) -> Iterator[str]:
    allowed = scenario_file.policies()
    for name in policies:
        if name not in allowed:
            near = nearest(name, allowed)
            known = f"policies: {listing(get_args(Policy))}; laws: {listing(laws.names())}"
            yield f"{name} is no policy and no law{near} {known}"


def _parsed(text: str, routes: Sequence[str] | None) -> tuple[tuple[str, ...], list[Value]]:
    """Take `path=value,value` apart; None: the routes are not known yet. Raises `SettingsError`."""
    name, equals, right = text.partition("=")
    if not (name and equals and right):
        raise SettingsError([f"--try {text}: write SETTING=VALUE,VALUE"])
    first, _, rest = name.partition(".")
    if not rest:
        if name not in ClassBudget.model_fields:
            near = nearest(name, list(ClassBudget.model_fields))
            raise SettingsError(
                [f"--try {text}: class_budget has no {name}{near} others by their path: routes.NAME.cap.events=100,200"]
            )
        path: tuple[str, ...] = ("class_budget", name)
    elif first == "routes":
        known = routes if routes is not None else [rest.partition(".")[0]]
        route = next((one for one in known if rest.startswith(f"{one}.")), None)
        if route is None:
            raise SettingsError(
                [f"--try {text}: write routes.NAME.SETTING; recorded are {listing(list(routes or []))}"]
            )
        path = ("routes", route, *rest[len(route) + 1 :].split("."))
    elif first in PARTS:
        path = (first, *rest.split("."))
    else:
        raise SettingsError([f"--try {text}: {first} does not steer; allowed: {listing(PARTS)}"])
    return path, [_value(one) for one in right.split(",")]


def _value(text: str) -> Value:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, str | int | float | bool | None) else text


def _mistakes(scenario: Scenario, candidate: Candidate) -> list[str]:
    steered, policy = candidate.applied(scenario, scenario.seed)
    try:
        scenario_file.settings(steered, policy)
        scenario_file.try_laws([policy])
    except SettingsError as error:
        return error.mistakes
    return []
