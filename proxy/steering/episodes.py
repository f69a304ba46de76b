"""When a class is held back on a route, from beginning to end, told twice: to whoever sends too much of it.

A class is held back by a verdict that says that its level is over its threshold while its events wait for their turn,
or that nothing may be sent at all. Steady control says so every few ticks: stretches less than `JOINED` seconds apart
are one. It is told once more waits than passes in a second: who only shares a full queue does not send too much.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from proxy.congestion.budget_verdict import BudgetVerdict

JOINED = 3.0
"""Seconds between two verdicts that hold a class back, as in `reports.episodes`."""


class Episode(NamedTuple):
    """What is told of it, when it begins and when it ends."""

    route: str
    priority: str
    """The class."""
    number: int
    """Counted by this process, from 1."""
    is_over: bool
    cause: str
    """Of the last verdict that held it back."""
    seconds: float
    """Since it began."""
    passed: float
    """Events of the class a second that this replica got confirmed on the route since it began: what can go."""


@dataclass(slots=True)
class _Held:
    since: float
    last: float
    cause: str
    confirmed: int
    """When it began."""
    number: int = 0
    """0: not told yet."""


class Episodes:
    """Observes the verdicts of class budgets. `after` and `quiet` are in seconds, see `NoticeSettings`.

    `backlog` returns how many events of a class are not done with; None: not known.
    """

    def __init__(
        self,
        classes: Sequence[str],
        after: float,
        quiet: float,
        backlog: Callable[[str], int | None],
        observer: Callable[[Episode], None],
    ) -> None:
        self._classes = classes
        self._backlog = backlog
        self._after = after
        self._quiet = quiet
        self._observer = observer
        self._held: dict[tuple[str, int], _Held] = {}
        """By route and rank."""
        self._count = 0

    def on_verdict(self, verdict: BudgetVerdict) -> None:
        """Take a verdict."""
        now = verdict.reading.at
        stops = bool(verdict.congested) and not any(verdict.hot)
        for rank, is_hot in enumerate(verdict.hot):
            place = verdict.route, rank
            held = self._held.get(place)
            if (is_hot and verdict.reading.waited[rank]) or stops:
                if held is None:
                    confirmed = verdict.reading.confirmed[rank]
                    held = self._held[place] = _Held(now, now, verdict.cause.value, confirmed)
                held.last, held.cause = now, verdict.cause.value
                if not held.number and now - held.since >= self._after and self._is_behind(verdict, rank, held):
                    self._count += 1
                    held.number = self._count
                    self._tell(verdict, rank, held, is_over=False)
            elif held is not None and now - held.last > (self._quiet if held.number else JOINED):
                del self._held[place]
                if held.number:
                    self._tell(verdict, rank, held, is_over=True)

    def forget(self, routes: Collection[str] | None = None) -> None:
        """End what lasts on routes that are judged otherwise from now on, or are gone; on all, if none are named."""
        for (route, rank), held in list(self._held.items()):
            if routes is None or route in routes:
                del self._held[route, rank]
                if held.number:
                    seconds = held.last - held.since
                    end = Episode(
                        route,
                        self._classes[rank],
                        held.number,
                        is_over=True,
                        cause=held.cause,
                        seconds=seconds,
                        passed=0.0,
                    )
                    self._observer(end)

    def _is_behind(self, verdict: BudgetVerdict, rank: int, held: _Held) -> bool:
        backlog = self._backlog(self._classes[rank])
        return backlog is None or backlog > _passed(verdict, rank, held)

    def _tell(self, verdict: BudgetVerdict, rank: int, held: _Held, *, is_over: bool) -> None:
        seconds, passed = verdict.reading.at - held.since, _passed(verdict, rank, held)
        self._observer(Episode(verdict.route, self._classes[rank], held.number, is_over, held.cause, seconds, passed))


def _passed(verdict: BudgetVerdict, rank: int, held: _Held) -> float:
    """Return the events of a class a second that were confirmed since it was held back."""
    seconds = verdict.reading.at - held.since
    return max(0.0, (verdict.reading.confirmed[rank] - held.confirmed) / seconds) if seconds else 0.0
