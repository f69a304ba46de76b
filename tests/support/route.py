"""A route under `class_budget` with everything around it scripted: queues, consumers, a lane, types that send."""

import asyncio
from collections.abc import Iterator, Mapping
from math import inf
from typing import Self

from proxy.bridge.broker import LaneState, QueueKind, QueueState
from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.collector import RouteStatistics
from proxy.congestion.divider import Divider
from proxy.settings import ClassBudget
from proxy.steering.budgeted import BudgetedThrottle, Tiers
from proxy.steering.depths import Depths
from proxy.steering.gate import Gate
from proxy.steering.other_replicas import Others
from proxy.steering.route_control import ControlledRoute, RouteControl
from tests.support.bridge_fakes import ScriptedMonitor

THRESHOLDS = (0.5, 0.2, 0.08)
"""Seconds, of P1, P2, P3."""
STEP = 0.005
"""Seconds between two looks of the consumers and of a lane that can't send."""


class ScriptedRoute:
    """One queue taken from at `capacity` a second; what a throttle admits is confirmed 1 ms later."""

    def __init__(self, name: str = "r", *, capacity: float = 300.0, has_queue: bool = True) -> None:
        self.capacity = capacity
        self.depth = 0.0
        self.consumers = 1
        self.least_seen = 0
        """The monitor sees so many messages at least, for as long as this stands."""
        self.lies = 0
        """So many of the monitor's answers in a row say 0 and 0; then comes a true one."""
        self.told = 0
        """Answers so far."""
        self.is_stream = False
        self.bound = inf
        """Events beyond it are nacked."""
        self.state = LaneState.OPEN
        self.in_flight = 0
        self.window = 200
        self.others: float | None = 0.0
        self.admitted = [0, 0, 0]
        """Events by class since the start."""
        self.nacked = 0
        self.verdicts: list[BudgetVerdict] = []
        self.queue = f"q-{name}"
        self.statistics = RouteStatistics(name, 3)
        now = asyncio.get_running_loop().time()
        self.gate = Gate(Divider(tiers=3, pools=3, now=now))
        self.controlled = ControlledRoute(
            budget=RouteBudget(name, THRESHOLDS, ClassBudget()),
            gate=self.gate,
            lane=self,
            statistics=self.statistics,
            queues=(self.queue,) if has_queue else (),
            others=lambda _: None if self.others is None else Others(self.others),
            dearest=(1.0, 1.0, 1.0),
            observers=[self.verdicts.append],
        )

    @property
    def last(self) -> BudgetVerdict:
        return self.verdicts[-1]

    def oldest(self, now: float) -> float:
        del now
        return 0.0

    async def consume(self) -> None:
        """Take from the queue for ever, at its capacity."""
        while True:
            await asyncio.sleep(STEP)
            self.depth = max(0.0, self.depth - self.capacity * STEP)

    async def send(self, rank: int, want: int = 100, pause: float = 0.0) -> None:
        """Be a type of this class that always has `want` waiting, or as many every `pause` seconds."""
        throttle = BudgetedThrottle(self.gate, Tiers(rank, 3))
        while True:
            await asyncio.sleep(pause)
            granted = await throttle.admit(want, size=100.0, again=False)
            while self.state is not LaneState.OPEN:  # noqa: ASYNC110 - told by nobody
                await asyncio.sleep(STEP)
            free = int(max(0.0, min(granted, self.bound - self.depth)))
            throttle.settle(granted, granted * 100)
            await asyncio.sleep(0.001)
            self.depth += free
            self.admitted[rank] += granted
            self.nacked += granted - free
            if free:
                self.statistics.on_confirmed(rank, free, 0.001)
            if granted > free:
                self.statistics.on_errors(granted - free)


class Rig:
    """Routes and their control; `async with` runs them."""

    def __init__(self, *routes: ScriptedRoute, tick: float = 0.05, poll: float = 0.05, may_rest: bool = True) -> None:
        self.routes = routes
        queues = [route.queue for route in routes if route.controlled.queues]
        self.monitor = ScriptedMonitor(_States(routes))
        self.depths = Depths(self.monitor, queues, poll)
        controlled = {one.statistics._route: one.controlled for one in routes}
        control = RouteControl(controlled, self.depths, None, tick, may_rest=may_rest)
        self._tasks = [asyncio.create_task(work) for work in (control.run(), self.depths.run())]
        self._tasks += [asyncio.create_task(route.consume()) for route in routes]

    def send(self, route: ScriptedRoute, rank: int, want: int = 100, pause: float = 0.0) -> None:
        self._tasks.append(asyncio.create_task(route.send(rank, want, pause)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(result, Exception):
                raise result


class _States(Mapping[str, QueueState | None]):
    def __init__(self, routes: tuple[ScriptedRoute, ...]) -> None:
        self._by_queue = {route.queue: route for route in routes}

    def __getitem__(self, queue: str) -> QueueState:
        route = self._by_queue[queue]
        route.told += 1
        if route.is_stream:
            return QueueState(route.admitted[0] + 1_000_000, 0, QueueKind.STREAM)
        if route.told % (route.lies + 1):
            return QueueState(0, 0)
        return QueueState(max(int(route.depth), route.least_seen), route.consumers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_queue)

    def __len__(self) -> int:
        return len(self._by_queue)
