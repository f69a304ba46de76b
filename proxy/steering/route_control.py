"""The control tick of every route under `policy: class_budget`: read, judge, set the rates, tell whoever listens."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Protocol

from proxy.bridge.alarm import Alarm
from proxy.bridge.broker import Lane, LaneState
from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.collector import RouteStatistics
from proxy.congestion.reading import Inflow, QueueReading, Reading
from proxy.congestion.signs import Sign
from proxy.steering.depths import Depths
from proxy.steering.gate import Gate
from proxy.steering.insights import Insights
from proxy.steering.other_replicas import Others
from proxy.steering.shadow import RouteShadow

POLLS_KNOWN = 3
"""A depth older than so many polls is no longer known."""
BURST = 0.05
"""Seconds of a rate that may be saved up, or overdrawn by the classes above."""

EARLY = 0.02
"""Seconds by which a poll may come early and still end the tick: polls are as irregular as the broker's answers."""

REST_LOOK = 0.5
"""Seconds between two looks at everything while nothing is sent and nothing waits. Larger: less CPU; what others do to
the queues meanwhile is known later."""
REST_AFTER = 1.0
"""Seconds for which nothing must have been sent and nothing have waited until then."""

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
    part: Callable[[int], float] = lambda _: 1.0
    """What part of what a class is sure of is this replica's."""
    shadow: RouteShadow | None = None
    """Where nothing is held back: what would be seen if it were."""
    observers: Sequence[Observer] = ()
    _last: BudgetVerdict | None = field(default=None, init=False)
    _taken: float = field(default=0.0, init=False)
    """Tokens that had been granted when it was looked at last."""

    def __post_init__(self) -> None:
        """Begin with the rates that the law begins with."""
        self.statistics.trips.hear(on=self.budget.hears_trips)
        self._set_rates(self.budget.rates, None)

    def go_by(self, queues: Collection[str], dearest: Sequence[float]) -> None:
        """Read these queues from now on, and set what the budget, or the gate, has become."""
        self.queues, self.dearest = queues, dearest
        self._last = None
        self.statistics.trips.hear(on=self.budget.hears_trips)
        self._set_rates(self.budget.rates, None)

    def turn(self, now: float, depths: Depths, insights: Insights | None) -> None:
        """Read once, judge, set."""
        verdict = self._last = self.budget.judge(self._read(now, depths, insights))
        for level, tiers in enumerate(verdict.counts):
            self.gate.set_counts(level, tiers)
        self._set_rates(verdict.rates, verdict.allowance)
        for rank, trickle in enumerate(verdict.trickles):
            self.gate.set_trickle(rank, trickle * self.part(rank), max(1.0, self.gate.refill(rank)))
        for observer in self.observers:
            observer(verdict)

    def pass_over(self, at: float) -> None:
        """Let the budget know that at this time nothing was otherwise than by the last turn, which found it at rest."""
        if self._last is None:
            return
        last = self._last.reading
        queues = tuple(None if queue is None else replace(queue, at=at) for queue in last.queues)
        waited = tuple(False for _ in last.waited)
        self.budget.judge(replace(last, at=at, queues=queues, latency=None, trips=(), waited=waited))

    def is_at_rest(self) -> bool:
        """Return whether nobody has asked for tokens since this was asked last, and by the last turn nothing waits.

        Every queue is known then, empty, and has consumers.
        """
        before, self._taken = self._taken, self.gate.taken
        if self._last is None or self._taken != before or self.gate.callers:
            return False
        reading, verdict = self._last.reading, self._last
        return (
            verdict.congested is False
            and verdict.cause is Sign.NONE
            and not reading.in_flight
            and all(queue is not None and not queue.ready and queue.consumers for queue in reading.queues)
        )

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
        reading = Reading(
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
        return reading if self.shadow is None else self.shadow.as_held(reading)

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
    """Turns all routes right after the depths were read; every tick or two if they are not.

    While every route is at rest the depths are read and the routes turned every `REST_LOOK` seconds only. Whoever asks
    for the first token has the depths read at once. Before the turn that follows, the budgets are told of the ticks
    that were left out: no law finds out that nobody looked, and none grows by it.
    """

    def __init__(
        self,
        routes: Mapping[str, ControlledRoute],
        depths: Depths,
        insights: Insights | None,
        tick: float,
        *,
        may_rest: bool = True,
    ) -> None:
        """Make it; `may_rest` is false where routes that it does not see send, too."""
        self._routes = routes
        self._depths = depths
        self._insights = insights
        self._tick = tick
        self._may_rest = may_rest and tick < REST_LOOK
        self._rests = False
        self._active_at = 0.0
        """When something was last sent, or waited."""
        self._turned = 0.0
        self._due = 0.0
        """When the routes are turned even if no poll comes."""
        self._news = Alarm()
        self._is_polled = False

    async def run(self) -> None:
        """Turn until cancelled."""
        clock = asyncio.get_running_loop().time
        self._depths.on_polled = self._on_polled
        self._patience = 2 if any(route.queues for route in self._routes.values()) else 1
        self._turned = self._active_at = clock()
        self._due = self._turned + self._patience * self._tick
        try:
            while True:
                rested = self._rests
                await self._until_due()
                turned, self._turned = self._turned, clock()
                for route in self._routes.values():
                    for at in self._left_out(turned) if rested else ():
                        route.pass_over(at)
                    route.turn(clock(), self._depths, self._insights)
                self._look()
        finally:
            self._wake()  # whoever controls them next finds them at full pace

    def _on_polled(self) -> None:
        self._is_polled = True
        self._news.ring()

    async def _until_due(self) -> None:
        """Wait for a poll that ends a tick; the depth may be asked more often than routes are judged."""
        clock = asyncio.get_running_loop().time
        while True:
            await self._news.until(self._due)
            polled, self._is_polled = self._is_polled, False
            if clock() >= self._due or (polled and clock() >= self._turned + self._tick - EARLY):
                return

    def _left_out(self, turned: float) -> list[float]:
        """Return the ticks since a turn; only the last one while the rest goes on, for nobody acts on the others."""
        ticks = int((self._turned - turned) / self._tick - 0.5)
        first = ticks if self._rests else 1
        return [self._turned - (ticks - number + 1) * self._tick for number in range(max(1, first), ticks + 1)]

    def _look(self) -> None:
        """Begin to rest, or go on with it, if all is at rest; see when the next turn is due."""
        are_at_rest = [route.is_at_rest() for route in self._routes.values()]
        if not all(are_at_rest) or not self._may_rest:
            self._active_at = self._turned
            self._wake()
        elif self._turned - self._active_at >= REST_AFTER:
            self._rests = True
            self._depths.ease(REST_LOOK)
            for route in self._routes.values():
                route.gate.on_asked = self._wake
        self._due = self._turned + self._patience * (REST_LOOK if self._rests else self._tick)

    def _wake(self) -> None:
        """Go on at full pace."""
        if self._rests:
            self._rests = False
            for route in self._routes.values():
                route.gate.on_asked = None
            self._depths.hurry()
            self._due = asyncio.get_running_loop().time() + self._patience * self._tick
            self._news.ring()


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
