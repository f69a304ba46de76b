"""The only wiring: makes every part from the settings, starts and stops them in order."""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import structlog

from proxy import __version__, config
from proxy.bridge.assignment import Assignment
from proxy.bridge.broker import DepthMonitor, Lane, QueueInsights
from proxy.bridge.catalog import Catalog
from proxy.bridge.committer import Committer
from proxy.bridge.event_log import EventLog
from proxy.bridge.listener import Listener
from proxy.bridge.observer import UNOBSERVED, Observer
from proxy.bridge.pump import Pump
from proxy.bridge.shared import Shared
from proxy.operations.board import Board
from proxy.operations.interventions import Interventions
from proxy.operations.liveness import Liveness
from proxy.operations.state import State
from proxy.operations.status import Status
from proxy.operations.totals import Totals
from proxy.recording.recorder import Recorder
from proxy.recording.writer import Writer
from proxy.settings import EventType, Settings
from proxy.steering.route_control import Judging, by_budget
from proxy.steering.steering import Steering

_say = structlog.get_logger("tidegate")

_MAY_END = {"log start", "depths", "insights"}
"""Tasks that are through at some time, or have nothing to do; every other one lasts until the stop."""
LOG_STOP_DEADLINE = 5.0
"""Seconds that the poll under way may take to end, and the log to let this replica leave the group."""


class App:
    """One Tidegate process: parts, tasks, ordered start and stop."""

    def __init__(
        self,
        settings: Settings,
        log: EventLog,
        lanes: Mapping[str, Lane],
        dead_letter_lane: Lane,
        monitor: DepthMonitor,
        *,
        write: Callable[[Mapping[str, Any]], None],
        wall: Callable[[], float] = time.time,
        instance: str | None = None,
        insights: QueueInsights | None = None,
        observer: Observer = UNOBSERVED,
        judging: Judging = by_budget,
        board: Board | None = None,
    ) -> None:
        """Make one; without a board nobody can say how event types are to go on."""
        self._settings = settings
        self._log = log
        self.lanes = lanes
        self._dead_letter_lane = dead_letter_lane
        self._stop = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        self._spawned: list[asyncio.Task[None]] = []
        instance = instance or f"{socket.gethostname()}-{os.getpid()}-{int(wall())}"
        self.totals = Totals(settings, write)
        self.recorder = Recorder(settings, write=self.totals.write, wall=wall, instance=instance, place_of=log.place)
        account = self.recorder.books
        self._around = around = Shared.made(settings, log, dead_letter_lane, account, wall=wall, observer=observer)
        self.lease, self.budget = around.lease, around.budget
        grace = min(settings.limits.drain_deadline, self.lease.term)
        self.assignment = Assignment(self.lease, around.settled, grace, account)
        self.steering = Steering(
            settings,
            log,
            lanes,
            monitor,
            insights,
            topics=lambda: self.assignment.listeners,
            done=lambda: {flow.partition: flow.watermark.resolved for flow in self.assignment.flows()},
            verdicts=self.recorder.verdicts,
            on_wanted=self.recorder.on_wanted,
            wall=wall,
            judging=judging,
        )
        self._pump = Pump(log, self.assignment)
        interval = settings.limits.commit_interval
        self._committer = Committer(log, self.assignment, self.lease, around.stake, interval, account)
        self._catalog = Catalog(
            log,
            {event_type.topic: event_type.name for event_type in settings.event_types.values()},
            lambda topics: {topic: kind for topic in topics if (kind := config.event_type_for(settings, topic))},
            self._open_listener,
            settings.log.topic_check_interval,
        )
        self.interventions = (
            Interventions(
                board,
                self.assignment.listeners.values,
                log.member,
                record=Writer(self.totals.write, wall, instance).write,
                wall=wall,
                instance=instance,
            )
            if board is not None
            else None
        )
        depths, demands = self.steering.depths, self.steering.wanted.last
        self.status = Status(
            self.assignment,
            lanes,
            depths,
            self.recorder,
            log.standing,
            demands,
            self._catalog,
            caps=self.steering.policies.caps,
        )
        self.liveness = Liveness(self.assignment, lanes, settings.limits.confirm_deadline, self._ended)
        self.state = State(
            settings,
            self.assignment,
            lanes,
            dead_letter_lane,
            depths,
            self.totals,
            wall=wall,
            instance=instance,
        )

    def stop(self) -> None:
        """Ask `run` to end in order: stop polling, await what is sent, commit what is confirmed."""
        self._stop.set()

    async def run(self) -> None:
        """Move events until `stop` is called. Raises what no task could handle."""
        self.recorder.on_start(__version__)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                await self._move_events()
                for task in self._spawned:
                    task.cancel()
        finally:
            await self._leave_log()

    async def _move_events(self) -> None:
        for name, lane in self.lanes.items():
            self._spawn(lane.run(), f"lane {name}")
        self._spawn(self._dead_letter_lane.run(), "lane dead letters")
        self._spawn(self.steering.depths.run(), "depths")
        starting = self._spawn(self._start_log(), "log start")
        if await self._unless_stopped(starting):
            pump = self._spawn(self._pump.run(), "pump")
            self._spawn(self._catalog.run(), "catalog")
            if self.interventions is not None:
                self._spawn(self.interventions.run(), "interventions")
            self._spawn(self._committer.run(), "committer")
            for name, work in self.steering.works():
                self._spawn(work, name)
            self._spawn(self.recorder.run(self._log, self.assignment, self.lanes, self.steering.depths.of), "recorder")
            self._spawn(self.liveness.run(), "liveness")
            await self._stop.wait()
            await self._wind_down(pump)

    async def _start_log(self) -> None:
        await self._log.start(self.assignment)
        if self.interventions is not None:
            await self.interventions.begin()

    async def _wind_down(self, pump: asyncio.Task[None]) -> None:
        flows = self.assignment.flows()
        _say.info("stopping", open_events=sum(flow.out for flow in flows), effect="awaiting confirms, then committing")
        self._pump.stop()
        self.assignment.close()
        unconfirmed = await self.assignment.drain(flows, self._settings.limits.drain_deadline)
        await asyncio.wait([pump], timeout=LOG_STOP_DEADLINE)
        await self._committer.commit()
        marks = [flow.watermark for flow in self.assignment.flows()]
        unresolved = sum(mark.received - mark.resolved for mark in marks)
        uncommitted = sum(mark.resolved - mark.committed for mark in marks)
        await self.recorder.finish(self._log, self.assignment, self.lanes, self.steering.depths.of)
        self.recorder.on_stop(unresolved)
        if uncommitted:
            _say.warning("final_commit_failed", events=uncommitted, effect="duplicates")
        left = self.recorder.left_in_log
        _say.info("stopped", drained=not unconfirmed, unconfirmed=unconfirmed, left_in_log=left)

    async def _leave_log(self) -> None:
        """Leave the group, whatever ended the run; one that is abandoned notices only after a session timeout."""
        try:
            async with asyncio.timeout(LOG_STOP_DEADLINE):
                await self._log.stop()
        except TimeoutError:
            _say.warning("log_left_unsaid", effect="the group notices after one session timeout")

    async def _unless_stopped(self, starting: asyncio.Task[None]) -> bool:
        """Wait for the log's start or the stop, whichever comes first; return whether the log has started."""
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        return starting.done() and not self._stop.is_set()

    def _ended(self) -> list[str]:
        """Return the names of tasks that have ended although nobody has called for a stop."""
        if self._stop.is_set():
            return []
        return [task.get_name() for task in self._spawned if task.done() and task.get_name() not in _MAY_END]

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        assert self._tasks is not None
        task: asyncio.Task[None] = self._tasks.create_task(work, name=name)
        self._spawned.append(task)
        return task

    def _open_listener(self, event_type: EventType) -> None:
        settings = self._settings
        route = settings.routes[event_type.route]
        rank = settings.rank(event_type.priority)
        listener = Listener(
            event_type,
            rank,
            route,
            lane=self.lanes[event_type.route],
            throttle=self.steering.policies.throttle(event_type),
            catch_up=self.steering.policies.catch_up(event_type),
            statistics=self.steering.control.statistics[event_type.route],
            counts=self.recorder.counts(event_type),
            around=self._around,
        )
        if self.interventions is not None:
            listener.take(self.interventions.stance(event_type))
        self.assignment.listeners[event_type.topic] = listener
        self._spawn(listener.run(), f"listener {event_type.name}")
