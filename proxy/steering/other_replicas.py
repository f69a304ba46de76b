"""How much the other replicas of the group get confirmed, from what the group has committed.

They publish into the same queues, so the rate at which the consumers take is the sum over all of them. A replica knows
its own confirms at once; of the others it sees only committed offsets, a commit interval old.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

import structlog

from proxy.bridge.event_log import EventLog
from proxy.congestion.collector import Way
from proxy.errors import LogError
from proxy.model import Partition
from proxy.steering.class_part import ClassPart
from proxy.steering.rates import Rates

_say = structlog.get_logger("tidegate.others")

PAUSE = 1.0
"""Seconds between two questions while others are at work; one answer with 3,000 partitions costs 9 ms of CPU."""
IDLE_PAUSE = 5.0
"""... and while no count of another's has changed for `IDLE_AFTER` seconds: this replica is alone, or as good as."""
IDLE_AFTER = 60.0
WINDOW = 3.5
"""Seconds over which the rate is taken: three questions. Commits come in lumps of one commit interval, 0.5 s unless set
otherwise: between two questions lie one, two or three of each replica's, so one second alone would be wrong by half."""
STALE_AFTER = 10.0
"""A rate from samples older than this is not known; longer than `IDLE_PAUSE` and one question that failed."""


Lead = tuple[str, Way]
"""A route, and what events do behind it."""


class Others(NamedTuple):
    """What they get confirmed."""

    rate: float
    """Events a second."""
    cost: float = 1.0
    """What one of them costs on average."""


class OthersRate:
    """Rates by route, from samples of `EventLog.progress`; pure.

    Only a partition that is somebody else's in two consecutive samples counts between them, so one that comes, goes or
    changes hands makes no spike, and a count that falls (a topic made anew) counts as nothing. Offsets without events,
    of transactions and compaction, do count.
    """

    def __init__(self, leads: Callable[[str], Lead | None], window: float = WINDOW) -> None:
        """Make one; `leads` says where a topic's events go, None for one that belongs to no route."""
        self._leads = leads
        self._last: Mapping[Partition, int] = {}
        self._rates: Rates[Lead] = Rates(window, STALE_AFTER)
        self._moved_at: float | None = None

    def add(self, now: float, counts: Mapping[Partition, int]) -> None:
        """Take a sample; `now` must grow."""
        for partition, count in counts.items():
            before = self._last.get(partition)
            if count == before:
                continue
            self._moved_at = now  # or became somebody else's just now: a rebalance
            lead = self._leads(partition.topic)
            if before is not None and lead is not None:
                self._rates.count(lead, count - before)
        self._last = counts
        self._rates.sample(now)

    def rate(self, route: str, now: float, queue: str | None = None) -> Others | None:
        """Return what the others get confirmed on the route, or only what may go to one of its queues.

        None if it is not known: fewer than two samples, or old.
        """
        if self._rates.is_stale(now):
            return None
        rates = self._rates.last
        if rates is None:
            return None if self._last else Others(0.0)  # nobody else has anything
        there = [
            (rate, way.cost)
            for (to, way), rate in rates.items()
            if to == route and (queue is None or queue in way.queues)
        ]
        events = sum(rate for rate, _ in there)
        return Others(events, sum(rate * cost for rate, cost in there) / events if events else 1.0)

    def pause(self, now: float) -> float:
        """Return how many seconds to wait before the next sample."""
        if self._rates.last is None:
            return PAUSE
        is_idle = self._moved_at is None or now - self._moved_at > IDLE_AFTER
        return IDLE_PAUSE if is_idle else PAUSE


class OtherReplicas:
    """Asks the log for the group's progress at the pace that is worth it.

    `ours` tells how far each own partition has come, `part` is told of each answer beside it.
    """

    def __init__(
        self,
        log: EventLog,
        leads: Callable[[str], Lead | None],
        ours: Callable[[], Mapping[Partition, int]] = dict,
        part: ClassPart | None = None,
    ) -> None:
        self._log = log
        self._rates = OthersRate(leads)
        self._ours = ours
        self._part = part
        self._is_blind = False

    def rate(self, route: str, queue: str | None = None) -> Others | None:
        """Return what other replicas get confirmed on the route, or into one queue of it.

        None if that is not known now.
        """
        return self._rates.rate(route, asyncio.get_running_loop().time(), queue)

    async def run(self) -> None:
        """Ask until cancelled; a failure is said once until the next success."""
        now = asyncio.get_running_loop().time
        while True:
            try:
                counts = await self._log.progress()
            except LogError as error:
                if not self._is_blind:
                    _say.warning("others_unknown", why=str(error), effect="other replicas' share is not known")
                self._is_blind = True
            else:
                self._is_blind = False
                await asyncio.sleep(0)  # of thousands of partitions each of these takes some milliseconds
                self._rates.add(now(), counts)
                await asyncio.sleep(0)
                if self._part is not None:
                    self._part.add(now(), self._ours(), counts)
            await asyncio.sleep(self._rates.pause(now()))
