"""Writes what happened into the metric log: routes and classes often, event types seldom, verdicts as they come.

The records are those of docs/metric-log.md; every count is of the interval, so plain sums over any records are right.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any

from proxy import records
from proxy.bridge.assignment import Assignment
from proxy.bridge.broker import Lane, LaneState, QueueState
from proxy.bridge.event_log import EventLog
from proxy.bridge.listener import Listener
from proxy.congestion.scaling import Wanted
from proxy.errors import LogError
from proxy.model import Partition, Position
from proxy.recording import told_settings
from proxy.recording.books import Books
from proxy.recording.tally import Tallies, Tally
from proxy.recording.verdicts import Verdicts
from proxy.recording.waiting import AT_ONCE, Waiting, slices
from proxy.recording.writer import Writer
from proxy.records import BatchSizes, Buckets, ClassInterval, RouteInterval, TypeInterval
from proxy.settings import EventType, Settings

DepthOf = Callable[[str], QueueState | None]
"""What is known of a queue now; None if nothing is."""
LAG_WAIT = 0.5
"""Seconds the log may take to tell its ends; then the lag of this interval is unknown."""
LAG_PAUSE = 1.0
"""Seconds between two questions for the ends, however often there are records: each is about every partition."""


class Recorder:
    """Turns tallies, lags and verdicts into records."""

    def __init__(
        self,
        settings: Settings,
        *,
        write: Callable[[Mapping[str, Any]], None],
        wall: Callable[[], float],
        instance: str,
        place_of: Callable[[Position], int],
    ) -> None:
        self._writer = Writer(write, wall, instance)
        self.verdicts = Verdicts(settings, self._writer.write)
        self.books = Books(self._writer.write, place_of, settings.log.group)
        self._of_classes = {name: Tally() for name in settings.classes}
        self._of_routes = {name: Tally() for name in settings.routes}
        self._of_types: dict[str, Tally] = {}
        self.lags: dict[str, int | None] = dict.fromkeys(settings.classes)
        """Events in the log not yet done with, by class, as last recorded; None if not known."""
        self.confirmed = dict.fromkeys(settings.classes, 0)
        """Events confirmed since the start, by class, as last recorded."""
        self.ahead_of_clock = dict.fromkeys(settings.classes, 0)
        """Of these, before their own timestamp."""
        self.old = dict.fromkeys(settings.classes, 0)
        """Of these, those that went behind what is live."""
        self._settings = settings
        self._told: records.SettingsInForce | None = None
        """What records have told of the settings; None before the start."""
        self._left: dict[str, int] = {}
        """Lags of partitions that are nobody's now, by topic."""
        self._dead_lettered = 0
        self._recorded_at = 0.0
        self._types_recorded_at = 0.0
        """On the loop's clock; what was counted since then is in no record yet."""
        self._behind = set[str]()
        """Event types whose last record tells of a lag, or knows none: the next tells whether it is over."""

    def go_by(self, settings: Settings) -> None:
        """Record the routes of these settings from now on, and that they are in force if `start` would tell others."""
        self._settings = settings
        if self._told is not None and (told := told_settings.in_force(settings)) != self._told:
            self._told = told
            self._writer.write(told)
        self.verdicts.go_by(settings)
        for name in settings.routes:
            self._of_routes.setdefault(name, Tally())

    def counts(self, event_type: EventType) -> Tallies:
        """Return what an event type is to count into."""
        own = self._of_types.setdefault(event_type.name, Tally())  # a type that was changed counts on
        return Tallies(own, self._of_classes[event_type.priority], self._of_routes[event_type.route])

    @property
    def left_in_log(self) -> int | None:
        """Events in the log not yet done with, of all classes, as last recorded; None if not known."""
        known = [lag for lag in self.lags.values() if lag is not None]
        return sum(known) if len(known) == len(self.lags) else None

    # -- the process --------------------------------------------------------------------------------------------------

    def on_start(self, version: str) -> None:
        """Record what the reports need to know of this process."""
        self._writer.write(told_settings.at_start(self._settings, version))
        self._told = told_settings.in_force(self._settings)

    def on_stop(self, unresolved: int) -> None:
        """Record the end of the process with its totals."""
        confirmed = sum(self.confirmed.values())
        self._writer.write(records.Stop(confirmed=confirmed, dead_lettered=self._dead_lettered, unresolved=unresolved))

    def on_wanted(
        self,
        route: str,
        queue: str | None,
        wanted: Wanted,
        consumers: int | None,
        drain: float | None,
        demand: float | None,
    ) -> None:
        """Record that another number of consumers of a route, or of one of its queues, is wanted; rates per second."""
        if wanted.consumers is not None:
            self._writer.write(
                records.Scaling(
                    route=route,
                    queue=queue,
                    wanted=wanted.consumers,
                    consumers=consumers,
                    drain_rate=None if drain is None else round(drain, 3),
                    demand_rate=None if demand is None else round(demand, 3),
                    why=wanted.why,
                )
            )

    # -- intervals ----------------------------------------------------------------------------------------------------

    async def run(self, log: EventLog, assignment: Assignment, lanes: Mapping[str, Lane], depth_of: DepthOf) -> None:
        """Record routes, classes and types at their intervals until cancelled."""
        intervals = self._settings.metric_log
        clock = asyncio.get_running_loop().time
        self._recorded_at = self._types_recorded_at = clock()
        lags: Mapping[Partition, int] | None = None
        asked_at = -inf
        while True:
            await asyncio.sleep(max(0.0, self._recorded_at + intervals.route_interval - clock()))
            if clock() >= asked_at + LAG_PAUSE:
                asked_at, lags = clock(), await self._ask_lags(log, assignment)
            await self._record_routes_and_classes(assignment, lanes, depth_of, lags)
            if clock() - self._types_recorded_at >= intervals.type_interval:
                for _ in self._record_types(assignment, lags):
                    await asyncio.sleep(0)

    async def finish(self, log: EventLog, assignment: Assignment, lanes: Mapping[str, Lane], depth_of: DepthOf) -> None:
        """Record what was counted since the last records, and what is left in the log; `run` must have begun."""
        lags = await self._ask_lags(log, assignment)
        await self._record_routes_and_classes(assignment, lanes, depth_of, lags)
        deque(self._record_types(assignment, lags), maxlen=0)

    async def _record_routes_and_classes(
        self,
        assignment: Assignment,
        lanes: Mapping[str, Lane],
        depth_of: DepthOf,
        lags: Mapping[Partition, int] | None,
    ) -> None:
        """Look at the event types in steps, then take and write all counts in one: cancelled before, none is lost."""
        waiting = {name: Waiting(lags, self._left) for name in self._settings.classes}
        sizes: dict[str, list[float]] = {name: [] for name in self._settings.classes}
        steps = list(slices(assignment.listeners.values()))
        for some in steps:
            for one in some:
                waiting[one.event_type.priority].add(one)
                if (size := one.throttle.batch_size) is not None:
                    sizes[one.event_type.priority].append(size)
            if len(steps) > 1:
                await asyncio.sleep(0)
        now = asyncio.get_running_loop().time()
        interval, self._recorded_at = now - self._recorded_at, now
        self._record_routes(interval, lanes, depth_of)
        for name in self._settings.classes:
            self._record_class(name, interval, waiting[name], sizes[name])

    def _record_routes(self, interval: float, lanes: Mapping[str, Lane], depth_of: DepthOf) -> None:
        for name, counted in self._of_routes.items():
            route = self._settings.routes.get(name)
            if route is None and counted.is_empty:
                continue  # it is gone, and nothing came after its last record
            tally, lane = counted.take(), lanes.get(name)
            states = {queue: depth_of(queue) for queue in (() if route is None else route.queue_names)}
            known = [state for state in states.values() if state is not None]
            self._writer.write(
                RouteInterval(
                    interval_s=round(interval, 6),
                    route=name,
                    state=(LaneState.LOST if lane is None else lane.state).value,
                    in_flight=0 if lane is None else lane.in_flight,
                    confirmed=tally.confirmed,
                    nacked=tally.nacked,
                    unknown=tally.unknown,
                    undeliverable=tally.undeliverable,
                    depth=sum(state.ready for state in known) if known else None,
                    consumers=sum(state.consumers for state in known) if known else None,
                    queues={queue: None if state is None else state.ready for queue, state in states.items()},
                    publish_us=_buckets(tally.publish_us),
                )
            )

    def _record_class(self, name: str, interval: float, waiting: Waiting, sizes: list[float]) -> None:
        tally = self._of_classes[name].take()
        self.lags[name] = waiting.lag
        self.confirmed[name] += tally.confirmed
        self.ahead_of_clock[name] += tally.ahead_of_clock
        self.old[name] += tally.old
        self._dead_lettered += sum(tally.dead_lettered.values())
        self._writer.write(
            ClassInterval(
                interval_s=round(interval, 6),
                class_=name,
                **_counts(tally),
                **waiting.told(self._writer.wall()),
                batch_size=BatchSizes.of(sizes),
            )
        )

    def _record_types(self, assignment: Assignment, lags: Mapping[Partition, int] | None) -> Iterator[None]:
        """Record each event type to which something happened, then what was committed; yield now and then."""
        now = asyncio.get_running_loop().time()
        interval, self._types_recorded_at = now - self._types_recorded_at, now
        for count, listener in enumerate(list(assignment.listeners.values()), 1):
            if not count % AT_ONCE:
                yield
            self._record_type(listener, interval, lags)
        unwritten = sorted(self.books.unwritten)
        for at in range(0, len(unwritten), AT_ONCE):
            yield
            self.books.write(unwritten[at : at + AT_ONCE])

    def _record_type(self, listener: Listener, interval: float, lags: Mapping[Partition, int] | None) -> None:
        kind = listener.event_type
        own = self._of_types[kind.name]
        if own.is_empty and not listener.inbox.events and kind.name not in self._behind:
            return
        waiting = Waiting(lags, self._left)
        waiting.add(listener)
        if waiting.lag == 0:
            self._behind.discard(kind.name)
        else:
            self._behind.add(kind.name)
        self._writer.write(
            TypeInterval(
                interval_s=round(interval, 6),
                type=kind.name,
                topic=kind.topic,
                route=kind.route,
                class_=kind.priority,
                **_counts(own.take()),
                **waiting.told(self._writer.wall()),
                batch_size=listener.throttle.batch_size,
                paused=listener.inbox.is_paused,
            )
        )

    def on_left(self, listener: Listener) -> None:
        """Record what an event type has done since its last record: it is another one from now on, or none."""
        self._record_type(listener, asyncio.get_running_loop().time() - self._types_recorded_at, None)
        self._behind.discard(listener.event_type.name)

    async def _ask_lags(self, log: EventLog, assignment: Assignment) -> Mapping[Partition, int] | None:
        done = {flow.partition: flow.watermark.position for flow in assignment.flows()}
        try:
            async with asyncio.timeout(LAG_WAIT):
                lags = await log.lags(done)
        except (TimeoutError, LogError):
            return None
        self._left = {}
        for at, lag in lags.items():
            if at not in done:
                self._left[at.topic] = self._left.get(at.topic, 0) + lag
        return lags


def _counts(tally: Tally) -> dict[str, Any]:
    return {
        "received": tally.received,
        "received_bytes": tally.received_bytes,
        "confirmed": tally.confirmed,
        "confirmed_bytes": tally.confirmed_bytes,
        "nacked": tally.nacked,
        "unknown": tally.unknown,
        "dead_lettered": tally.dead_lettered,
        "resent": tally.resent,
        "resent_unknown": tally.resent_unknown,
        "uncommitted": tally.uncommitted,
        "overtaken": tally.overtaken,
        "ahead_of_clock": tally.ahead_of_clock,
        "old": tally.old,
        "publish_us": _buckets(tally.publish_us),
        "bridge_us": _buckets(tally.bridge_us),
    }


def _buckets(counts: Mapping[int, int]) -> Buckets:
    return Buckets({str(index): counts[index] for index in sorted(counts)})
