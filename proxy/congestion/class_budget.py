"""The control of one route under `policy: class_budget`: a reading in, a verdict with the rates of all levels out.

A level is a class with its queue-delay threshold; level k bounds what classes 0 to k send together (docs/design/0008).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from proxy.congestion.allowance import Allowance, Answer
from proxy.congestion.baseline import Baseline
from proxy.congestion.drain_rate import FAST, Drain, DrainRate
from proxy.congestion.rate_law import Aimd, Level, RateLaw
from proxy.congestion.reading import Reading
from proxy.settings import ClassBudget

FEWEST = 4
"""Messages below which no queue is a sign of anything."""
COOL = 0.5
"""Share of its threshold below which a level is cool: hysteresis."""
RISING = 0.25
"""Share of the lowest threshold that ends slow start."""
SHORTEST_QUEUE = 0.5
"""Share of a threshold that is left of it when consumers have become slow."""
STEADY = 1.3
"""So many times below the best of late, the consumers' rate is as it was: chance makes that much."""
PEAK_FADING = 30.0
"""Seconds in which the best of late is halved."""
MOST_NACKS = 0.01
"""Share of the outcomes."""
OLDEST = 2.0
"""An event unconfirmed for so many seconds, and for twice the longest that ever came back, stops the route."""
LONGEST_SEEN = 10.0
"""What came back later than so many seconds is no measure of what is usual."""
PATIENCE = 0.5
"""Seconds until a sign that tells nothing of classes is held against the next class above."""


class Sign(StrEnum):
    """What a verdict rests on, the strongest first."""

    BLOCKED = "blocked"
    UNCONFIRMED = "unconfirmed"
    NO_CONSUMERS = "no_consumers"
    UNACKED = "unacked"
    DEPTH = "depth"
    NACKS = "nacks"
    LATENCY = "latency"
    BLIND = "blind"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class BudgetVerdict:
    """What every observer of a route is told: what was seen, what it means, what may be sent."""

    route: str
    congested: bool | None
    """None: not enough is known to say that it is not."""
    cause: Sign
    hot: tuple[bool, ...]
    """By level."""
    rates: tuple[float, ...]
    """Events a second by level; infinite: no limit."""
    allowance: float | None
    """Where the top level has no limit, the events it may admit until it is told anew; None: what it was told."""
    trickle: float
    """Events a second that the lowest class gets whatever comes above it."""
    delay: float | None
    """Queue delay in seconds, an estimate; None: not known."""
    drain: Drain
    cuts: int
    """Levels cut by this verdict."""
    reading: Reading


class RouteBudget:
    """One route. `thresholds` are the classes' queue delays in seconds, the most important class first."""

    def __init__(self, route: str, thresholds: Sequence[float], settings: ClassBudget) -> None:
        self._route = route
        self._thresholds = tuple(thresholds)
        self._settings = settings
        self._laws: list[RateLaw] = [
            Aimd(settings, is_unlimited=rank < len(thresholds) - 1 and rank == 0) for rank in range(len(thresholds))
        ]
        self._allowance = Allowance(settings.start_rate)
        self._answered_at: float | None = None
        """When the queues told of the last depth that was counted."""
        self._unseen: float | None = settings.start_rate
        """Events a second of the top level while no depth is known; None: it is."""
        self._limits = self._thresholds
        self._peak = 0.0
        self._peak_at = 0.0
        self._taken = 0.0
        """What the consumers took when the depth was last known, in events a second."""
        self._top_sign = Sign.NONE
        """Why the top level was last hot."""
        self._top_hot_at = -inf
        self._drain = DrainRate()
        self._confirms = DrainRate()
        """The same without any depth, for while that is not known: what is confirmed."""
        self._unknown = Drain(0.0, 0.0, (0.0,) * len(thresholds), 0.0, is_capacity=False)
        self._baseline = Baseline()
        self._outcomes: deque[tuple[float, int, int]] = deque()
        self._share = 0.0
        """Part of what all replicas sent that was this one's, when anything was."""
        self._oldest = 0.0
        self._longest = 0.0
        self._suspicious_since: float | None = None
        self._empty_since: float | None = None
        self._empty_till = 0.0
        """When the queues were last looked at and empty."""
        self._has_seen_queue = False

    @property
    def rates(self) -> tuple[float, ...]:
        """Events a second by level; one above may always send what one below may, whose threshold is tighter."""
        rates: list[float] = []
        for law in reversed(self._laws):
            rates.append(max(law.rate, rates[-1] if rates else 0.0))
        if rates[-1] == inf and self._unseen is not None:
            rates[-1] = max([self._unseen, *rates[-2:-1]])
        return tuple(reversed(rates))

    def judge(self, reading: Reading) -> BudgetVerdict:
        """Return the verdict on what was just seen."""
        knows_depth = self._look(reading)
        estimate = (self._drain if knows_depth else self._confirms).estimate(reading.others or 0.0)
        drain = estimate or self._unknown
        sees = knows_depth and estimate is not None and reading.others is not None
        delay = self._delay(reading, drain) if knows_depth and estimate is not None else None
        must_stop = self._must_stop(reading)
        self._limits = self._limits_at(reading.at, drain)
        cause, hot = self._hot(reading, delay, drain)
        if must_stop is None and cause is Sign.NO_CONSUMERS:
            must_stop = cause  # whatever was learnt of consumers that are gone says nothing of those that will come
        if must_stop is not None:
            cause, hot = must_stop, tuple(False for _ in hot)
        elif cause is Sign.NONE and not sees:
            cause = Sign.BLIND
        if hot[0]:
            self._top_sign, self._top_hot_at = cause, reading.at
        self._learn_share(drain)
        cuts = self._tick(reading, drain, delay, hot, sees=sees, must_stop=must_stop is not None)
        allowance = self._look_ahead(
            reading, drain, is_held=hot[0] or must_stop is not None, knows_depth=knows_depth, sees=sees
        )
        congested = True if must_stop is not None or any(hot) else None if cause is Sign.BLIND else False
        trickle = 0.0 if must_stop is not None else self._settings.lowest_share * drain.rate
        return BudgetVerdict(
            self._route, congested, cause, hot, self.rates, allowance, trickle, delay, drain, cuts, reading
        )

    # -- signs --------------------------------------------------------------------------------------------------------

    def _look(self, reading: Reading) -> bool:
        """Take the reading in; return whether the depth is known."""
        self._baseline.add(reading.at, reading.latency, reading.in_flight)
        self._outcomes.append((reading.at, sum(reading.confirmed), reading.failed))
        while len(self._outcomes) > 1 and self._outcomes[1][0] <= reading.at - FAST:
            self._outcomes.popleft()
        self._confirms.add(reading.at, 0, reading.confirmed)
        known = [queue for queue in reading.queues if queue is not None and reading.at - queue.at <= queue.fresh_for]
        if len(known) < len(reading.queues):
            return False
        at = max((queue.at for queue in known), default=reading.at)
        known_for = max((queue.fresh_for for queue in known), default=0.0)
        self._drain.add(at, sum(queue.ready for queue in known), reading.confirmed, known_for)
        return True

    def _delay(self, reading: Reading, drain: Drain) -> float:
        """Return depth over drain rate, and no more than the time since the queues were last seen empty."""
        if not reading.ready:
            return 0.0
        since_empty = inf if self._drain.empty_at is None else reading.at - self._drain.empty_at
        return min(since_empty, reading.ready / drain.rate if drain.rate else inf)

    def _limits_at(self, now: float, drain: Drain) -> tuple[float, ...]:
        """Return the thresholds as they are at this drain rate.

        What consumers hold is counted in messages: when they take half as fast it stands for twice as long, before
        everybody and unseen, and keeps them busy for twice as long. So the queue need be, and may be, half as long.
        """
        faded = self._peak * 0.5 ** ((now - self._peak_at) / PEAK_FADING)
        if drain.is_capacity:
            self._peak, self._peak_at = max(drain.rate, faded), now
        part = max(SHORTEST_QUEUE, min(1.0, STEADY * drain.rate / self._peak)) if self._peak else 1.0
        return (self._thresholds[0], *(threshold * part for threshold in self._thresholds[1:]))

    def _must_stop(self, reading: Reading) -> Sign | None:
        if not reading.can_publish:
            return Sign.BLOCKED
        if reading.oldest < self._oldest:
            self._longest = max(self._longest, min(self._oldest, LONGEST_SEEN))
        self._oldest = reading.oldest
        return Sign.UNCONFIRMED if reading.oldest > max(OLDEST, 2 * self._longest) else None

    def _hot(self, reading: Reading, delay: float | None, drain: Drain) -> tuple[Sign, tuple[bool, ...]]:
        everything = tuple(True for _ in self._thresholds)
        if delay is not None and reading.ready >= FEWEST:
            if not any(queue.consumers for queue in reading.queues if queue is not None and queue.ready):
                return Sign.NO_CONSUMERS, everything
            hot = tuple(delay > limit for limit in self._limits)
            if any(hot):
                return Sign.DEPTH, hot
        if reading.unacked_growing:
            return Sign.UNACKED, everything
        sign = Sign.NACKS if self._has_nacks() else Sign.LATENCY if self._baseline.is_slow else Sign.NONE
        return sign, self._lowest_first(reading.at, drain, is_suspicious=sign is not Sign.NONE)

    def _has_nacks(self) -> bool:
        (_, confirmed, nacked), (_, confirmed_now, nacked_now) = self._outcomes[0], self._outcomes[-1]
        nacks = nacked_now - nacked
        return nacks > MOST_NACKS * (confirmed_now - confirmed + nacks)

    def _lowest_first(self, now: float, drain: Drain, *, is_suspicious: bool) -> tuple[bool, ...]:
        """Hold a sign that tells nothing of classes against the lowest that sends, then one more after each wait."""
        if not is_suspicious:
            self._suspicious_since = None
            return tuple(False for _ in self._thresholds)
        if self._suspicious_since is None:
            self._suspicious_since = now
        sending = [rank for rank, rate in enumerate(drain.own) if rate > 0] or [len(self._thresholds) - 1]
        reach = 1 + int((now - self._suspicious_since) / PATIENCE)
        highest = sending[max(0, len(sending) - reach)]
        return tuple(rank >= highest for rank in range(len(self._thresholds)))

    def _look_ahead(
        self, reading: Reading, drain: Drain, *, is_held: bool, knows_depth: bool, sees: bool
    ) -> float | None:
        """Return the events that the top level may admit from now on; None: what it was told last stands."""
        if not reading.queues:
            self._unseen = None
            return inf
        if is_held or not knows_depth:
            self._allowance.reset()
        if not knows_depth:
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
                has_queue=reading.ready >= FEWEST,
                ready=reading.ready,
                threshold=self._thresholds[0],
                drain=drain.rate,
                is_used=reading.waited[0],
                sees=sees,
                bound=inf if self._tells(reading) else self._settings.unseen_rate,
            )
        )

    def _tells(self, reading: Reading) -> bool:
        """Return whether a backlog would be noticed: consumers that take without a prefetch leave no queue to see."""
        return self._has_seen_queue or reading.knows_unacked or not reading.queues

    # -- rates --------------------------------------------------------------------------------------------------------

    def _learn_share(self, drain: Drain) -> None:
        """Remember how much of everything this replica sent; while nothing flows the last share stands."""
        if drain.inflow > 0:
            self._share = sum(drain.own) / drain.inflow

    def _tick(
        self,
        reading: Reading,
        drain: Drain,
        delay: float | None,
        hot: tuple[bool, ...],
        *,
        sees: bool,
        must_stop: bool,
    ) -> int:
        empty_for, since_last = self._emptiness(reading, sees=sees)
        self._has_seen_queue = self._has_seen_queue or reading.ready >= FEWEST
        is_over = self._top_sign is Sign.DEPTH or reading.at - self._top_hot_at >= PATIENCE
        is_long = delay is not None and delay > RISING * self._thresholds[-1] and reading.ready >= FEWEST
        is_rising = is_long and drain.slope > 0
        cuts = 0
        for rank, law in enumerate(self._laws):
            threshold = self._limits[rank]
            cuts += law.on_tick(
                Level(
                    now=reading.at,
                    must_stop=must_stop,
                    is_hot=hot[rank],
                    is_falling=drain.slope < 0,
                    is_cool=delay is not None and delay < COOL * threshold,
                    is_rising=is_rising,
                    empty_for=empty_for,
                    empty_since_last=since_last,
                    excess=max(0.0, (delay or 0.0) - threshold),
                    target=self._share * drain.rate,
                    own=sum(drain.own[: rank + 1]),
                    drain=drain.rate,
                    is_used=reading.waited[rank],
                    sees=sees,
                    bound=inf if self._tells(reading) else self._settings.unseen_rate,
                    has_allowance=bool(reading.queues) and is_over,
                )
            )
        return cuts

    def _emptiness(self, reading: Reading, *, sees: bool) -> tuple[float | None, float]:
        """Return for how many seconds the queues have been seen empty, and how many of them are new."""
        seen_at = max((queue.at for queue in reading.queues if queue is not None), default=None)
        if not sees or reading.ready or seen_at is None:
            self._empty_since = None
            return None, 0.0
        if self._empty_since is None:
            self._empty_since = self._empty_till = seen_at
        since_last, self._empty_till = seen_at - self._empty_till, seen_at
        return seen_at - self._empty_since, since_last
