"""What is known of the demand on one route or queue, and how it is told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from proxy.congestion.scaling import Wanted
from proxy.steering.group_backlog import ClassBacklog


@dataclass(slots=True)
class Demand:
    """What is known of one route, or of one of its queues; rates in events a second."""

    wanted: Wanted
    consumers: int | None = None
    """There are, in all these queues."""
    drain: float | None = None
    """What they take."""
    backlogs: Mapping[str, ClassBacklog] = field(default_factory=dict)
    """By class, of the whole group; empty if not known."""
    work_off: Mapping[str, float] = field(default_factory=dict)
    """Seconds until each class's backlog has been worked off; infinite if it grows."""
    queues: "Mapping[str, Demand]" = field(default_factory=dict)
    """Each queue's own, where it is told of each."""


def latest(queues: Iterable[Demand]) -> dict[str, float]:
    """Return until when the backlog of each class has gone from the last queue, if that is known of all."""
    found: dict[str, float] = {}
    for demand in queues:
        if not demand.work_off:
            return {}
        for name in demand.backlogs:
            found[name] = max(found.get(name, 0.0), demand.work_off[name])
    return found


def as_json(demand: Demand) -> dict[str, Any]:
    """Return it as JSON; what is not known is null, what never ends as well."""
    return {
        "wanted_consumers": demand.wanted.consumers,
        "why": demand.wanted.why,
        "knee": demand.wanted.knee,
        "consumers": demand.consumers,
        "drain_per_s": None if demand.drain is None else round(demand.drain, 1),
        "classes": {
            name: {
                "lag": round(backlog.lag),
                "demand_per_s": round(backlog.demand, 1),
                "work_off_s": _finite(demand.work_off.get(name)),
            }
            for name, backlog in demand.backlogs.items()
        },
        "queues": {name: as_json(of_queue) for name, of_queue in demand.queues.items()},
    }


def _finite(seconds: float | None) -> float | None:
    return None if seconds is None or seconds == inf else round(seconds, 1)
