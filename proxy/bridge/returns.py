"""What has become of the queues of events that came back: gone, or only away as long as their node is down.

RabbitMQ 3.10 returns what is sent to a classic queue whose node is down as if there were no such queue; asked for the
queue by its name it says that there is. So nobody decides what becomes of such an event before the broker was asked.
See docs/design/0067-queues-away.md.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, inf

import structlog

from proxy.bridge.broker import Batch, Finding, Found, QueueFinder
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.presence import Presence
from proxy.errors import BrokerError
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
PATIENCE = 30.0
"""Seconds of silence after which what came back has no queue, as the broker said."""
SAID_AFTER = 2.0
"""Seconds of silence after which it is said."""
QUIET = 10.0
"""Seconds without a question after which the connection is closed."""

_say = structlog.get_logger("tidegate.returns")

Queues = tuple[str, ...]
"""Where events may go: one of these that is away may be why they came back."""


@dataclass(frozen=True, slots=True)
class Returned:
    """Events of one batch that came back, and what their flow is to be told beside the outcome."""

    queues: Queues
    flow: PartitionFlow
    batch: Batch
    start: int
    end: int
    seconds: float | None
    detail: str
    at: float
    """When they came back, by the loop's clock."""


class Returns:
    """Asks a `finder`, whenever there is something to ask; without one nobody asks.

    What is kept is bounded by what flows may have out: `limits.uncommitted_events` of each partition.
    """

    def __init__(self, finder: QueueFinder | None = None) -> None:
        self._finder = finder
        self._open: list[Returned] = []
        """Not all of their queues are known yet."""
        self._heard: dict[str, tuple[float, Found]] = {}
        """What was said of queues last, and when that was asked; as long as something is open."""
        self._waiting: dict[Queues, set[PartitionFlow]] = {}
        """Partitions that wait until none of these queues is away."""
        self._away: dict[str, float] = {}
        """Since when each queue is away, those first that were not asked for for longest."""
        self._rotation_due = 0.0
        """When some of these are asked for again."""
        self._is_one_back = False
        """All of these are to be asked for: what else was on its node may be back, too."""
        self._silent_since: float | None = None
        """Nobody has answered since."""
        self._is_silence_said = False
        self._presence = Presence()
        self._tried: dict[PartitionFlow, set[int]] = {}
        """Sequence numbers that are sent once more: the queue is there, and perhaps was not when they came back."""
        self._asked = asyncio.Event()
        self._answers = False
        """Of what flows are told in this step nobody need ask."""

    def ask(self, returned: Sequence[Returned]) -> bool:
        """Have flows told the outcome in another step, once it is known; return whether they will be."""
        if self._finder is None or self._answers or not any(one.queues for one in returned):
            return False
        self._open += returned
        self._asked.set()
        return True

    async def run(self) -> None:
        """Ask until cancelled, whenever there is something to ask."""
        while self._finder is None:
            await asyncio.Event().wait()
        try:
            while True:
                await self._until_asked(self._finder)
                self._asked.clear()
                await self._look(self._finder)
        finally:
            await self._finder.close()

    async def _until_asked(self, finder: QueueFinder) -> None:
        if self._open or self._waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL):
                    await self._asked.wait()
            return
        try:
            async with asyncio.timeout(QUIET):
                await self._asked.wait()
        except TimeoutError:
            await finder.close()
            await self._asked.wait()

    async def _look(self, finder: QueueFinder) -> None:
        """Ask for queues of which something is to be known, tell what is known then."""
        clock = asyncio.get_running_loop().time
        asked, began = list(self._open), clock()
        wanted = [queue for one in asked for queue in self._unheard(one) if queue not in self._away]
        known = await self._found(finder, list(dict.fromkeys([*self._rotated(began), *wanted])))
        now = clock()
        self._note(known, now)
        self._heard |= {queue: (began, finding.found) for queue, finding in known.items()}
        del self._open[: len(asked)]
        for one in asked:
            self._answer(one, now)
        for queues, flows in list(self._waiting.items()):
            self._keep(queues, flows, now)
        self._presence.see(known, began, now)
        self._forget()

    def _unheard(self, one: Returned) -> list[str]:
        """Return of which queues nothing was said since the events came back: not all can be asked for at once."""
        return [queue for queue in one.queues if queue not in self._heard or self._heard[queue][0] < one.at]

    def _rotated(self, now: float) -> Sequence[str]:
        """Return which of the queues that are away are asked for now."""
        if self._is_one_back:
            self._is_one_back = False
            return list(self._away)
        if now < self._rotation_due:
            return []
        self._rotation_due = now + INTERVAL
        return list(self._away)[: max(AWAY_AT_ONCE, ceil(len(self._away) * INTERVAL / ROTATION))]

    async def _found(self, finder: QueueFinder, queues: Sequence[str]) -> Mapping[str, Finding]:
        """Ask for queues; what could not be asked is left out."""
        if not queues:
            return {}
        try:
            known = await finder.find(queues)
        except BrokerError as error:
            self._on_silence(str(error), asyncio.get_running_loop().time())
            return {}
        if self._is_silence_said:
            _say.info("finder_sees_again")
        self._silent_since, self._is_silence_said = None, False
        return known

    def _on_silence(self, why: str, now: float) -> None:
        """Say it once, and not at once: a host that has gone down is followed by another."""
        if self._silent_since is None:
            self._silent_since = now
        if now - self._silent_since >= SAID_AFTER and not self._is_silence_said:
            self._is_silence_said = True
            effect = f"events that came back wait to be asked for; after {PATIENCE:g} s of silence they are unroutable"
            _say.warning("finder_blind", why=why, effect=effect)

    def _note(self, known: Mapping[str, Finding], now: float) -> None:
        """Know which queues are away, and say which have become so and which are no longer."""
        for queue, (found, why) in known.items():
            since = self._away.pop(queue, None)
            if found is Found.AWAY:
                self._away[queue] = now if since is None else since
                if since is None:
                    _say.warning(
                        "queue_away",
                        queue=queue,
                        why=why,
                        effect="what is for it waits in the log and goes when it is back",
                        remedy="start its node; a quorum queue would have another leader",
                    )
            elif since is not None:
                self._is_one_back = True
                self._asked.set()
                after_s = round(now - since, 1)
                if found is Found.THERE:
                    _say.info("queue_back", queue=queue, after_s=after_s)
                else:
                    effect = "events for it are dead letters, or their type stops"
                    _say.warning("queue_gone", queue=queue, after_s=after_s, effect=effect)

    def _answer(self, one: Returned, now: float) -> None:
        is_away = any(queue in self._away for queue in one.queues)
        if is_away and not one.flow.closing:
            self._waiting.setdefault(one.queues, set()).add(one.flow)
        if is_away or one.flow.closing:  # whoever has the partition next reads it again, and asks again
            outcome = Outcome.NACKED
        elif self._unheard(one) and not self._is_silent(one, now):
            self._open.append(one)
            return
        else:
            outcome = Outcome.NACKED if self._is_tried_again(one, now) else Outcome.UNDELIVERABLE
        self._answers = True
        try:
            one.flow.on_outcome(
                one.batch, one.start, one.end, outcome, seconds=one.seconds, reason=Reason.UNROUTABLE, detail=one.detail
            )
        finally:
            self._answers = False

    def _is_silent(self, one: Returned, now: float) -> bool:
        """Return whether nobody has answered for so long that nothing is waited for."""
        return self._silent_since is not None and now - max(self._silent_since, one.at) >= PATIENCE

    def _is_tried_again(self, one: Returned, now: float) -> bool:
        """Return whether events are sent once more: a queue that is there may have been away when they came back."""
        written = one.at - (inf if one.seconds is None else one.seconds)
        there = [queue for queue in one.queues if queue in self._heard and self._heard[queue][1] is Found.THERE]
        if self._presence.since(there, now) <= written:
            return False
        numbers = range(one.batch.first + one.start, one.batch.first + one.end)
        tried = self._tried.setdefault(one.flow, set())
        if tried.issuperset(numbers):
            return False
        tried.update(numbers)
        return True

    def _keep(self, queues: Queues, flows: set[PartitionFlow], now: float) -> None:
        """Let partitions wait on while a queue of theirs is away; if nobody tells any more, until their time is up."""
        flows -= {flow for flow in flows if flow.closing}
        is_away = any(queue in self._away for queue in queues)
        if not is_away or self._silent_since is None:
            for flow in flows:
                flow.wait(now + LEASE if is_away else now)
        if not is_away or not flows:
            del self._waiting[queues]

    def _forget(self) -> None:
        """Keep nothing that nobody waits for."""
        if not self._open:
            self._heard.clear()
        awaited = {queue for queues in self._waiting for queue in queues}
        for queue in self._away.keys() - awaited:
            del self._away[queue]
        for flow, numbers in list(self._tried.items()):
            left = {number for number in numbers if number >= flow.watermark.resolved and not flow.closing}
            self._tried.pop(flow) if not left else self._tried.update({flow: left})
