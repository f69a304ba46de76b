"""One replica: the production `App` beside its metric log, in a simulated process that can be stopped and killed."""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any

from proxy.app import App
from proxy.bridge.broker import DepthMonitor, Lane, Lanes, QueueFinder
from proxy.operations.board import Board
from proxy.publish_lane import PublishLane
from proxy.settings import Limits, Route, Settings
from proxy.simulation.virtual_time import PROCESS, StoppableLoop
from tests.histories.disk import MemoryMetricLog
from tests.histories.memory_broker import MemoryBroker
from tests.histories.plan import LETTERS, Plan
from tests.histories.replica_account import ReplicaAccount
from tests.histories.watched import WatchedBridge, WatchedLog, WatchedReturns
from tests.histories.watched_kafka import WatchedKafkaLog
from tests.histories.witness import Witness

STOP_DEADLINE = 15.0
"""Virtual seconds that an orderly stop may take; every wait in it has a bound of its own."""


class Replica:
    """Starts when it is made, inside the loop."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        log: WatchedLog | WatchedKafkaLog,
        broker: MemoryBroker,
        witness: Witness,
        wall: Callable[[], float],
        board: Board,
    ) -> None:
        self.name = name
        self.metrics = MemoryMetricLog(plan.settings.metric_log.model_copy(update={"folder": "."}), wall, name)
        self.log = log
        self.app: App | None = None
        """None until its process has run for the first time."""
        self.observer = WatchedBridge(name, witness)
        self.is_stopping = False
        self.crashed = False
        self.was_at_rest = False
        """It was asked to stop when all was done."""
        self._plan = plan
        self._broker = broker
        self._witness = witness
        self._wall = wall
        self._board = board
        witness.told[name] = ReplicaAccount()
        self._context = context = copy_context()
        context.run(PROCESS.set, name)
        self._types = dict(plan.settings.event_types)
        self._limits = plan.settings.limits
        self._parts: dict[str, dict[str, Any]] = {
            "routes": dict(plan.settings.routes),
            "classes": dict(plan.settings.classes),
        }
        self.task = asyncio.get_running_loop().create_task(self._live(), name=name, context=context)

    async def stop(self) -> None:
        """End it as SIGTERM does."""
        self.is_stopping = True
        self._witness.note(f"{self.name} is asked to stop")
        await asyncio.sleep(0)  # the process must have begun
        if self.app is not None:
            self.app.stop()
        _, late = await asyncio.wait([self.task], timeout=STOP_DEADLINE)
        if late:
            self._witness.accuse(f"{self.name} does not stop within {STOP_DEADLINE:g} s")
            await self.crash()
        self._witness.note(f"{self.name} has stopped")

    async def crash(self) -> None:
        """End it as SIGKILL does: first it can do nothing any more, then its tasks are cleared away."""
        self.crashed = self.is_stopping = True
        self._witness.told[self.name].is_dead = True
        self._witness.note(f"{self.name} crashes")
        self.metrics.disk.is_full = True
        self.log.cut_off()
        self._broker.sever(self.name)
        self.task.cancel()
        loop = asyncio.get_running_loop()
        if isinstance(loop, StoppableLoop):
            loop.resume_process(self.name)
        await self.log.sever()
        await asyncio.wait([self.task])

    def steer(self, parts: Mapping[str, Mapping[str, Any]]) -> None:
        """Put settings into force in which these members of routes and classes say something else."""
        if self.app is not None and not self.is_stopping:
            for key, members in parts.items():
                self._parts[key] |= members
            self.go_by({})

    def bound(self, limits: Limits) -> None:
        """Put settings into force with other limits."""
        self._limits = limits
        self.go_by({})

    def go_by(self, changes: Mapping[str, Mapping[str, Any] | None], *, without: str = "") -> None:
        """Put settings into force in which these types say something else, or are not there (None), and a route."""
        if self.app is None or self.is_stopping:
            return
        self._parts["routes"].pop(without, None)
        for name, change in changes.items():
            known = self._types.pop(name, None) or self._plan.settings.event_types[name]
            if change is not None:
                self._types[name] = known.model_copy(update=change)
        self._witness.note(f"{self.name} goes by other settings: {', '.join(changes)}")
        given = {key: getattr(self._plan.settings, key) for key in Settings.model_fields}  # a copy would know too much
        parts = {key: dict(members) for key, members in self._parts.items()}
        settings = Settings(**given | parts | {"event_types": dict(self._types), "limits": self._limits})
        self.observer.tokens.doubt(self.app.in_force.settings, settings)
        self._context.run(self.app.go_by, settings)

    async def _live(self) -> None:
        """Do what `proxy.process.serve` does."""
        maker, letters, monitor, finder = self._reach_broker()
        self.observer.tokens.doubt(self._plan.settings, self._plan.settings)
        self.app = App(
            self._plan.settings,
            self.log,
            maker.lanes(self._plan.settings.routes),
            letters,
            monitor,
            write=self._write,
            wall=self._wall,
            instance=self.name,
            returns=WatchedReturns(finder, self._witness, self.name),
            observer=self.observer,
            board=self._board,
            maker=maker,
        )
        if self.is_stopping:
            return
        try:
            async with asyncio.TaskGroup() as beside:
                writing = beside.create_task(self.metrics.run(), name="metric log")
                try:
                    await self.app.run()
                finally:
                    await self.metrics.close()
                    writing.cancel()
        except Exception as error:  # noqa: BLE001 -- whatever it is, it ends the history as a violation
            self._ended(error)

    def _reach_broker(self) -> tuple[Lanes, Lane, DepthMonitor, QueueFinder]:
        """Return who makes the lanes of the routes, that of the dead letters, the monitor, the finder."""
        settings, broker = self._plan.settings, self._broker
        kind, backoff = next(iter(settings.routes.values())), settings.broker.backoff
        letters = broker.lane(LETTERS, kind, settings.limits, backoff=backoff)
        return _MemoryLanes(broker, settings), letters, broker.monitor(), broker.finder()

    def _ended(self, error: Exception) -> None:
        """Judge what it ended with."""
        if not self.crashed:
            self._witness.accuse(f"{self.name} ends with {_causes(error)}")

    def _write(self, record: Mapping[str, Any]) -> None:
        self.metrics.write(record)
        if record["kind"] == "stop":
            self._witness.told[self.name].is_recorded = True


class _MemoryLanes:
    """See `Lanes`."""

    def __init__(self, broker: MemoryBroker, settings: Settings) -> None:
        self._broker = broker
        self._settings = settings
        self._made: dict[str, PublishLane] = {}

    def lanes(self, routes: Mapping[str, Route]) -> Mapping[str, PublishLane]:
        """See `Lanes`."""
        limits, backoff = self._settings.limits, self._settings.broker.backoff
        before, self._made = self._made, {}
        for name, route in routes.items():
            lane = before.get(name) or self._broker.lane(name, route, limits, backoff=backoff)
            lane.resize(route.most_in_flight, route.in_flight_bytes, adapts=route.adapts)
            self._made[name] = lane
        return self._made


def _causes(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_causes(one) for one in error.exceptions)
    return f"{type(error).__name__}: {error}"
