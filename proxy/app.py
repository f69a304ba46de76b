"""The only wiring: makes every part from the settings, starts and stops them in order."""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from proxy import __version__, config
from proxy.bridge.assignment import Assignment
from proxy.bridge.broker import DepthMonitor, Lane, Lanes, QueueInsights
from proxy.bridge.catalog import Catalog
from proxy.bridge.committer import Committer
from proxy.bridge.event_log import EventLog
from proxy.bridge.observer import UNOBSERVED, Observer
from proxy.bridge.pump import Pump
from proxy.bridge.returns import Returns
from proxy.bridge.shared import Shared
from proxy.bridge.standstill import Standstill
from proxy.listeners import Listeners
from proxy.model import Stance
from proxy.operations.board import Board
from proxy.operations.interventions import Interventions
from proxy.operations.liveness import Liveness
from proxy.operations.moves import Moves
from proxy.operations.notices import Destination, Notices
from proxy.operations.retention import retention_record
from proxy.operations.shadow import ShadowNews
from proxy.operations.state import State
from proxy.operations.status import Status
from proxy.operations.totals import Totals
from proxy.operations.troubles import Troubles
from proxy.operations.view import View
from proxy.recording.recorder import Recorder
from proxy.recording.writer import Writer
from proxy.route_lanes import RouteLanes
from proxy.settings import EventType, Policy, Settings
from proxy.steering.caps import Caps
from proxy.steering.episodes import Episodes
from proxy.steering.retention_guard import RetentionGuard
from proxy.steering.route_control import Judging, by_budget
from proxy.steering.steering import Steering
from proxy.tasks import Tasks, either

_say = structlog.get_logger("tidegate")

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
        returns: Returns | None = None,
        observer: Observer = UNOBSERVED,
        judging: Judging = by_budget,
        board: Board | None = None,
        notices: Destination | None = None,
        maker: Lanes | None = None,
    ) -> None:
        """Make one; without a board nobody can say how event types are to go on, without `notices` nobody is told.

        Without `returns` what came back has no queue; without a `maker` of lanes no other route can come.
        """
        self._settings = settings
        self.in_force = in_force = config.InForce(settings)
        self._log = log
        self._dead_letter_lane = dead_letter_lane
        self._stop = asyncio.Event()
        self._is_moving = False
        """The log was reached, and the works of the control run."""
        self._tasks = Tasks()
        self._route_lanes = RouteLanes(lanes, maker, self._tasks)
        self.lanes = lanes = self._route_lanes.of
        instance = instance or f"{socket.gethostname()}-{os.getpid()}-{int(wall())}"
        self.totals = Totals(settings, write)
        self.recorder = Recorder(settings, write=self.totals.write, wall=wall, instance=instance, place_of=log.place)
        account = self.recorder.books
        self._returns = returns or Returns()
        around = Shared.made(settings, log, dead_letter_lane, account, self._returns, wall=wall, observer=observer)
        self.lease, self.budget = around.lease, around.budget
        grace = min(settings.limits.drain_deadline, self.lease.term)
        self.assignment = Assignment(self.lease, around.settled, grace, account, log.place)
        self.notices: Notices | None = None
        episodes: Episodes | None = None
        if notices is not None:
            plan = settings.notices
            classes, backlog = list(settings.classes), self.recorder.lags.get
            self.notices = Notices(notices, backlog, group=settings.log.group, instance=instance, wall=wall)
            episodes = Episodes(classes, plan.after, plan.quiet, backlog, self.notices.put)
        self.steering = Steering(
            in_force,
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
            episodes=episodes,
        )
        record = Writer(self.totals.write, wall, instance).write
        self.retention = RetentionGuard(
            settings, log, self.assignment.listeners.values, lambda near: record(retention_record(near)), wall
        )
        self._shadows = ShadowNews(self.steering.policies.shadows, record, settings.metric_log.type_interval)
        self._pump = Pump(log, self.assignment)
        interval = settings.limits.commit_interval
        self._committer = Committer(log, self.assignment, self.lease, around.stake, interval, account)
        self._caps = Caps(
            settings,
            log,
            self.assignment.listeners.values,
            lambda: (flow.partition for flow in self.assignment.flows()),
        )
        self.interventions = (
            Interventions(
                board,
                self.assignment.listeners.values,
                log.member,
                record=record,
                wall=wall,
                instance=instance,
                moves=Moves(board, log.move, self.assignment.listeners.keys, log.member, wall=wall, instance=instance),
                caps=self._caps,
                steer=self._steer,
            )
            if board is not None
            else None
        )
        self._listeners = Listeners(
            in_force,
            lanes,
            self.steering,
            self._caps,
            self.recorder,
            self.assignment,
            around,
            stance=self._stance,
            leave_lanes=self._route_lanes.leave,
            spawn=self._tasks.spawn,
            retire=self._tasks.retire,
        )
        self._catalog = Catalog(
            log,
            lambda: {kind.topic: kind.name for kind in in_force.settings.event_types.values()},
            in_force.event_type,
            self._listeners.open,
            self._listeners.close,
            settings.log.topic_check_interval,
        )
        self.look_soon = self._catalog.look_soon
        depths, demands = self.steering.depths, self.steering.wanted.last
        caps, catalog = self.steering.policies.caps, self._catalog
        standstill = Standstill(log, self.assignment, self.lease, lambda: self._committer.refusal)
        self.status = Status(self.assignment, lanes, depths, self.recorder, standstill, demands, catalog, caps=caps)
        self.liveness = Liveness(self.assignment, settings.limits.confirm_deadline, self._ended)
        self.state = State(
            in_force,
            self.assignment,
            lanes,
            dead_letter_lane,
            depths,
            self.totals,
            self.retention,
            wall=wall,
            instance=instance,
        )
        self.view = View(
            settings,
            self.assignment,
            self.state,
            self.totals,
            lambda: [] if self.interventions is None else self.interventions.effective,
            Troubles(self._catalog, standstill, self.retention, in_force),
            wall=wall,
            instance=instance,
        )

    def stop(self) -> None:
        """Ask `run` to end in order: stop polling, await what is sent, commit what is confirmed."""
        self._stop.set()

    def go_by(self, settings: Settings) -> None:
        """Go by other settings from now on, as far as they can change; once it is to stop, it stops as it is."""
        if not self._stop.is_set():
            self._go_on(self.in_force.put(settings))

    def _steer(self, policies: Mapping[str, Policy]) -> None:
        """Hold routes back by other policies than the settings say, as a person wants it."""
        self._go_on(self.in_force.steer(policies))

    def _go_on(self, before: Settings) -> None:
        settings = self.in_force.settings
        self._route_lanes.go_by(settings.routes)
        steered = self.steering.go_by(before)
        for part in (self.recorder, self.totals, self.retention, self.view):
            part.go_by(settings)
        self._listeners.steer(steered.routes)
        if changed := self._listeners.look_anew():
            self._log.renew(changed)
        self._listeners.leave_lanes()
        if self._is_moving:
            self._tasks.keep(self.steering.works(), steered.anew)
        self._catalog.look_soon()

    async def run(self) -> None:
        """Move events until `stop` is called. Raises what no task could handle."""
        self.recorder.on_start(__version__)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks.group = tasks
                try:
                    await self._move_events()
                finally:  # whatever ends it: no listener begins any more
                    self._stop.set()
                    self.assignment.close()
                    self.steering.finish()
                self._tasks.cancel()
        finally:
            await self._leave_log()

    async def _move_events(self) -> None:
        self._route_lanes.begin()
        self._tasks.spawn(self._dead_letter_lane.run(), "lane dead letters")
        self._tasks.spawn(self._returns.run(), "returns")
        self._tasks.spawn(self.steering.depths.run(), "depths")
        starting = self._tasks.spawn(self._start_log(), "log start")
        await either(starting, self._stop)
        if starting.done() and not self._stop.is_set():
            pump = self._tasks.spawn(self._pump.run(), "pump")
            self._tasks.spawn(self._catalog.run(), "catalog")
            if self.interventions is not None:
                self._tasks.spawn(self.interventions.run(), "interventions")
            self._tasks.spawn(self._committer.run(), "committer")
            self._tasks.keep(self.steering.works())
            self._is_moving = True
            self._tasks.spawn(
                self.recorder.run(self._log, self.assignment, self.lanes, self.steering.depths.of), "recorder"
            )
            self._tasks.spawn(self._shadows.run(), "shadow records")
            self._tasks.spawn(self.retention.run(), "retention guard")
            self._tasks.spawn(self.liveness.run(), "liveness")
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
        unresolved = self.assignment.on_last_commit()
        await self.recorder.finish(self._log, self.assignment, self.lanes, self.steering.depths.of)
        self._shadows.finish()
        self.recorder.on_stop(unresolved)
        _say.info("stopped", drained=not unconfirmed, unconfirmed=unconfirmed, left_in_log=self.recorder.left_in_log)

    async def _leave_log(self) -> None:
        """Leave the group, whatever ended the run; one that is abandoned notices only after a session timeout."""
        try:
            async with asyncio.timeout(LOG_STOP_DEADLINE):
                await self._log.stop()
        except TimeoutError:
            _say.warning("log_left_unsaid", effect="the group notices after one session timeout")

    def _ended(self) -> list[str]:
        """Return the names of tasks that have ended although nobody has called for a stop."""
        return [] if self._stop.is_set() else self._tasks.ended()

    def _stance(self, event_type: EventType) -> Stance:
        return Stance() if self.interventions is None else self.interventions.stance(event_type)
