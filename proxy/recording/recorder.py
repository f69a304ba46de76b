"""Writes what happened into the metric log: routes and classes often, event types seldom, verdicts as they come.

The records are those of docs/metric-log.md; every count is of the interval, so plain sums over any records are right.
"""

import asyncio
from collections.abc import Callable, Mapping
from math import isinf
from typing import Any

from proxy.bridge.assignment import Assignment
from proxy.bridge.broker import Lane, QueueState
from proxy.bridge.event_log import EventLog
from proxy.bridge.listener import Listener
from proxy.bridge.tally import Tally
from proxy.congestion.buckets import DIGITS, HIGHEST_US, LOWEST_US
from proxy.congestion.class_budget import BudgetVerdict
from proxy.congestion.detector import Verdict
from proxy.errors import LogError
from proxy.model import Partition
from proxy.settings import Detector, Settings

Record = dict[str, Any]
DepthOf = Callable[[str], QueueState | None]
"""What is known of a queue now; None if nothing is."""
SCHEMA_VERSION = 1
LAG_WAIT = 0.5
"""Seconds the log may take to tell its ends; then the lag of this interval is unknown."""


class Recorder:
    """Turns tallies, lags and verdicts into records."""

    def __init__(
        self,
        settings: Settings,
        *,
        write: Callable[[Mapping[str, Any]], None],
        wall: Callable[[], float],
        instance: str,
    ) -> None:
        self.class_tallies = {name: Tally() for name in settings.classes}
        self.route_tallies = {name: Tally() for name in settings.routes}
        self.lags: dict[str, int | None] = dict.fromkeys(settings.classes)
        """Events in the log not yet done with, by class, as last recorded; None if not known."""
        self.verdicts: dict[str, Verdict] = {}
        """The last one of each route that the statistics collector reports on."""
        self.budget_verdicts: dict[str, BudgetVerdict] = {}
        """The last one of each route under `class_budget`."""
        self._recorded_verdicts: dict[str, BudgetVerdict] = {}
        """... that was recorded."""
        self._settings = settings
        self._write = write
        self._wall = wall
        self._instance = instance
        self.confirmed = dict.fromkeys(settings.classes, 0)
        """Events confirmed since the start, by class, as last recorded."""
        self._dead_lettered = 0
        self._recorded_at = 0.0
        self._types_recorded_at = 0.0
        """On the loop's clock; what was counted since then is in no record yet."""

    # -- events -------------------------------------------------------------------------------------------------------

    def on_start(self, version: str) -> None:
        """Record what the reports need to know of this process."""
        layout = {"unit": "us", "lowest": LOWEST_US, "highest": HIGHEST_US, "digits": DIGITS}
        routes = {n: {"policy": r.policy, "queues": list(r.queues)} for n, r in self._settings.routes.items()}
        self._record("start", version=version, layout=layout, classes=list(self._settings.classes), routes=routes)

    def on_verdict(self, verdict: Verdict) -> None:
        """Record a verdict with what it was seen in, so that it can be replayed."""
        self.verdicts[verdict.route] = verdict
        seen, thresholds = verdict.statistics, self._settings.detector
        self._record(
            "verdict",
            route=verdict.route,
            congested=verdict.congested,
            cause=verdict.cause.value,
            p50_us=None if seen.p50 is None else int(seen.p50 * 1e6),
            errors=seen.errors,
            samples=seen.samples,
            **_thresholds(thresholds),
        )

    def on_budget_verdict(self, verdict: BudgetVerdict) -> None:
        """Record a verdict of a control tick when it says something new, and once per route interval."""
        before = self._recorded_verdicts.get(verdict.route)
        self.budget_verdicts[verdict.route] = verdict
        interval = self._settings.metric_log.route_interval
        said = (verdict.congested, verdict.cause, verdict.hot)
        is_new = before is None or said != (before.congested, before.cause, before.hot) or verdict.cuts
        if before is not None and not is_new and verdict.reading.at - before.reading.at < interval:
            return
        self._recorded_verdicts[verdict.route] = verdict
        seen, then = verdict.reading, before.reading if before is not None else None
        errors = seen.failed - (then.failed if then is not None else 0)
        confirmed = sum(seen.confirmed) - (sum(then.confirmed) if then is not None else 0)
        classes = list(self._settings.classes)
        self._record(
            "verdict",
            route=verdict.route,
            congested=verdict.congested,
            cause=verdict.cause.value,
            p50_us=None,
            errors=errors,
            samples=confirmed + errors,
            cuts=verdict.cuts,
            hot=[name for name, is_hot in zip(classes, verdict.hot, strict=True) if is_hot],
            queue_delay_us=None if verdict.delay is None or isinf(verdict.delay) else int(verdict.delay * 1e6),
            drain_rate=round(verdict.drain.rate, 3),
            depth=None if verdict.delay is None else seen.ready,
            rates={name: round(rate, 3) for name, rate in zip(classes, verdict.rates, strict=True) if not isinf(rate)},
        )

    def on_incident(self, name: str, **fields: object) -> None:
        """Record something that an operator should find again."""
        self._record("incident", name=name, **fields)

    def on_stop(self, unresolved: int) -> None:
        """Record the end of the process with its totals."""
        confirmed = sum(self.confirmed.values())
        self._record("stop", confirmed=confirmed, dead_lettered=self._dead_lettered, unresolved=unresolved)

    # -- intervals ----------------------------------------------------------------------------------------------------

    async def run(self, log: EventLog, assignment: Assignment, lanes: Mapping[str, Lane], depth_of: DepthOf) -> None:
        """Record routes, classes and types at their intervals until cancelled."""
        intervals = self._settings.metric_log
        clock = asyncio.get_running_loop().time
        self._recorded_at = self._types_recorded_at = clock()
        while True:
            await asyncio.sleep(max(0.0, self._recorded_at + intervals.route_interval - clock()))
            lags = await self._ask_lags(log, assignment)
            self._record_routes_and_classes(assignment, lanes, depth_of, lags)
            if clock() - self._types_recorded_at >= intervals.type_interval:
                self._record_types(assignment, lags)

    async def finish(self, log: EventLog, assignment: Assignment, lanes: Mapping[str, Lane], depth_of: DepthOf) -> None:
        """Record what was counted since the last records, and what is left in the log; `run` must have begun."""
        lags = await self._ask_lags(log, assignment)
        self._record_routes_and_classes(assignment, lanes, depth_of, lags)
        self._record_types(assignment, lags)

    def _record_routes_and_classes(
        self,
        assignment: Assignment,
        lanes: Mapping[str, Lane],
        depth_of: DepthOf,
        lags: Mapping[Partition, int] | None,
    ) -> None:
        now = asyncio.get_running_loop().time()
        interval, self._recorded_at = now - self._recorded_at, now
        self._record_routes(interval, lanes, depth_of)
        self._record_classes(interval, assignment, lags)

    def _record_routes(self, interval: float, lanes: Mapping[str, Lane], depth_of: DepthOf) -> None:
        for name, route in self._settings.routes.items():
            tally = self.route_tallies[name].take()
            states = {queue: depth_of(queue) for queue in route.queues}
            known = [state for state in states.values() if state is not None]
            self._record(
                "route",
                interval_s=round(interval, 6),
                route=name,
                state=lanes[name].state.value,
                in_flight=lanes[name].in_flight,
                confirmed=tally.confirmed,
                nacked=tally.nacked,
                unknown=tally.unknown,
                undeliverable=tally.undeliverable,
                depth=sum(state.ready for state in known) if known else None,
                consumers=sum(state.consumers for state in known) if known else None,
                queues={queue: None if state is None else state.ready for queue, state in states.items()},
                publish_us=_buckets(tally.publish_us),
            )

    def _record_classes(self, interval: float, assignment: Assignment, lags: Mapping[Partition, int] | None) -> None:
        by_class: dict[str, list[Listener]] = {name: [] for name in self._settings.classes}
        for one in assignment.listeners.values():
            by_class[one.event_type.priority].append(one)
        for name, listeners in by_class.items():
            sizes = [size for one in listeners if (size := one.throttle.batch_size) is not None]
            tally = self.class_tallies[name].take()
            self.lags[name] = _lag(listeners, lags)
            self.confirmed[name] += tally.confirmed
            self._dead_lettered += sum(tally.dead_lettered.values())
            self._record(
                "class",
                interval_s=round(interval, 6),
                **{"class": name},
                **_counts(tally),
                **self._waiting(listeners),
                lag=self.lags[name],
                batch_size={"sum": sum(sizes), "min": min(sizes), "max": max(sizes), "types": len(sizes)}
                if sizes
                else None,
            )

    def _record_types(self, assignment: Assignment, lags: Mapping[Partition, int] | None) -> None:
        """Record every event type to which something happened."""
        now = asyncio.get_running_loop().time()
        interval, self._types_recorded_at = now - self._types_recorded_at, now
        for listener in assignment.listeners.values():
            if listener.tallies.own.is_empty and not listener.inbox.events:
                continue
            tally = listener.tallies.own.take()
            kind = listener.event_type
            self._record(
                "type",
                interval_s=round(interval, 6),
                type=kind.name,
                topic=kind.topic,
                route=kind.route,
                **{"class": kind.priority},
                **_counts(tally),
                **self._waiting([listener]),
                lag=_lag([listener], lags),
                batch_size=listener.throttle.batch_size,
                paused=listener.inbox.is_paused,
            )

    async def _ask_lags(self, log: EventLog, assignment: Assignment) -> Mapping[Partition, int] | None:
        done = {flow.partition: flow.watermark.position for flow in assignment.flows()}
        if not done:
            return {}
        try:
            async with asyncio.timeout(LAG_WAIT):
                return await log.lags(done)
        except (TimeoutError, LogError):
            return None

    def _waiting(self, listeners: list[Listener]) -> Record:
        busy = [one.inbox for one in listeners if one.inbox.events]
        oldest = [stamp for inbox in busy if (stamp := inbox.oldest_ms()) is not None]
        age = max(0.0, self._wall() - min(oldest) / 1000) if oldest else None
        return {
            "waiting": sum(inbox.events for inbox in busy),
            "lag_age_s": None if age is None else round(age, 3),
        }

    def _record(self, kind: str, **fields: object) -> None:
        common = {"v": SCHEMA_VERSION, "kind": kind, "at_ms": int(self._wall() * 1000), "instance": self._instance}
        self._write(common | fields)


def _counts(tally: Tally) -> Record:
    return {
        "received": tally.received,
        "received_bytes": tally.received_bytes,
        "confirmed": tally.confirmed,
        "confirmed_bytes": tally.confirmed_bytes,
        "nacked": tally.nacked,
        "unknown": tally.unknown,
        "dead_lettered": dict(tally.dead_lettered),
        "resent": tally.resent,
        "resent_unknown": tally.resent_unknown,
        "overtaken": tally.overtaken,
        "publish_us": _buckets(tally.publish_us),
        "bridge_us": _buckets(tally.bridge_us),
    }


def _buckets(counts: Mapping[int, int]) -> dict[str, int]:
    return {str(index): counts[index] for index in sorted(counts)}


def _lag(listeners: list[Listener], lags: Mapping[Partition, int] | None) -> int | None:
    if lags is None:
        return None
    total = 0
    for one in listeners:
        for partition in one.inbox.flows:
            lag = lags.get(partition)
            if lag is None:
                return None
            total += lag
    return total


def _thresholds(detector: Detector) -> Record:
    return {
        "threshold_us": int(detector.publish_latency_p50 * 1e6),
        "threshold_errors": detector.publish_errors,
        "min_samples": detector.min_samples,
    }
