"""The control of one route under `policy: class_budget`: a reading in, a verdict with the rates of all levels out.

A level is a class with its queue-delay threshold; level k bounds what classes 0 to k send together (docs/design/0008).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

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
        self._drain = DrainRate()
        self._confirms = DrainRate()
        """The same without any depth, for while that is not known: what is confirmed."""
        self._unknown = Drain(0.0, 0.0, (0.0,) * len(thresholds), 0.0, is_capacity=False)
        self._baseline = Baseline()
        self._outcomes: deque[tuple[float, int, int]] = deque()
        self._share = tuple(0.0 for _ in thresholds)
        """Of all that all replicas sent, by level, when anything was."""
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
        return tuple(reversed(rates))

    def judge(self, reading: Reading) -> BudgetVerdict:
        """Return the verdict on what was just seen."""
        knows_depth = self._look(reading)
        estimate = (self._drain if knows_depth else self._confirms).estimate(reading.others or 0.0)
        drain = estimate or self._unknown
        sees = knows_depth and estimate is not None and reading.others is not None
        delay = self._delay(reading, drain) if knows_depth and estimate is not None else None
        must_stop = self._must_stop(reading)
        cause, hot = self._hot(reading, delay, drain)
        if must_stop is None and cause is Sign.NO_CONSUMERS:
            must_stop = cause  # whatever was learnt of consumers that are gone says nothing of those that will come
        if must_stop is not None:
            cause, hot = must_stop, tuple(False for _ in hot)
        elif cause is Sign.NONE and not sees:
            cause = Sign.BLIND
        self._learn_shares(drain)
        cuts = self._tick(reading, drain, delay, hot, sees=sees, must_stop=must_stop is not None)
        congested = True if must_stop is not None or any(hot) else None if cause is Sign.BLIND else False
        trickle = 0.0 if must_stop is not None else self._settings.lowest_share * drain.rate
        return BudgetVerdict(self._route, congested, cause, hot, self.rates, trickle, delay, drain, cuts, reading)

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
            hot = tuple(delay > threshold for threshold in self._thresholds)
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

    # -- rates --------------------------------------------------------------------------------------------------------

    def _learn_shares(self, drain: Drain) -> None:
        """Remember how much of everything each level sent; while nothing flows the last shares stand."""
        if drain.inflow > 0:
            self._share = tuple(sum(drain.own[: rank + 1]) / drain.inflow for rank in range(len(drain.own)))

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
        tells = self._has_seen_queue or reading.knows_unacked or not reading.queues
        is_long = delay is not None and delay > RISING * self._thresholds[-1] and reading.ready >= FEWEST
        is_rising = is_long and drain.slope > 0
        cuts = 0
        for rank, law in enumerate(self._laws):
            threshold = self._thresholds[rank]
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
                    target=self._share[rank] * drain.rate,
                    own=sum(drain.own[: rank + 1]),
                    drain=drain.rate,
                    is_used=reading.waited[rank],
                    sees=sees,
                    bound=inf if tells else self._settings.unseen_rate,
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
