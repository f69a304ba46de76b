"""How many consumers a route wants, from what the last changes in their number really brought: pure.

Two things can't be known beforehand: what one more consumer brings, and whether what stands behind them is full. So no
more than half as many again as were measured are wanted at once, then these are measured; and where more consumers took
no more (the knee: a saturated database behind them), no more are wanted than would take as much. See
docs/design/0021-wanted-consumers.md.
"""

from dataclasses import dataclass
from math import ceil, inf

SETTLE = 3.0
"""Seconds after a change of their number in which consumers are not measured: they connect and fill their prefetch."""
MEASURE = 4.0
"""Seconds with enough to do after which it is known what a number of consumers takes."""
MEASURE_AGAIN = 10.0
"""The same where more have not helped before: one more or less is to be told from chance."""
GROWTH = 1.5
"""So many times the consumers that were measured are wanted at most."""
HELPS = 0.8
"""More consumers help if they bring at least this share of what as many brought before. Else the knee is passed ..."""
HARDLY_HELPS = 0.25
"""... for sure below this share; between the two it may be that each brings a little less."""
APART = 1.2
"""Numbers of consumers of which one is not so many times the other can't be told apart: rates differ by chance, too."""
SPARE = 0.8
"""Consumers are given up when those that stay would be busy for at most this share of their time ..."""
CALM = 60.0
"""... and that was so for as many seconds."""
KNEE_SECONDS = 1_800.0
"""After so many it is tried again whether more consumers help, one unit at a time until they do."""
SOFT_KNEE_SECONDS = 60.0
"""The same where they helped a little; then one more must bring at least half of what it should."""
HELPS_AGAIN = 0.5
USUAL = 2.0
"""Seconds of the demand that may wait in the log without being a backlog."""
LATE = 5.0
"""Seconds of late that tell whether the consumers of one of several queues are busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is seen of one route and of its whole group; rates in events of cost 1 a second. None: not known."""

    at: float
    """By the caller's clock in seconds; must not fall."""
    consumers: int | None
    """Of all its queues."""
    taken: float | None
    """What they take."""
    is_capacity: bool
    """They had enough to take all the time, so that is all they can."""
    demand: float | None
    """What comes into the log."""
    backlog: float | None
    """What waits, in the log and in the queues, in events of cost 1."""
    given: float = 0.0
    """What goes to them; counts for one of several queues only."""
    because: str = ""
    """Why something is not known, in words."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The answer; `consumers` is a multiple of the unit, None while too little is seen."""

    consumers: int | None
    why: str
    knee: int | None = None
    """More of them took no more when that was last tried."""


@dataclass(slots=True)
class _Measure:
    """What so many consumers take, as it is being measured."""

    seconds: float = 0.0
    events: float = 0.0

    @property
    def rate(self) -> float:
        return self.events / self.seconds


class Scaling:
    """One route, or one of several queues of a route.

    `unit` consumers come and go together, and a backlog should be worked off in `work_off` seconds. What waits in the
    log for one of several queues may wait for another one: `is_one_of_several` wants more only while those that are
    there are busy for more than `SPARE`.
    """

    def __init__(self, unit: int, work_off: float, *, is_one_of_several: bool = False) -> None:
        self._unit = unit
        self._work_off = work_off
        self._is_one_of_several = is_one_of_several
        self._busy = 0.0
        """Share of their time that they were busy of late."""
        self._count: int | None = None
        self._since = 0.0
        """When the number of consumers was first seen."""
        self._is_judged = False
        """Whether so many help is known."""
        self._at: float | None = None
        self._measure = _Measure()
        self._known: dict[int, float] = {}
        """Events a second that so many consumers took when they had enough."""
        self._wanted: int | None = None
        self._less_since: float | None = None
        self._most_of_less = 0
        """Of what would have been enough since then."""
        self._knee: int | None = None
        self._knee_until = inf
        self._in_vain: int | None = None
        """So many did not help."""

    def look(self, sight: Sight) -> Wanted:
        """Take in what is seen now, every second or so; return what is wanted."""
        if sight.consumers is None or sight.taken is None or sight.demand is None or sight.backlog is None:
            self._at, self._busy = None, 0.0
            return Wanted(None, _blind(sight), self._knee)
        self._measure_at(sight, sight.consumers, sight.taken)
        excess = max(0.0, sight.backlog - USUAL * sight.demand)
        return self._decide(sight.at, sight.consumers, sight.demand + excess / self._work_off)

    # -- measuring ----------------------------------------------------------------------------------------------------

    def _measure_at(self, sight: Sight, count: int, taken: float) -> None:
        last, self._at = self._at, sight.at
        if last is not None:
            self._busy += (self._busy_now(sight, count) - self._busy) * min(1.0, (sight.at - last) / LATE)
        if count != self._count:
            self._count, self._since, self._is_judged = count, sight.at, False
            self._measure = _Measure()
        if last is None or not count or not sight.is_capacity or sight.at - self._since < SETTLE:
            return
        self._measure.seconds += sight.at - last
        self._measure.events += taken * (sight.at - last)
        if self._measure.seconds >= (MEASURE if self._in_vain is None else MEASURE_AGAIN):
            self._known[count] = self._measure.rate
            self._measure = _Measure()
            if not self._is_judged:
                self._is_judged = True
                self._judge(sight.at, count)

    def _busy_now(self, sight: Sight, count: int) -> float:
        each = self._each(count)
        return 1.0 if sight.is_capacity else min(1.0, sight.given / (each * count)) if each and count else 0.0

    def _judge(self, now: float, count: int) -> None:
        """Find the knee: whether these consumers take more than clearly fewer of them did."""
        if self._in_vain is not None and count < self._in_vain:
            return
        apart, enough = (APART, HELPS) if self._in_vain is None else (1.0, HELPS_AGAIN)
        fewer = max((one for one in self._known if one < count and one * apart <= count), default=None)
        if fewer is None:
            return
        helped = (self._known[count] / self._known[fewer] - 1) / (count / fewer - 1)
        if helped >= enough:
            self._in_vain = None
            return
        self._in_vain = count
        quickest = max(rate / one for one, rate in self._known.items())
        self._knee = max(1, ceil(self._known[count] / quickest - 0.1))
        self._knee_until = now + (KNEE_SECONDS if helped < HARDLY_HELPS else SOFT_KNEE_SECONDS)

    # -- deciding -----------------------------------------------------------------------------------------------------

    def _decide(self, now: float, count: int, needed: float) -> Wanted:
        if self._knee is not None and now > self._knee_until:
            self._knee = None
            self._known = {one: rate for one, rate in self._known.items() if one < (self._in_vain or 0)}
        if not count:
            return self._answer(self._unit if needed else 0, f"nobody takes them, {needed:,.0f} a second should be")
        each = self._each(count)
        if each is None:
            return self._answer(count, f"what {count} take is not known before they have enough to do")
        enough, spare = ceil(needed / each - 0.01), ceil(needed / (SPARE * each) - 0.01)
        now_wanted = self._wanted if self._wanted is not None else count
        words = f"{count} take {each * count:,.0f} a second, {needed:,.0f} should be taken"
        if enough > max(count, now_wanted):
            self._less_since = None
            if self._is_one_of_several and self._busy < SPARE:
                return self._answer(now_wanted, f"{words}; these have time to spare, the log waits for another queue")
            return self._rise(count, enough, words)
        if spare >= now_wanted:
            self._less_since = None
            return self._answer(now_wanted, words)
        return self._fall(now, now_wanted, spare, words)

    def _each(self, count: int) -> float | None:
        """Return what one of them takes a second: of as many, else of the nearest number that was measured."""
        if not self._known:
            return None
        nearest = min(self._known, key=lambda one: (abs(one - count), one))
        return self._known[nearest] / nearest

    def _rise(self, count: int, enough: int, words: str) -> Wanted:
        measured = max((one for one in self._known if one <= count), default=count)
        growth = GROWTH if self._in_vain is None else 1.0
        most = max(int(growth * measured), measured + self._unit)
        if enough > most:
            words += f"; more than {most} are wanted once it is known what these bring"
        return self._answer(max(min(enough, most), min(self._wanted or 0, enough)), words)

    def _fall(self, now: float, wanted: int, spare: int, words: str) -> Wanted:
        if self._less_since is None:
            self._less_since, self._most_of_less = now, spare
        self._most_of_less = max(self._most_of_less, spare)
        if now - self._less_since < CALM:
            return self._answer(wanted, f"{words}; fewer would do for {now - self._less_since:.0f} s of {CALM:g}")
        wanted, self._less_since = self._most_of_less, None
        return self._answer(wanted, words)

    def _answer(self, wanted: int, words: str) -> Wanted:
        if self._knee is not None and wanted > self._knee:
            wanted = self._knee
            words += f"; more than {self._knee} took no more when that was tried"
        wanted = -(-max(wanted, 1) // self._unit) * self._unit if wanted else 0
        self._wanted = wanted
        return Wanted(wanted, words, self._knee)


def _blind(sight: Sight) -> str:
    unknown = {
        "how many consumers there are": sight.consumers,
        "what they take": sight.taken,
        "what comes into the log": sight.demand,
        "what waits in the log": sight.backlog,
    }
    told = "not known: " + ", ".join(what for what, value in unknown.items() if value is None)
    return f"{told}; {sight.because}" if sight.because else told
