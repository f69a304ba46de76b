"""What has become of the queues of events that came back: gone, or only away as long as their node is down.

RabbitMQ 3.10 returns what is sent to a classic queue whose node is down as if there were no such queue; asked for the
queue by its name it says that there is. So nobody decides what becomes of such an event before the broker was asked;
and asked is the node that the lane is connected with, for another may see what that one does not.
See docs/design/0067-queues-away.md.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import ceil

import structlog

from proxy.bridge.broker import Finding, Found, QueueFinder
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.inquiries import Inquiries
from proxy.bridge.insistence import Insistence
from proxy.bridge.returned import Place, Places, Returned
from proxy.model import Outcome, Reason

INTERVAL = 0.5
"""Seconds between two questions while a queue is away or nobody answers."""
AWAY_AT_ONCE = 4
ROTATION = 30.0
"""So many queues that are away are asked for in one interval, or more, so that each is within so many seconds; when one
is back all are. Every such question costs RabbitMQ a channel and two lines in its log.
"""
LEASE = 3.0
"""Seconds for which a partition whose queue is away sends nothing, unless it is told so anew."""
QUIET = 10.0
"""Seconds without a question after which the connections are closed."""

_say = structlog.get_logger("tidegate.returns")


class Returns:
    """Asks a `finder`, whenever there is something to ask; without one nobody asks.

    What is kept is bounded by what flows may have out: `limits.uncommitted_events` of each partition.
    """

    def __init__(self, finder: QueueFinder | None = None) -> None:
        self._inquiries = None if finder is None else Inquiries(finder)
        self._open: list[Returned] = []
        """Not all of their queues are known yet."""
        self._heard: dict[Place, tuple[float, Found]] = {}
        """What was said of queues last, and when that was asked; as long as something is open."""
        self._waiting: dict[Places, set[PartitionFlow]] = {}
        """Partitions that wait until none of these queues is away."""
        self._away: dict[Place, float] = {}
        """Since when each queue is away, those first that were not asked for for longest."""
        self._rotation_due = 0.0
        """When some of these are asked for again."""
        self._is_one_back = False
        """All of these are to be asked for: what else was on its node may be back, too."""
        self._insistence = Insistence()
        self._asked = asyncio.Event()
        self._answers = False
        """Of what flows are told in this step nobody need ask."""

    def ask(self, returned: Sequence[Returned]) -> bool:
        """Have flows told the outcome in another step, once it is known; return whether they will be."""
        if self._inquiries is None or self._answers or not any(one.places for one in returned):
            return False
        self._open += returned
        self._asked.set()
        return True

    async def run(self) -> None:
        """Ask until cancelled, whenever there is something to ask."""
        while self._inquiries is None:
            await asyncio.Event().wait()
        try:
            while True:
                await self._until_asked(self._inquiries)
                self._asked.clear()
                await self._look(self._inquiries)
        finally:
            await self._inquiries.close()

    async def _until_asked(self, inquiries: Inquiries) -> None:
        if self._open or self._waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL):
                    await self._asked.wait()
            return
        try:
            async with asyncio.timeout(QUIET):
                await self._asked.wait()
        except TimeoutError:
            await inquiries.close()
            await self._asked.wait()

    async def _look(self, inquiries: Inquiries) -> None:
        """Ask for queues of which something is to be known, tell what is known then."""
        clock = asyncio.get_running_loop().time
        asked, began = list(self._open), clock()
        wanted = [place for one in asked for place in self._unheard(one) if place not in self._away]
        known = await inquiries.ask(dict.fromkeys([*self._rotated(began), *wanted]))
        now = clock()
        self._note(known, now)
        self._heard |= {place: (began, finding.found) for place, finding in known.items()}
        del self._open[: len(asked)]
        for one in asked:
            self._answer(one, inquiries, now)
        for places, flows in list(self._waiting.items()):
            self._keep(places, flows, inquiries, now)
        self._forget(now)

    def _unheard(self, one: Returned) -> list[Place]:
        """Return of which queues nothing was said since the events came back: not all can be asked for at once."""
        return [place for place in one.places if place not in self._heard or self._heard[place][0] < one.at]

    def _rotated(self, now: float) -> Sequence[Place]:
        """Return which of the queues that are away are asked for now."""
        if self._is_one_back:
            self._is_one_back = False
            return list(self._away)
        if now < self._rotation_due:
            return []
        self._rotation_due = now + INTERVAL
        return list(self._away)[: max(AWAY_AT_ONCE, ceil(len(self._away) * INTERVAL / ROTATION))]

    def _note(self, known: Mapping[Place, Finding], now: float) -> None:
        """Know which queues are away, and say which have become so and which are no longer, once for all lanes."""
        for place, (found, why) in known.items():
            since = self._away.pop(place, None)
            is_known = any(other.queue == place.queue for other in self._away)
            if found is Found.AWAY:
                self._away[place] = now if since is None else since
                if since is None:
                    self._insistence.doubt()
                if since is None and not is_known:
                    _say.warning(
                        "queue_away",
                        queue=place.queue,
                        why=why,
                        effect="what is for it waits in the log and goes when it is back",
                        remedy="start its node, or mend the cluster if it is split (`rabbitmqctl cluster_status`); "
                        "a quorum queue would have another leader",
                    )
            elif since is not None:
                self._is_one_back = True
                self._asked.set()
                if not is_known:
                    self._say_no_longer_away(place.queue, found, round(now - since, 1))

    def _say_no_longer_away(self, queue: str, found: Found, after_s: float) -> None:
        if found is Found.THERE:
            _say.info("queue_back", queue=queue, after_s=after_s)
        else:
            effect = "events for it are dead letters, or their type stops"
            _say.warning("queue_gone", queue=queue, after_s=after_s, effect=effect)

    def _answer(self, one: Returned, inquiries: Inquiries, now: float) -> None:
        is_away = any(place in self._away for place in one.places)
        if is_away:
            self._insistence.begin_anew(one.flow)
        if is_away and not one.flow.closing:
            self._waiting.setdefault(one.places, set()).add(one.flow)
        # Whoever has the partition next, or the node that the lane has next, is sent it again, and tells anew.
        if is_away or one.flow.closing or (one.places and not one.host):
            outcome = Outcome.NACKED
        elif self._unheard(one) and not inquiries.is_silent(one.host, since=one.at, now=now):
            self._open.append(one)
            return
        else:
            is_there = any(self._heard[place][1] is Found.THERE for place in one.places if place in self._heard)
            goes_on = is_there and self._insistence.goes_on(one, now)
            outcome = Outcome.NACKED if goes_on else Outcome.UNDELIVERABLE
        self._answers = True
        try:
            one.flow.on_outcome(
                one.batch, one.start, one.end, outcome, seconds=one.seconds, reason=Reason.UNROUTABLE, detail=one.detail
            )
        finally:
            self._answers = False

    def _keep(self, places: Places, flows: set[PartitionFlow], inquiries: Inquiries, now: float) -> None:
        """Let partitions wait on while a queue of theirs is away; if nobody tells any more, until their time is up."""
        flows -= {flow for flow in flows if flow.closing}
        is_away = any(place in self._away for place in places)
        if not is_away or (places[0].lane.host and inquiries.answers(places[0].lane.host)):
            for flow in flows:
                flow.wait(now + LEASE if is_away else now)
        if not is_away or not flows:
            del self._waiting[places]

    def _forget(self, now: float) -> None:
        """Keep nothing that nobody waits for."""
        if not self._open:
            self._heard.clear()
        awaited = {place for places in self._waiting for place in places}
        left = self._away.keys() - awaited
        for place in left:
            del self._away[place]
        for queue in dict.fromkeys(place.queue for place in left):
            if not any(place.queue == queue for place in self._away):
                _say.info("queue_let_go", queue=queue, why="no partition that is read here waits for it any more")
        self._insistence.forget(now)
