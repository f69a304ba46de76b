"""What is promised of each class, and in which minute how many events were late: by raw times, never by buckets."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from load.metric_fleet.fleet import Fleet
from load.metric_fleet.kinds import CLASSES
from load.metric_fleet.plan import START_MS
from proxy.records import Slo

PROMISES = {
    "P1": Slo(within_s=0.02, share=0.98, judges="bridge"),
    "P2": Slo(within_s=1.0, share=0.9, judges="consumed"),
    "P3": Slo(within_s=2.0, share=0.95, judges="bridge"),
}
MINUTE_MS = 60_000

Late = Counter[tuple[str, int, bool]]
"""Events by class, minute since 1970, and whether they were late."""


def bridge_lateness(priority: str, at_ms: int, times_us: Iterable[int]) -> Iterator[tuple[str, int, bool]]:
    """Yield what an interval that ended at an instant of the fleet says of the events of a class."""
    promise = PROMISES[priority]
    if promise.judges == "bridge":
        minute = (START_MS + at_ms - 1) // MINUTE_MS
        for time_us in times_us:
            yield priority, minute, time_us > promise.within_s * 1e6


def consumed_lateness(priority: str, due_ms: int, times_ms: list[int], end_ms: int) -> Iterator[tuple[str, int, bool]]:
    """Yield what an event says that was due at an instant and consumed so long after, or not before the end."""
    promise = PROMISES[priority]
    if promise.judges != "consumed":
        return
    within_ms = promise.within_s * 1000
    if times_ms:
        yield priority, (START_MS + due_ms + min(times_ms)) // MINUTE_MS, min(times_ms) > within_ms
    elif due_ms + within_ms < end_ms:
        yield priority, (START_MS + due_ms) // MINUTE_MS, True


def as_json(fleet: Fleet, late: Late) -> dict[str, Any]:
    """Return each promise, the routes that serve its class, and for each minute the events judged and missed."""
    return {
        name: PROMISES[name].as_json()
        | {
            "routes": sorted({kind.route for kind in fleet.kinds if kind.priority == name and kind.rate}),
            "minutes": [
                [minute * MINUTE_MS, late[name, minute, False] + late[name, minute, True], late[name, minute, True]]
                for minute in sorted({minute for of, minute, _ in late if of == name})
            ],
        }
        for name in CLASSES
    }
