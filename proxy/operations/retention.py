"""What is told of how long events still have in the log: a record, metrics. /state has it of each type and class."""

from collections import Counter
from collections.abc import Iterable
from math import inf

from prometheus_client.core import GaugeMetricFamily

from proxy import records
from proxy.bridge.listener import Listener
from proxy.steering.retention_guard import Near, RetentionGuard

_LONGEST = 10 * 365 * 86_400.0
"""Seconds that are written at most: a record has no infinity."""


def retention_record(near: Near) -> records.Retention:
    """Return what is recorded of a partition."""
    left, full = near.span
    return records.Retention(
        type=near.type,
        topic=near.partition.topic,
        partition=near.partition.number,
        left_s=round(min(left, full, _LONGEST), 3),
        lag=near.lag,
        lifted_to=near.lifted_to,
        phase=near.phase,
        full_s=None if full == inf else round(full, 3),
    )


def retention_families(guard: RetentionGuard, listeners: Iterable[Listener]) -> Iterable[GaugeMetricFamily]:
    """Yield what /metrics tells: by class, of this replica's partitions."""
    left, lifted, near = dict[str, float](), Counter[str](), Counter[str]()
    of_types = guard.near
    for one in listeners:
        name, priority = one.event_type.name, one.event_type.priority
        span = guard.spans.get(name)
        if span is not None:
            left[priority] = min(left.get(priority, inf), span.left)
            near[priority] += of_types.get(name, 0)
            lifted[priority] += one.is_lifted
    lefts = GaugeMetricFamily(
        "tidegate_retention_left_seconds", "Until the log may drop an event unsent, at the earliest.", labels=["class"]
    )
    nears = GaugeMetricFamily("tidegate_retention_near_partitions", "Near their end in the log.", labels=["class"])
    lifts = GaugeMetricFamily("tidegate_lifted_types", "That go as a class above, for a time.", labels=["class"])
    for name, seconds in left.items():
        lefts.add_metric([name], seconds)
        nears.add_metric([name], near[name])
        lifts.add_metric([name], lifted[name])
    yield from (lefts, nears, lifts)
    yield GaugeMetricFamily(
        "tidegate_retention_unknown_topics", "Of which this login may not know it.", value=len(guard.unknown)
    )
