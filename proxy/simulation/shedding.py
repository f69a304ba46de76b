"""A route judged by the rule of a published load shedder, for comparison in `tidegate simulate` and nowhere else.

Tidegate drops nothing: what a shedder rejects stays in the log and asks again. How requests, priorities and the queue
are translated: docs/design/0028-rivals.md. What there is to see, and when a route must stop, is still `RouteBudget`'s.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.class_budget import RouteBudget
from proxy.congestion.reading import Reading
from proxy.congestion.signs import Sign
from proxy.simulation import cohorts

STOPS = frozenset({Sign.BLOCKED, Sign.UNCONFIRMED, Sign.NO_CONSUMERS})
"""Whatever the rule says, nothing goes: it could not be sent, or nobody would take it."""


@dataclass(frozen=True, slots=True)
class Look:
    """What happened on a route since the look before. A request is an event of cost 1."""

    seconds: float
    """Since then."""
    admitted: tuple[float, ...]
    """Requests of this replica that the broker confirmed, by class, the most important first."""
    rejected: tuple[float, ...]
    """Requests of this replica that had to stay in the log, by class."""
    inflow: float
    """Requests of all replicas that came into the queues."""
    could: float
    """Requests that the consumers could have taken."""
    waiting: float | None
    """Requests in the queues now; None: not known."""
    delay: float | None
    """Seconds that one would wait there; None: not known."""


class Window:
    """Looks taken together."""

    def __init__(self, classes: int) -> None:
        self.seconds = 0.0
        self.admitted = [0.0] * classes
        self.rejected = [0.0] * classes
        self.asked = [0.0] * classes
        """Admitted and rejected, by class."""
        self.inflow = 0.0
        self.could = 0.0
        self.waiting: float | None = None
        """In the queues at the end; None: not known."""
        self._delays: list[float] = []

    def add(self, look: Look) -> None:
        """Take a look in."""
        self.seconds += look.seconds
        for rank, (admitted, rejected) in enumerate(zip(look.admitted, look.rejected, strict=True)):
            self.admitted[rank] += admitted
            self.rejected[rank] += rejected
            self.asked[rank] += admitted + rejected
        self.inflow += look.inflow
        self.could += look.could
        self.waiting = look.waiting
        if look.delay is not None:
            self._delays.append(look.delay)

    def rates(self, level: int) -> tuple[float, ...]:
        """Return what may pass of each class in a second at a level, infinite where all may; see `cohorts.rates`."""
        return cohorts.rates(level, self.asked, self.rejected, self.seconds)

    @property
    def delay(self) -> float | None:
        """Mean seconds that a request would have waited; None: not known."""
        return sum(self._delays) / len(self._delays) if self._delays else None


class Rule(Protocol):
    """Says how much of each class passes."""

    rates: tuple[float, ...]
    """Requests a second by class; infinite where all pass."""

    def on_look(self, look: Look) -> None:
        """Take a look in; now and then that ends a window and changes the rates."""
        ...

    def on_stop(self) -> None:
        """Begin the window anew: nothing may be sent now, and that says nothing of the load."""
        ...


class Shedder:
    """Judges a route in the place of its budget; each class has a rate of its own, and none counts another's."""

    hears_trips = False

    def __init__(self, budget: RouteBudget, rule: Rule) -> None:
        self._budget = budget
        self._rule = rule
        self._before: tuple[float, tuple[float, ...]] | None = None
        """When the last look was, and what had been charged by then."""

    @property
    def is_one_by_one(self) -> bool:
        """Whether the queues are told apart."""
        return self._budget.is_one_by_one

    @property
    def rates(self) -> tuple[float, ...]:
        """Cost a second by class."""
        return self._rule.rates

    def judge(self, reading: Reading) -> BudgetVerdict:
        """Return the verdict on what was just seen."""
        verdict = self._budget.judge(reading)
        look = self._look(reading, verdict)
        must_stop = verdict.cause in STOPS
        before = self._rule.rates
        if must_stop:
            self._rule.on_stop()
        elif look is not None:
            self._rule.on_look(look)
        rates = tuple(0.0 for _ in before) if must_stop else self._rule.rates
        ranks = range(len(rates))
        is_held = min(rates) < inf
        return replace(
            verdict,
            congested=True if is_held else None if verdict.cause is Sign.BLIND else False,
            cause=Sign.DEPTH if is_held and verdict.cause is Sign.NONE else verdict.cause,
            hot=tuple(rate < inf for rate in rates),
            rates=rates,
            allowance=inf,
            counts=tuple(tuple(one == rank for one in ranks) for rank in ranks),
            trickles=tuple(0.0 for _ in ranks),
            cuts=sum(now < then for now, then in zip(rates, before, strict=True)),
        )

    def _look(self, reading: Reading, verdict: BudgetVerdict) -> Look | None:
        charged = reading.everything.work
        before, self._before = self._before, (reading.at, tuple(charged))
        if before is None or reading.at <= before[0]:
            return None
        seconds = reading.at - before[0]
        admitted = tuple(now - then for now, then in zip(charged, before[1], strict=True))
        could = verdict.drain.rate * seconds
        is_known = bool(verdict.queues) and all(view.is_known for view in verdict.queues)
        return Look(
            seconds=seconds,
            admitted=admitted,
            # A backlog has no rate. As many of it ask again as the consumers could take: more are not told apart.
            rejected=tuple((could or 1.0) if waited else 0.0 for waited in reading.waited),
            inflow=sum(admitted) + reading.everything.others_work * seconds,
            could=could,
            waiting=verdict.waiting if is_known else None,
            delay=verdict.delay if is_known else None,
        )
