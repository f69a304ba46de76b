"""Sums over the records of this process, and the last of each: what /metrics and /state tell of what happened.

They stand between the recorder and the metric log, so that both tell the same, whether or not a log is written.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from proxy import records
from proxy.congestion.buckets import highest_of, quantile
from proxy.model import Reason
from proxy.operations.status import TYPES
from proxy.settings import Settings

DECISIONS = 10
"""Of each route, the newest that said something else than the one before."""
BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Of the publish latency's buckets, in seconds."""
Record = Mapping[str, Any]
"""As it is written."""


class Totals:
    """Takes every record and hands it on to `write`, which neither blocks nor raises."""

    def __init__(self, settings: Settings, write: Callable[[Record], None]) -> None:
        self._write = write
        self.of_classes: dict[str, Record] = {}
        """Each class's last interval."""
        self.of_routes: dict[str, Record] = {}
        self.verdicts: dict[str, Record] = {}
        """Each route's last verdict that was recorded."""
        self.congestions: dict[str, Record] = {}
        """Each route's last verdict that it is congested."""
        self.decisions: dict[str, deque[Record]] = {}
        """Each route's verdicts that said something new, the newest last."""
        self.type_lags: dict[str, int | None] = {}
        """Of each event type with a record of its own, as of the last one."""
        self._counts = {name: Counter(confirmed=0, nacked=0, resent=0) for name in settings.classes}
        self._letters = {(name, reason.value): 0 for name in settings.classes for reason in Reason}
        self._errors: dict[tuple[str, str], int] = {}
        self._publish_counts: dict[str, list[int]] = {}
        self._publish_seconds: dict[str, float] = {}
        self._truncated = 0
        self._discarded = Counter[str]()
        """By event type."""
        self.go_by(settings)

    def go_by(self, settings: Settings) -> None:
        """Sum up what happens on these settings' routes, too, from now on; what was counted is not taken back."""
        for name in settings.routes.keys() - self.decisions.keys():
            self.decisions[name] = deque(maxlen=DECISIONS)
            self._errors |= {(name, outcome): 0 for outcome in ("nacked", "unknown")}
            self._publish_counts[name] = [0] * (len(BOUNDS) + 1)
            self._publish_seconds[name] = 0.0
        for name in self.decisions.keys() - settings.routes.keys():
            self.verdicts.pop(name, None)
            self.congestions.pop(name, None)
            self.of_routes.pop(name, None)

    def write(self, record: Record) -> None:
        """Count a record and hand it on."""
        match record["kind"]:
            case records.ClassInterval.KIND:
                self._on_class(record)
            case records.TypeInterval.KIND:
                self.type_lags[record["type"]] = record["lag"]
            case records.RouteInterval.KIND:
                self._on_route(record)
            case records.Verdict.KIND:
                self._on_verdict(record)
            case records.Incident.KIND if record["name"] == records.IncidentName.TRUNCATED:
                self._truncated += record["count"]
            case records.Discard.KIND:
                self._discarded[record["type"]] += record["count"]
        self._write(record)

    def confirmed(self, priority: str) -> int:
        """Return how many events of a class were confirmed since the start."""
        return self._counts[priority]["confirmed"]

    def rate(self, priority: str) -> float | None:
        """Return the events of a class confirmed per second in its last interval; None before the first."""
        last = self.of_classes.get(priority)
        return None if last is None or not last["interval_s"] else last["confirmed"] / last["interval_s"]

    def lag_age(self, priority: str) -> float | None:
        """Return the age in seconds of a class's oldest event that waits; 0 if none is left, None: not known."""
        last = self.of_classes.get(priority)
        if last is None or (last["lag_age_s"] is None and last["lag"] != 0):
            return None
        return float(last["lag_age_s"] or 0.0)

    def publish_p50(self, route: str) -> float | None:
        """Return the median of write to confirm in the last interval, in seconds; None if nothing was confirmed."""
        last = self.of_routes.get(route)
        found = None if last is None else quantile(_counts(last), 0.5)
        return None if found is None else found / 1e6

    def families(self) -> Iterable[Metric]:
        """Yield what /metrics tells of them."""
        nacked = CounterMetricFamily("tidegate_nacked_events", "Refused by the broker for now.", labels=["class"])
        resent = CounterMetricFamily("tidegate_resent_events", "That had to be sent again.", labels=["class"])
        for name, counts in self._counts.items():
            nacked.add_metric([name], counts["nacked"])
            resent.add_metric([name], counts["resent"])
        yield from (nacked, resent)
        letters = CounterMetricFamily(
            "tidegate_dead_lettered_events", "Whose dead letter is confirmed.", labels=["class", "reason"]
        )
        for (name, reason), count in self._letters.items():
            letters.add_metric([name, reason], count)
        yield letters
        discarded = CounterMetricFamily("tidegate_discarded_events", "As a person asked for.", labels=["type"])
        for name, count in self._discarded.most_common(TYPES):
            discarded.add_metric([name], count)
        yield discarded
        yield CounterMetricFamily(
            "tidegate_truncated_records", "Dropped by the log before they were read, at most.", self._truncated
        )
        yield from self._publishing()
        age = GaugeMetricFamily("tidegate_lag_age_seconds", "Of the oldest event that waits.", labels=["class"])
        for name in self._counts:
            if (seconds := self.lag_age(name)) is not None:
                age.add_metric([name], seconds)
        yield age

    def _publishing(self) -> Iterable[Metric]:
        errors = CounterMetricFamily(
            "tidegate_publish_errors", "Publications nacked, or of unknown outcome.", labels=["route", "outcome"]
        )
        for (name, outcome), count in self._errors.items():
            errors.add_metric([name, outcome], count)
        yield errors
        median = GaugeMetricFamily(
            "tidegate_publish_p50_seconds", "Write to confirm, in the last interval.", labels=["route"]
        )
        every = HistogramMetricFamily("tidegate_publish_seconds", "Write to confirm.", labels=["route"])
        for name, counts in self._publish_counts.items():
            if (seconds := self.publish_p50(name)) is not None:
                median.add_metric([name], seconds)
            sums = [sum(counts[: place + 1]) for place in range(len(counts))]
            buckets = [(str(bound), float(count)) for bound, count in zip((*BOUNDS, "+Inf"), sums, strict=True)]
            every.add_metric([name], buckets, self._publish_seconds[name])
        yield from (median, every)

    def _on_class(self, record: Record) -> None:
        name = record["class"]
        self.of_classes[name] = record
        for what in self._counts[name]:
            self._counts[name][what] += record[what]
        for reason, count in record["dead_lettered"].items():
            self._letters[name, reason] += count

    def _on_route(self, record: Record) -> None:
        name = record["route"]
        self.of_routes[name] = record
        for outcome in ("nacked", "unknown"):
            self._errors[name, outcome] += record[outcome]
        for index, count in _counts(record).items():
            seconds = highest_of(index) / 1e6
            self._publish_counts[name][bisect_left(BOUNDS, seconds)] += count
            self._publish_seconds[name] += seconds * count

    def _on_verdict(self, record: Record) -> None:
        name = record["route"]
        before, self.verdicts[name] = self.verdicts.get(name), record
        if record["congested"]:
            self.congestions[name] = record
        if before is None or any(before[what] != record[what] for what in ("congested", "cause", "hot")):
            self.decisions[name].append(record)


def _counts(record: Record) -> dict[int, int]:
    return {int(index): count for index, count in record["publish_us"].items()}
