"""Reads a scenario, or says every mistake in it at once; makes the Tidegate settings that it runs with."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml

from proxy import config
from proxy.config import yaml_file
from proxy.config.items import Item, Mistakes
from proxy.config.words import validate
from proxy.congestion import laws
from proxy.errors import RateLawError, SettingsError
from proxy.settings import Policy, Settings
from proxy.simulation.rivals import RIVALS, STANDS_FOR
from proxy.simulation.scenario import Rate, RouteIn, Scenario
from proxy.simulation.scenario_checks import contradictions

SHIPPED = Path(__file__).with_name("scenarios")
"""The scenarios that come with the package."""

SHADOW = "shadow"
"""The default policy, only watched: it decides, and nothing is held back."""

UNLOADED_SHARE = 0.2
UNLOADED_SECONDS = 30.0


def policies() -> tuple[str, ...]:
    """Return what Tidegate can be run under: each policy, and each rate law, which means `class_budget` with it."""
    return (*get_args(Policy), *laws.names())


def simulated_policies() -> tuple[str, ...]:
    """Return what a scenario can be simulated under: the same, the default in shadow, and rivals of its own."""
    return (*policies(), SHADOW, *(name for name in RIVALS if name not in policies()))


def try_laws(names: Iterable[str]) -> None:
    """Raise `SettingsError` for those of the names that are of rate laws and can't be had."""
    mistakes = []
    for name in names:
        if name in laws.names():
            try:
                laws.find(name)
            except RateLawError as error:
                mistakes.append(f"--policy {name}: {error}; repair the package, or uninstall it")
    if mistakes:
        raise SettingsError(mistakes)


def shipped() -> dict[str, Path]:
    """Return the scenarios that come with the package, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def load(path: Path) -> Scenario:
    """Return the scenario in a file. Raises `SettingsError` with every mistake, one line each."""
    mistakes = Mistakes()
    root = yaml_file.read(path, {}, mistakes)
    scenario = validate(Scenario, _with_class(root), mistakes) if root is not None else None
    if scenario is not None and root is not None:
        for words in contradictions(scenario):
            mistakes.add(root, words)
    if mistakes.listed() or scenario is None:
        raise SettingsError(mistakes.listed())
    try:
        for reads in dict.fromkeys(scenario.replicas):
            settings(scenario, "static", reads=reads)
    except SettingsError as error:
        raise SettingsError([f"{path}: settings: {line}" for line in error.mistakes]) from error
    return scenario


def settings(scenario: Scenario, policy: str, replica: int = 0, *, reads: tuple[str, ...] | None = None) -> Settings:
    """Return the Tidegate settings of a replica; `reads` names its classes where it is none of the first ones.

    Raises `SettingsError`.
    """
    classes = scenario.replicas[replica] if reads is None else reads
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        yaml.safe_dump(document(scenario, STANDS_FOR if policy in RIVALS else policy, classes), file)
        file.flush()
        try:
            return config.load(Path(file.name), {})
        except SettingsError as error:
            lines = [line.split(": ", 1)[-1] for line in error.mistakes]
            raise SettingsError(lines) from error


def document(scenario: Scenario, policy: str, reads: tuple[str, ...] = (), **hosts: str) -> dict[str, Any]:
    """Return the settings as the file would hold them.

    `kafka`, `rabbitmq` (host:port) and `management` (a URL) name others than those in memory.
    """
    routes: dict[str, Any] = {}
    for name, route in scenario.routes.items():
        routes[name] = {"exchange": name} | _controlled_by(route.policy or policy)
        if route.watched:
            routes[name] |= _judged(scenario, route)
        if (
            policy != SHADOW
            and routes[name]["policy"] == "class_budget"
            and any(_follows_wishes(scenario, queue) for queue in route.queues)
        ):
            routes[name]["scaling"] = {}
    types = {}
    for name, stream in scenario.streams.items():
        if stream.joins is None and (not reads or stream.priority in reads):
            types[f"{name}-types"] = {
                "topics": scenario.topics(name),
                "class": stream.priority,
                "route": scenario.route_of(name),
                "routing_key": stream.priority,
            } | ({"cost": stream.cost} if stream.cost > 1 else {})
    given: dict[str, Any] = {
        "log": {"hosts": [hosts.get("kafka", "memory:1")], "group": scenario.name},
        "broker": {"hosts": [hosts.get("rabbitmq", "memory:1")]},
        "routes": routes,
        "event_types": types,
        "admin": {"listen": None},
    }
    if scenario.management:
        given["broker"]["management"] = {"url": hosts.get("management", "http://memory:1")}
    if any(stream.size > 1024**2 - 1024 for stream in scenario.streams.values()):
        given["limits"] = {"event_bytes": "20MiB", "inbox_bytes": "20MiB"}
        for route in routes.values():
            route["in_flight_bytes"] = "20MiB"
    return merged(given, scenario.settings)


def merged(into: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those of another document laid over them, mapping by mapping."""
    result = dict(into)
    for key, value in other.items():
        known = result.get(key)
        result[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result


def _controlled_by(policy: str) -> dict[str, Any]:
    if policy == SHADOW:
        return {"policy": "class_budget", "shadow": True}
    return {"policy": "class_budget", "law": policy} if policy in laws.names() else {"policy": policy}


def _follows_wishes(scenario: Scenario, queue: str) -> bool:
    rule = scenario.queues[queue].autoscale
    return rule is not None and rule.by == "wanted"


def _judged(scenario: Scenario, route: RouteIn) -> dict[str, Any]:
    """Return what the route's settings say of its queues."""
    if route.strategy is None:
        return {"queues": list(route.queues)}
    queues: list[dict[str, Any]] = []
    for queue in route.queues:
        keys = [name for name in scenario.classes if queue in route.sends.get(name, route.queues)]
        is_split = len(keys) < len(scenario.classes)
        queues.append({"name": queue, "tag": queue in route.tags} | ({"routing_keys": keys} if is_split else {}))
    return {"queues": queues, "strategy": route.strategy, "untether": route.untether}


def unloaded(scenario: Scenario) -> Scenario:
    """Return what ranges count from: the top class alone, at a fifth of the capacity, with nothing happening."""
    top = scenario.classes[0]
    streams = {name: stream for name, stream in scenario.streams.items() if stream.priority == top}
    alone = {}
    for name, stream in streams.items():
        route = scenario.routes[scenario.route_of(name)]
        reached = route.sends.get(top, route.queues)
        capacity = min(scenario.queues[queue].capacity for queue in reached)
        rate = UNLOADED_SHARE * capacity / len(streams) / stream.cost
        alone[name] = stream.model_copy(update={"rate": Rate(constant=rate)})
    return scenario.model_copy(
        update={
            "streams": alone,
            "events": (),
            "replicas": ((),),
            "seconds": UNLOADED_SECONDS,
            "warm_up": UNLOADED_SECONDS / 6,
        }
    )


def bindings(scenario: Scenario, route: str) -> dict[str, tuple[str, ...]]:
    """Return the queues that each class's routing key leads to on a route's exchange."""
    leads = scenario.routes[route]
    return {name: leads.sends.get(name, leads.queues) for name in scenario.classes}


def _with_class(root: Item) -> Item:
    """Call `class` what the model must call `priority`, and everything by its own place."""
    streams = root.mapping.get("streams")
    if streams is None or not isinstance(streams.value, dict):
        return root
    renamed = {
        name: item.at({"priority" if key == "class" else key: entry for key, entry in item.mapping.items()})
        if isinstance(item.value, dict)
        else item
        for name, item in streams.mapping.items()
    }
    return root.at(dict(root.mapping) | {"streams": streams.at(renamed)})
