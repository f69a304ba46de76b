"""One queue as the control loop sees it, or all queues of a route taken together: how long it makes an event wait.

What goes in less what the queue grows by is what its consumers take; what waits over that is the delay. See
docs/design/0020-queues.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from proxy.congestion.drain_rate import Drain, DrainRate
from proxy.congestion.mix import Mix
from proxy.congestion.reading import Inflow, QueueReading

FEWEST = 4
"""Messages below which no queue is a sign of anything."""
SHORTEST_QUEUE = 0.5
"""Share of a threshold that is left of it when consumers have become slow."""
STEADY = 1.3
"""So many times below the best of late, the consumers' rate is as it was: chance makes that much."""
PEAK_FADING = 30.0
"""Seconds in which the best of late is halved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What one look showed."""

    name: str
    is_known: bool
    """The depth is."""
    estimate: Drain | None
    """None: not enough was seen."""
    delay: float | None
    """Seconds that an event would wait; infinite: for ever. None: not known."""
    limits: tuple[float, ...]
    """The classes' thresholds as they are at this drain rate, in seconds."""
    share: float
    """Part of what goes in that comes from this replica."""
    held: float
    """Cost a second for this replica at most while the depth is not known: what was taken before, if that was all."""
    feeds: tuple[bool, ...]
    """By class: whether it goes there."""
    ready: int
    """Messages waiting."""
    waiting: float
    """What they cost."""
    cost: float
    """What a message costs on average."""
    is_even: bool
    """Each costs 1."""
    consumers: int
    is_left: bool
    """Messages wait, enough to be a sign, and nobody takes them."""
    unacked: int | None
    unacked_growing: bool
    knows_others: bool
    empty_for: float | None
    """Seconds for which it has been seen empty each time; None: it was not, or it is not known."""
    empty_since_last: float
    """Seconds of them that the last look did not know of."""

    @property
    def sees(self) -> bool:
        """Whether everything needed to grow is known."""
        return self.is_known and self.estimate is not None and self.knows_others

    def is_over(self, rank: int) -> bool:
        """Return whether an event would wait for longer than a class may, or for ever."""
        if self.is_left:
            return True
        return self.delay is not None and self.ready >= FEWEST and self.delay > self.limits[rank]

    def counted_with(self, rank: int) -> tuple[bool, ...]:
        """Return which classes a level counts that this queue rules: its own, and those above that go here."""
        is_led_to = self.feeds[rank]
        return tuple(one == rank or (one < rank and (feeds or not is_led_to)) for one, feeds in enumerate(self.feeds))


class Receiver:
    """Remembers what was seen. `thresholds` are the classes' queue delays in seconds, the most important first."""

    def __init__(self, name: str, thresholds: Sequence[float]) -> None:
        self._name = name
        self._thresholds = tuple(thresholds)
        self._drain = DrainRate()
        self._mix = Mix()
        self._share = 0.0
        self._held = inf
        self._peak = 0.0
        """The best drain rate of late, in events of cost 1 a second."""
        self._peak_at = 0.0
        self._empty_since: float | None = None
        self._empty_till = 0.0
        """When it was last looked at and empty."""
        self.has_seen_queue = False
        """Whether messages ever waited although there were consumers: these let a queue form, and it would tell."""

    def go_by(self, thresholds: Sequence[float]) -> None:
        """Hold what is seen against other thresholds from now on."""
        self._thresholds = tuple(thresholds)

    def look(self, now: float, queues: Sequence[QueueReading | None], inflow: Inflow) -> View:
        """Take a reading in and return what it shows."""
        known = [queue for queue in queues if queue is not None and now - queue.at <= queue.fresh_for]
        is_known = len(known) == len(queues)
        ready = sum(queue.ready for queue in queues if queue is not None)
        if is_known:
            at = max((queue.at for queue in known), default=now)
            known_for = max((queue.fresh_for for queue in known), default=0.0)
            self._mix.add(at, inflow)
            self._drain.add(at, self._mix.cost_of_last(ready), inflow.work, known_for)
        waiting = self._mix.cost_of_last(ready)
        estimate = self._drain.estimate(inflow.others_work, self._mix.lump) if is_known else None
        if estimate is not None and estimate.inflow > 0:
            # While nothing flows the last share stands.
            self._share = sum(estimate.own) / estimate.inflow
        if estimate is not None:
            self._held = self._share * estimate.rate if estimate.is_capacity else inf
        delay = None if estimate is None else self._delay(now, waiting, estimate)
        is_left = ready >= FEWEST and not any(q.consumers for q in queues if q is not None and q.ready)
        self.has_seen_queue = self.has_seen_queue or (ready >= FEWEST and not is_left)
        sees = is_known and estimate is not None and inflow.others is not None
        empty_for, since_last = self._emptiness(queues, ready, sees=sees)
        unacked = [queue.unacked for queue in known if queue.unacked is not None]
        return View(
            name=self._name,
            is_known=is_known,
            estimate=estimate,
            delay=delay,
            limits=self._limits(now, estimate),
            share=self._share,
            held=inf if is_known else self._held,
            feeds=inflow.feeds,
            ready=ready,
            waiting=waiting,
            cost=self._mix.mean,
            is_even=self._mix.is_even,
            consumers=sum(queue.consumers for queue in known),
            is_left=is_left,
            unacked=sum(unacked) if unacked and len(unacked) == len(queues) else None,
            unacked_growing=any(queue.unacked_growing for queue in known),
            knows_others=inflow.others is not None,
            empty_for=empty_for,
            empty_since_last=since_last,
        )

    def _delay(self, now: float, waiting: float, drain: Drain) -> float:
        """Return what waits over drain rate, and no more than the time since it was last seen empty."""
        if not waiting:
            return 0.0
        since_empty = inf if self._drain.empty_at is None else now - self._drain.empty_at
        return min(since_empty, waiting / drain.rate if drain.rate else inf)

    def _limits(self, now: float, drain: Drain | None) -> tuple[float, ...]:
        """Return the thresholds as they are at this drain rate.

        What consumers hold is counted in messages: when they take half as fast it stands for twice as long, before
        everybody and unseen, and keeps them busy for twice as long. So the queue need be, and may be, half as long.
        """
        if drain is None:
            return self._thresholds
        if drain.is_capacity:
            faded = self._peak * 0.5 ** ((now - self._peak_at) / PEAK_FADING)
            self._peak, self._peak_at = max(drain.rate, faded), now
        part = max(SHORTEST_QUEUE, min(1.0, STEADY * drain.rate / self._peak)) if self._peak else 1.0
        return (self._thresholds[0], *(threshold * part for threshold in self._thresholds[1:]))

    def _emptiness(
        self, queues: Sequence[QueueReading | None], ready: int, *, sees: bool
    ) -> tuple[float | None, float]:
        """Return for how many seconds it has been seen empty, and how many of them are new."""
        seen_at = max((queue.at for queue in queues if queue is not None), default=None)
        if not sees or ready or seen_at is None:
            self._empty_since = None
            return None, 0.0
        if self._empty_since is None:
            self._empty_since = self._empty_till = seen_at
        since_last, self._empty_till = seen_at - self._empty_till, seen_at
        return seen_at - self._empty_since, since_last
