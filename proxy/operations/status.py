"""What the admin server tells of a running process: readiness and the metrics of now."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from proxy.bridge.assignment import Assignment
from proxy.bridge.awaited import awaited
from proxy.bridge.broker import Lane, LaneState
from proxy.bridge.catalog import Catalog
from proxy.bridge.listener import Listener
from proxy.bridge.standstill import Standstill
from proxy.congestion.group import Tether
from proxy.operations.steps import PIECE
from proxy.recording.recorder import Recorder
from proxy.steering.demand import Demand
from proxy.steering.depths import Depths
from proxy.steering.gate import Gate

Family = CounterMetricFamily | GaugeMetricFamily
TYPES = 1_000
"""Event types with series of their own in /metrics: a pattern may match any number of topics."""
_NAMED = 20
"""Partitions that stand still and are named with the reason; of all the number is told."""


class Status:
    """Reads the parts; changes nothing."""

    def __init__(
        self,
        assignment: Assignment,
        lanes: Mapping[str, Lane],
        depths: Depths,
        recorder: Recorder,
        standstill: Standstill,
        demands: Mapping[str, Demand],
        catalog: Catalog,
        *,
        caps: Mapping[str, Gate],
    ) -> None:
        self._assignment = assignment
        self._lanes = lanes
        self._depths = depths
        self._recorder = recorder
        self._standstill = standstill
        self._demands = demands
        self._catalog = catalog
        self._caps = caps

    def ready(self) -> dict[str, Any]:
        """Return the body of /ready; `ready` is true when every route is connected and some event type is read.

        Read is a type that has not stopped, and whose topic exists and may be read; that this replica owns none of its
        partitions is no fault, unless the group refuses it or is silent (`outside_group` says why). A partition that
        stands still for a reason of the log's or the group's is named with it; only if all do, `ready` is false. Types
        that are not read are named whether or not others are; until the log has answered for the first time
        (`log_reached`) those are all. Queues of routes that do not exist, or may not be read, are named, 20 at most:
        what leads to them alone comes back.
        """
        listeners = self._assignment.listeners.values()
        is_connected = all(lane.state in {LaneState.OPEN, LaneState.BLOCKED} for lane in self._lanes.values())
        topics = self._catalog.topics
        is_reading = any(one.event_type.topic in topics and not one.is_stopped for one in listeners)
        partitions = len(self._assignment.flows())
        standing, outside = self._standstill.standing(), self._standstill.outside()
        return {
            "ready": is_connected and is_reading and outside is None and not 0 < partitions <= len(standing),
            "routes": {name: lane.state.value for name, lane in self._lanes.items()},
            "event_types": len(listeners),
            "log_reached": self._catalog.has_looked,
            "unread_types": self._catalog.unread,
            "outside_group": outside,
            "partitions": partitions,
            "standing_partitions": len(standing),
            "standing": {str(at): standing[at].why for at in sorted(standing)[:_NAMED]},
            "stopped_types": [one.event_type.name for one in listeners if one.is_stopped],
            "waiting_types": {
                one.event_type.name: f"{one.dead_letters.outage.destination} takes no dead letters: "
                f"{one.dead_letters.outage.why}"
                for one in listeners
                if one.dead_letters.is_stuck
            },
            "missing_queues": self._depths.missing()[:_NAMED],
        }

    def families(self) -> Iterable[Family | None]:
        """Yield the metrics of /metrics, and None wherever the loop may go on meanwhile; asked inside the loop."""
        yield GaugeMetricFamily("tidegate_tasks", "Tasks of the event loop.", value=len(asyncio.all_tasks()))
        yield GaugeMetricFamily(
            "tidegate_memory_blocks", "Blocks of memory that Python holds.", value=sys.getallocatedblocks()
        )
        yield from self._per_route()
        yield self._per_cap()
        yield self._verdicts()
        yield from self._budgets()
        yield from self._judged_queues()
        yield self._per_queue()
        yield from self._per_class()
        yield from self._per_type()
        yield self._stalls()
        yield from self._scaling()

    def _per_route(self) -> Iterable[Family]:
        in_flight = GaugeMetricFamily("tidegate_in_flight_events", "Written, outcome open.", labels=["route"])
        window = GaugeMetricFamily("tidegate_window_events", "That may be in flight.", labels=["route"])
        for name, lane in self._lanes.items():
            in_flight.add_metric([name], lane.in_flight)
            window.add_metric([name], lane.window)
        yield in_flight
        yield window

    def _per_cap(self) -> Family:
        excess = CounterMetricFamily(
            "tidegate_cap_excess", "Beyond cap and burst, as the cap counts.", labels=["route"]
        )
        for name, gate in self._caps.items():
            excess.add_metric([name], gate.forgiven)
        return excess

    def _verdicts(self) -> Family:
        congested = GaugeMetricFamily("tidegate_congested", "Last verdict: 1 congested.", labels=["route", "cause"])
        for name, verdict in self._recorder.verdicts.last.items():
            congested.add_metric([name, verdict.cause.value], float(bool(verdict.congested)))
        for name, told in self._recorder.verdicts.last_of_budgets.items():
            congested.add_metric([name, told.cause.value], float(bool(told.congested)))
        return congested

    def _budgets(self) -> Iterable[Family]:
        rates = GaugeMetricFamily(
            "tidegate_rate_limit_events", "Per second, class and above.", labels=["route", "class"]
        )
        delays = GaugeMetricFamily("tidegate_queue_delay_seconds", "Depth over drain rate.", labels=["route"])
        drains = GaugeMetricFamily("tidegate_drain_rate_events", "Taken by consumers, per second.", labels=["route"])
        costs = GaugeMetricFamily("tidegate_queue_cost", "Of what waits in its queues.", labels=["route"])
        for name, told in self._recorder.verdicts.last_of_budgets.items():
            if not told.is_even and told.delay is not None:
                costs.add_metric([name], told.waiting)
            for priority, rate in zip(self._recorder.lags, told.rates, strict=True):
                rates.add_metric([name, priority], rate)
            drains.add_metric([name], told.drain.rate)
            if told.delay is not None:
                delays.add_metric([name], told.delay)
        yield rates
        yield delays
        yield drains
        yield costs

    def _judged_queues(self) -> Iterable[Family]:
        labels = ["route", "queue"]
        delays = GaugeMetricFamily("tidegate_judged_queue_delay_seconds", "Of a queue judged by itself.", labels=labels)
        drains = GaugeMetricFamily("tidegate_judged_queue_drain_rate_events", "Per second.", labels=labels)
        unacked = GaugeMetricFamily("tidegate_queue_unacked_messages", "At its consumers.", labels=labels)
        rules = GaugeMetricFamily("tidegate_ruling_queue", "1: the verdict rests on it.", labels=labels)
        states = GaugeMetricFamily("tidegate_queue_counts", "0: absent or resting.", labels=labels)
        for name, told in self._recorder.verdicts.last_of_budgets.items():
            for view in told.queues:
                if not view.name:
                    continue
                place = [name, view.name]
                if view.delay is not None:
                    delays.add_metric(place, view.delay)
                if view.estimate is not None:
                    drains.add_metric(place, view.estimate.rate)
                if view.unacked is not None:
                    unacked.add_metric(place, view.unacked)
                rules.add_metric(place, float(view.name == told.ruled_by))
                states.add_metric(place, float(told.states[view.name] in {Tether.ACTIVE, Tether.LINGER}))
        yield from (delays, drains, unacked, rules, states)

    def _scaling(self) -> Iterable[Family]:
        wanted = GaugeMetricFamily("tidegate_wanted_consumers", "Of all queues of the route, or of the one named.")
        lags = GaugeMetricFamily("tidegate_group_lag_events", "Of all replicas.", labels=["route", "class"])
        demands = GaugeMetricFamily("tidegate_demand_events", "Into the log, per second.", labels=["route", "class"])
        ends = GaugeMetricFamily(
            "tidegate_work_off_seconds", "Until the class's backlog is done.", labels=["route", "class"]
        )
        for name, demand in self._demands.items():
            told = [({"route": name}, demand)]
            told += [({"route": name, "queue": queue}, of_queue) for queue, of_queue in demand.queues.items()]
            for labels, one in told:
                if one.wanted.consumers is not None:
                    wanted.add_sample("tidegate_wanted_consumers", labels, one.wanted.consumers)
            for priority, backlog in demand.backlogs.items():
                lags.add_metric([name, priority], backlog.lag)
                demands.add_metric([name, priority], backlog.demand)
            for priority, seconds in demand.work_off.items():
                ends.add_metric([name, priority], seconds)
        yield from (wanted, lags, demands, ends)

    def _stalls(self) -> Family:
        stalls = GaugeMetricFamily("tidegate_standing_partitions", "Not read though wanted.", labels=["cause"])
        for cause, count in Counter(standing.cause for standing in self._standstill.standing().values()).items():
            stalls.add_metric([cause], count)
        return stalls

    def _per_queue(self) -> Family:
        ready = GaugeMetricFamily("tidegate_queue_ready_messages", "Waiting in a watched queue.", labels=["queue"])
        for queue, state in self._depths.known().items():
            ready.add_metric([queue], state.ready)
        return ready

    def _per_class(self) -> Iterable[Family]:
        lag = GaugeMetricFamily("tidegate_lag_events", "Events of the log not yet done with.", labels=["class"])
        for name, count in self._recorder.lags.items():
            if count is not None:
                lag.add_metric([name], count)
        yield lag
        confirmed = CounterMetricFamily("tidegate_confirmed_events", "Since the start.", labels=["class"])
        for name, count in self._recorder.confirmed.items():
            confirmed.add_metric([name], count)
        yield confirmed
        ahead = CounterMetricFamily(
            "tidegate_ahead_of_clock_events", "Of these, before their own timestamp.", labels=["class"]
        )
        for name, count in self._recorder.ahead_of_clock.items():
            ahead.add_metric([name], count)
        yield ahead
        old = CounterMetricFamily("tidegate_old_events", "Of these, behind what is live.", labels=["class"])
        for name, count in self._recorder.old.items():
            old.add_metric([name], count)
        yield old
        behind = Counter[str]()
        for one in self._assignment.listeners.values():
            behind[one.event_type.priority] += one.inbox.catching_up
        catching_up = GaugeMetricFamily("tidegate_catching_up_partitions", "Old events wait.", labels=["class"])
        for name, partitions in behind.items():
            catching_up.add_metric([name], partitions)
        yield catching_up

    def _per_type(self) -> Iterable[Family | None]:
        sizes = GaugeMetricFamily("tidegate_batch_size_events", "Released per tick.", labels=["type"])
        waiting = GaugeMetricFamily("tidegate_inbox_events", "Waiting in the inbox.", labels=["type"])
        paused = GaugeMetricFamily("tidegate_paused", "1 while the log is not read for the type.", labels=["type"])
        awaits = GaugeMetricFamily(
            "tidegate_awaits", "1 while events of the type wait for this.", labels=["type", "for"]
        )
        now = asyncio.get_running_loop().time()
        told = self._told_types()
        for count, one in enumerate(told, 1):
            if not count % PIECE:
                yield None
            if why := awaited(one, now):
                awaits.add_metric([one.event_type.name, why], 1.0)
            waiting.add_metric([one.event_type.name], one.inbox.events)
            paused.add_metric([one.event_type.name], float(one.inbox.is_paused))
            if one.throttle.batch_size is not None:
                sizes.add_metric([one.event_type.name], one.throttle.batch_size)
        yield sizes
        yield waiting
        yield paused
        yield awaits
        untold = len(self._assignment.listeners) - len(told)
        yield GaugeMetricFamily("tidegate_untold_types", "That /metrics leaves out; /state has all.", value=untold)

    def _told_types(self) -> list[Listener]:
        """Return those that have series of their own: of too many the stopped ones and those with events first."""
        listeners = list(self._assignment.listeners.values())
        if len(listeners) > TYPES:
            listeners.sort(key=lambda one: not (one.is_stopped or one.inbox.events))
        return listeners[:TYPES]
