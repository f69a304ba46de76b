"""The control of one route under `policy: class_budget`: a reading in, a verdict with the rates of all levels out.

A level is a class with its queue-delay threshold; level k bounds what classes 0 to k send together (docs/design/0008)
into the queue that rules it (docs/design/0020).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import inf

from proxy.congestion.aimd import Aimd
from proxy.congestion.allowance import Allowance, Answer
from proxy.congestion.budget_verdict import BudgetVerdict
from proxy.congestion.drain_rate import Drain, DrainRate
from proxy.congestion.group import Group, Rules
from proxy.congestion.rate_law import Level, LevelRate, RateLaw
from proxy.congestion.reading import Reading
from proxy.congestion.receiver import FEWEST, Receiver, View
from proxy.congestion.signs import PATIENCE, Sign, Signs
from proxy.settings import ClassBudget

COOL = 0.5
"""Share of its threshold below which a level is cool: hysteresis."""
RISING = 0.25
"""Share of the lowest threshold that ends slow start."""
MOST_SURE = 0.5
"""Share of the drain rate that all classes below the first together are sure of at most."""


@dataclass(frozen=True, slots=True)
class _Ruling:
    """Who rules a level, and what its consumers are taken to take."""

    view: View
    drain: Drain


class RouteBudget:
    """One route. `thresholds` are the classes' queue delays in seconds, the most important class first.

    `dearest` is what the dearest event of the most important class costs, `law` makes the law of a level that begins at
    a rate; None: AIMD.
    """

    def __init__(
        self,
        route: str,
        thresholds: Sequence[float],
        settings: ClassBudget,
        rules: Rules | None = None,
        dearest: float = 1.0,
        law: Callable[[float], RateLaw] | None = None,
    ) -> None:
        self._route = route
        self._thresholds = tuple(thresholds)
        self._settings = settings
        self._rules = rules or Rules()
        begun = law or (lambda start: Aimd(settings, start=start))
        self._levels = [LevelRate(begun(settings.start_rate), is_top=False) for _ in thresholds]
        if len(thresholds) > 1:
            self._levels[0] = LevelRate(begun(inf), is_top=True)
        self._allowance = Allowance(settings.start_rate, dearest)
        self._answered_at: float | None = None
        """When the queues told of the last depth that was counted."""
        self._unseen: float | None = settings.start_rate
        """Cost a second of the top level while no depth is known; None: it is."""
        self._taken = 0.0
        """What the consumers took when the depth was last known, in cost a second."""
        self._top_sign = Sign.NONE
        """Why the top level was last hot."""
        self._top_hot_at = -inf
        self._signs = Signs(len(thresholds))
        self._confirms = DrainRate()
        """Without any depth, for while that is not known: what is confirmed."""
        self._unknown = Drain(0.0, 0.0, (0.0,) * len(thresholds), 0.0, is_capacity=False)
        self._receivers: dict[str | None, Receiver] = {}
        """By queue; None: all of them together."""
        self._group = Group(self._rules, self._thresholds[0])
        self._ruled_by: tuple[str, ...] = ("",) * len(thresholds)

    def go_by(
        self,
        thresholds: Sequence[float],
        settings: ClassBudget,
        rules: Rules,
        dearest: float,
        queues: Collection[str] | None,
        law: Callable[[float], RateLaw] | None,
    ) -> None:
        """Go by other settings from now on, and keep what was learnt of the consumers.

        A `law` begins at the rates that were found so far; None: the laws stay. `queues`: the route has these from now
        on; None: those that it had.
        """
        self._thresholds, self._settings, self._rules = tuple(thresholds), settings, rules
        self._group.go_by(rules, self._thresholds[0])
        self._allowance.go_by(settings.start_rate, dearest)
        if law is not None:
            for level in self._levels:
                level.change(law)
        for name in list(self._receivers):
            is_other = queues is not None and name not in queues
            if is_other or self.is_one_by_one is (name is None):
                del self._receivers[name]  # what all of them were seen to take together says nothing of others
            else:
                self._receivers[name].go_by(self._thresholds)

    @property
    def is_one_by_one(self) -> bool:
        """Whether the queues are told apart."""
        return self._rules.strategy != "sum"

    @property
    def hears_trips(self) -> bool:
        """Whether it is of use to the law how long batches are on their way."""
        return self._levels[0].hears_trips

    @property
    def rates(self) -> tuple[float, ...]:
        """Cost a second by level; one above may always send what one below may, whose threshold is tighter.

        Unless they are ruled by different queues.
        """
        rates: list[float] = []
        for rank in reversed(range(len(self._levels))):
            is_ruled_alike = bool(rates) and self._ruled_by[rank] == self._ruled_by[rank + 1]
            rates.append(max(self._levels[rank].rate, rates[-1] if is_ruled_alike else 0.0))
        if rates[-1] == inf and self._unseen is not None:
            rates[-1] = max([self._unseen, *rates[-2:-1]])
        return tuple(reversed(rates))

    def judge(self, reading: Reading) -> BudgetVerdict:
        """Return the verdict on what was just seen."""
        self._signs.look(reading)
        self._confirms.add(reading.at, 0, reading.everything.work)
        views = self._look(reading)
        counted = self._group.count(reading.at, views)
        rulings = [self._ruling(reading, counted.views, rank) for rank in range(len(self._levels))]
        self._ruled_by = tuple(ruling.view.name for ruling in rulings)
        sees = all(view.sees for view in counted.views)
        must_stop = self._signs.stop(reading)
        if must_stop is None and reading.queues and (not counted.is_connected or _are_left(counted.views)):
            # Whatever was learnt of consumers that are gone says nothing of those that will come.
            must_stop = Sign.NO_CONSUMERS
        cause, hot = self._hot(reading, counted.views, rulings)
        if must_stop is not None:
            cause, hot = must_stop, tuple(False for _ in hot)
        elif cause is Sign.NONE and not sees:
            cause = Sign.BLIND
        if hot[0]:
            self._top_sign, self._top_hot_at = cause, reading.at
        cuts = self._tick(reading, rulings, hot, must_stop=must_stop is not None)
        allowance = self._look_ahead(reading, rulings[0], is_held=hot[0] or must_stop is not None)
        congested = True if must_stop is not None or any(hot) else None if cause is Sign.BLIND else False
        lowest = rulings[-1]
        decisive = next((one for one, is_hot in zip(reversed(rulings), reversed(hot), strict=True) if is_hot), lowest)
        is_apart = None not in self._receivers
        return BudgetVerdict(
            route=self._route,
            congested=congested,
            cause=cause,
            hot=hot,
            rates=self.rates,
            allowance=allowance,
            counts=tuple(ruling.view.counted_with(rank) for rank, ruling in enumerate(rulings)),
            trickles=(0.0,) * len(rulings) if must_stop is not None else self._trickles(rulings),
            delay=decisive.view.delay,
            drain=decisive.drain,
            ruled_by=decisive.view.name if is_apart else None,
            waiting=sum(view.waiting for view in views),
            queues=views,
            states=counted.states if is_apart else {},
            cuts=cuts,
            reading=reading,
        )

    def _trickles(self, rulings: Sequence[_Ruling]) -> tuple[float, ...]:
        """Return what each class below the first is sure of; of one class alone, that one."""
        below = rulings[1:] or rulings
        share = min(self._settings.lowest_share, MOST_SURE / len(below))
        return (0.0,) * (len(rulings) - len(below)) + tuple(share * one.drain.rate for one in below)

    # -- signs --------------------------------------------------------------------------------------------------------

    def _look(self, reading: Reading) -> tuple[View, ...]:
        """Return what every queue shows; all of them together where nobody tells them apart."""
        places = range(len(reading.queues))
        if not self.is_one_by_one or not places:
            together = self._receivers.setdefault(None, Receiver("", self._thresholds))
            return (together.look(reading.at, reading.queues, reading.everything),)
        self._receivers.pop(None, None)
        views = []
        for place in places:
            name = reading.name(place)
            receiver = self._receivers.get(name)
            if receiver is None:
                receiver = self._receivers[name] = Receiver(name, self._thresholds)
            views.append(receiver.look(reading.at, [reading.queues[place]], reading.inflow(place)))
        return tuple(views)

    def _ruling(self, reading: Reading, views: Sequence[View], rank: int) -> _Ruling:
        view = self._group.ruling(views, rank)
        if view.is_known:
            return _Ruling(view, view.estimate or self._unknown)
        return _Ruling(view, self._confirms.estimate(reading.everything.others_work) or self._unknown)

    def _hot(
        self, reading: Reading, views: Sequence[View], rulings: Sequence[_Ruling]
    ) -> tuple[Sign, tuple[bool, ...]]:
        hot = tuple(ruling.view.is_over(rank) for rank, ruling in enumerate(rulings))
        if any(hot):
            return Sign.DEPTH, hot
        if any(view.unacked_growing for view in views) or (reading.unacked_growing and not self.is_one_by_one):
            stuck = [view for view in views if view.unacked_growing] or list(views)
            return Sign.UNACKED, tuple(any(view.feeds[rank] for view in stuck) for rank in range(len(rulings)))
        estimate = self._confirms.estimate(reading.everything.others_work)
        return self._signs.suspicion(reading.at, (estimate or self._unknown).own)

    def _look_ahead(self, reading: Reading, ruling: _Ruling, *, is_held: bool) -> float | None:
        """Return the cost that the top level may admit from now on; None: what it was told last stands."""
        if not reading.queues:
            self._unseen = None
            return inf
        view, drain = ruling.view, ruling.drain
        if is_held or not view.is_known:
            self._allowance.reset()
        if not view.is_known:
            self._unseen = max(self._settings.start_rate, self._taken)
            return None
        self._unseen, self._taken = None, drain.rate
        at = max(queue.at for queue in reading.queues if queue is not None)
        if at == self._answered_at:
            return None
        self._answered_at = at
        return self._allowance.on_answer(
            Answer(
                at=at,
                has_queue=view.ready >= FEWEST,
                waiting=view.waiting,
                threshold=self._thresholds[0],
                drain=drain.rate,
                is_used=reading.waited[0],
                sees=view.sees,
                bound=self._bound(reading, view),
            )
        )

    def _bound(self, reading: Reading, view: View) -> float:
        """Return to how many events a second may be grown while consumers that take all at once would not be seen.

        What the management API tells of them comes 10 s too late to spare them anything.
        """
        receiver = self._receivers.get(view.name, self._receivers.get(None))
        has_seen_queue = receiver is not None and receiver.has_seen_queue
        return inf if has_seen_queue or not reading.queues else self._settings.unseen_rate

    # -- rates --------------------------------------------------------------------------------------------------------

    def _tick(self, reading: Reading, rulings: Sequence[_Ruling], hot: tuple[bool, ...], *, must_stop: bool) -> int:
        is_over = self._top_sign is Sign.DEPTH or reading.at - self._top_hot_at >= PATIENCE
        cuts = 0
        for rank, (own, ruling) in enumerate(zip(self._levels, rulings, strict=True)):
            if reading.trips and not must_stop:
                own.on_trips(reading.at, reading.trips)
            view, drain = ruling.view, ruling.drain
            threshold, delay = view.limits[rank], view.delay
            is_long = delay is not None and delay > RISING * self._thresholds[-1] and view.ready >= FEWEST
            cuts += own.on_tick(
                Level(
                    now=reading.at,
                    must_stop=must_stop,
                    is_hot=hot[rank],
                    is_falling=drain.slope < 0,
                    is_cool=delay is not None and delay < COOL * threshold,
                    is_rising=is_long and drain.slope > 0,
                    empty_for=view.empty_for,
                    empty_since_last=view.empty_since_last,
                    excess=inf if view.is_left else max(0.0, (delay or 0.0) - threshold),
                    target=view.share * drain.rate,
                    own=sum(drain.own[: rank + 1]),
                    drain=drain.rate,
                    is_used=reading.waited[rank],
                    sees=view.sees,
                    bound=self._bound(reading, view),
                    held=view.held,
                    has_allowance=bool(reading.queues) and is_over,
                )
            )
        return cuts


def _are_left(views: Sequence[View]) -> bool:
    """Return whether messages wait and nobody is there to take any."""
    return any(view.is_left for view in views) and all(view.is_left or not view.consumers for view in views)
