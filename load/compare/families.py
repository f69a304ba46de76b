"""Which scenarios tell of the same thing; the page has a chapter for each family. Pure."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple


class Family(NamedTuple):
    """Scenarios under one heading."""

    name: str
    title: str
    patterns: tuple[str, ...]
    """Of names, as a shell has them; the first family with one that fits has the scenario."""


FAMILIES = (
    Family(
        "steady",
        "Steady load",
        (
            "unloaded", "no-congestion", "steady-*", "capacity-[0-9]*", "confirms-*", "window-*", "exponential-*",
            "prefetch-*", "quorum-*", "priority-*", "bound-*", "nacks-*", "top-class-start",
            "top-class-overload",
        ),
    ),
    Family(
        "steps",
        "Steps and waves",
        ("flash-*", "campaign-*", "step-*", "slow-ramp", "idle-*", "capacity-[dht]*", "saw", "sine", "foreign-*",
         "top-class-search"),
    ),
    Family("consumers", "Consumers come and go", ("consumers-*", "stalled-*", "autoscale*", "scaled*")),
    Family("types", "Many types", ("types-*", "*-types", "small-high-classes")),
    Family("replicas", "Several replicas", ("replica-*", "replicas-*")),
    Family("queues", "Several queues", ("queues-*", "*-queues", "own-queue", "two-routes", "routes-*")),
    Family("cost", "Events that cost more", ("cost-*", "large-*")),
    Family("faults", "The broker or its signals falter", ("broker-*", "memory-*", "paging-*", "signals-*")),
    Family("backlog", "Old events beside new", ("automq-*", "tier*", "catch*", "*backlog*", "old-*", "retention-*")),
)  # fmt: skip
REST = Family("rest", "What else", ("*",))
"""Takes a new scenario until it is given its family."""


def by_family(scenarios: Iterable[str]) -> dict[Family, list[str]]:
    """Return the scenarios of each family that has some, sorted."""
    found: dict[Family, list[str]] = {}
    for scenario in sorted(scenarios):
        found.setdefault(family_of(scenario), []).append(scenario)
    return {family: found[family] for family in (*FAMILIES, REST) if family in found}


def family_of(scenario: str) -> Family:
    """Return a scenario's family."""
    return next(
        (one for one in FAMILIES if any(fnmatchcase(scenario, pattern) for pattern in one.patterns)),
        REST,
    )
