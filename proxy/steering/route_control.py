"""The control tick of every route under `policy: class_budget`: read, judge, set the rates, tell whoever listens."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from proxy.bridge.broker import Lane, LaneState
from proxy.congestion.class_budget import BudgetVerdict, RouteBudget
from proxy.congestion.collector import RouteStatistics
from proxy.congestion.reading import Inflow, QueueReading, Reading
from proxy.steering.depths import Depths
from proxy.steering.gate import Gate
from proxy.steering.insights import Insights
from proxy.steering.other_replicas import Others

POLLS_KNOWN = 3
"""A depth older than so many polls is no longer known."""
BURST = 0.05
"""Seconds of a rate that may be saved up, or overdrawn by the classes above."""

EARLY = 0.02
"""Seconds by which a poll may come early and still end the tick: polls are as irregular as the broker's answers."""

Observer = Callable[[BudgetVerdict], None]


class Judge(Protocol):
    """What a route under `class_budget` is judged by: its `RouteBudget`, unless somebody puts another in its place."""

    @property
    def is_one_by_one(self) -> bool:
        """Whether the queues are told apart."""
        ...

    @property
    def hears_trips(self) -> bool:
        """Whether it is of use to know how long batches are on their way."""
        ...

    @property
    def rates(self) -> Sequence[float]:
        """Cost a second by level; infinite: no limit."""
        ...

    def judge(self, reading: Reading) -> BudgetVerdict:
        """Return the verdict on what was just seen."""
        ...


Judging = Callable[[str, RouteBudget], Judge]
"""What judges a route of a name, given its budget."""


def by_budget(_: str, budget: RouteBudget) -> Judge:
    """Judge every route by its budget."""
    return budget


@dataclass(slots=True, kw_only=True)
class ControlledRoute:
    """One route: what is read, what judges it, what is set."""

    budget: Judge
    gate: Gate
    lane: Lane
    statistics: RouteStatistics
    queues: Collection[str]
    others: Callable[[str | None], Others | None]
    """What other replicas confirm on this route, or into one of its queues; None: not known."""
    dearest: Sequence[float]
    """What the dearest event of each class costs, the most important class first."""
    lowest_part: Callable[[], float] = lambda: 1.0
    """What part of the lowest class's share is this replica's."""
    observers: Sequence[Observer] = ()

    def __post_init__(self) -> None:
        """Begin with the rates that the law begins with."""
        self.statistics.trips.is_heard = self.budget.hears_trips
        self._set_rates(self.budget.rates, None)

    def turn(self, now: float, depths: Depths, insights: Insights | None) -> None:
        """Read once, judge, set."""
        verdict = self.budget.judge(self._read(now, depths, insights))
        for level, tiers in enumerate(verdict.counts):
            self.gate.set_counts(level, tiers)
        self._set_rates(verdict.rates, verdict.allowance)
        self.gate.set_trickle(verdict.trickle * self.lowest_part(), max(1.0, self.gate.refill(len(verdict.rates) - 1)))
        for observer in self.observers:
            observer(verdict)

    def _set_rates(self, rates: Sequence[float], allowance: float | None) -> None:
        for level, rate in enumerate(rates):
            if level == 0 and rate == inf and allowance != inf:
                if allowance is not None:
                    self.gate.set_stock(0, allowance)
                continue
            burst = inf if rate == inf else max(self.dearest[level], rate * BURST)
            self.gate.set_rate(level, rate, burst, debt=max(burst, *self.dearest))

    def _read(self, now: float, depths: Depths, insights: Insights | None) -> Reading:
        confirmed = tuple(self.statistics.confirmed)
        names = tuple(queue for queue in self.queues if depths.steers(queue))
        others = self.others(None)
        return Reading(
            at=now,
            queues=tuple(_seen(queue, depths, insights) for queue in names),
            names=names,
            inflows=tuple(self._inflow(queue) for queue in names) if self.budget.is_one_by_one else (),
            confirmed=confirmed,
            failed=self.statistics.failed,
            others=None if others is None else others.rate,
            charged=tuple(self.statistics.charged),
            others_cost=1.0 if others is None else others.cost,
            can_publish=self.lane.state is LaneState.OPEN,
            oldest=self.lane.oldest(now),
            latency=self.statistics.take_shortest(),
            in_flight=self.lane.in_flight,
            trips=self.statistics.trips.take(),
            waited=tuple(self.gate.has_waited(rank) for rank in range(len(confirmed))),
            unacked_growing=insights is not None and any(insights.is_growing(queue) for queue in self.queues),
        )

    def _inflow(self, queue: str) -> Inflow:
        ways = [(counts, way.cost) for way, counts in self.statistics.by_way.items() if queue in way.queues]
        classes = range(len(self.statistics.confirmed))
        others = self.others(queue)
        return Inflow(
            confirmed=tuple(sum(counts[rank] or 0 for counts, _ in ways) for rank in classes),
            feeds=tuple(any(counts[rank] is not None for counts, _ in ways) for rank in classes),
            others=None if others is None else others.rate,
            charged=tuple(sum((counts[rank] or 0) * cost for counts, cost in ways) for rank in classes),
            others_cost=1.0 if others is None else others.cost,
        )


class RouteControl:
    """Turns all routes right after the depths were read; every tick or two if they are not."""

    def __init__(
        self, routes: Mapping[str, ControlledRoute], depths: Depths, insights: Insights | None, tick: float
    ) -> None:
        self._routes = routes
        self._depths = depths
        self._insights = insights
        self._tick = tick
        self._polled = asyncio.Event()

    async def run(self) -> None:
        """Turn until cancelled."""
        clock = asyncio.get_running_loop().time
        self._depths.on_polled = self._polled.set
        has_queues = any(route.queues for route in self._routes.values())
        turned = clock()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(turned + (2 * self._tick if has_queues else self._tick)):
                    await self._polled_since(turned)
            turned = clock()
            for route in self._routes.values():
                route.turn(clock(), self._depths, self._insights)

    async def _polled_since(self, turned: float) -> None:
        """Wait for a poll that ends a tick; the depth may be asked more often than routes are judged."""
        while True:
            self._polled.clear()
            await self._polled.wait()
            if asyncio.get_running_loop().time() >= turned + self._tick - EARLY:
                return


def _seen(queue: str, depths: Depths, insights: Insights | None) -> QueueReading | None:
    seen = depths.seen(queue)
    if seen is None or seen.state is None:
        return None
    insight = None if insights is None else insights.of(queue)
    return QueueReading(
        seen.state.ready,
        seen.state.consumers,
        seen.at,
        POLLS_KNOWN * seen.interval,
        unacked=None if insight is None else insight.unacked,
        unacked_growing=insights is not None and bool(insights.is_growing(queue)),
    )
