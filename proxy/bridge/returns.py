"""What has become of the queues of events that came back: gone, or only away as long as their node is down.

RabbitMQ 3.10 returns what is sent to a classic queue whose node is down as if there were no such queue; asked for the
queue by its name it says that there is. So nobody decides what becomes of such an event before the broker was asked.
See docs/design/0067-queues-away.md.
"""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf

import structlog

from proxy.bridge.broker import Batch, DepthMonitor
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.presence import Found, Presence
from proxy.errors import BrokerError
from proxy.model import Outcome, Reason

INTERVAL = 0.5
"""Seconds between two questions while a queue is away or nobody answers."""
LEASE = 3.0
"""Seconds for which an answer holds: a partition whose queue is away sends nothing meanwhile."""
PATIENCE = 30.0
"""Seconds that an event waits for an answer at most; then there is no such queue, as the broker said."""
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
    """Asks over a `monitor` of its own, connected only while there is something to ask; without one nobody asks."""

    def __init__(self, monitor: DepthMonitor | None = None) -> None:
        self._monitor = monitor
        self._open: list[Returned] = []
        """Nobody has answered yet."""
        self._waiting: dict[Queues, set[PartitionFlow]] = {}
        """Partitions that wait until none of these queues is away."""
        self._away: dict[str, float] = {}
        """Since when each queue is away."""
        self._presence = Presence()
        self._tried: dict[PartitionFlow, set[int]] = {}
        """Sequence numbers that are sent once more: the queue is there, and perhaps was not when they came back."""
        self._asked = asyncio.Event()
        self._answers = False
        """Of what flows are told in this step nobody need ask."""

    def ask(self, returned: Returned) -> bool:
        """Have its flow told the outcome within some 30 s, in another step; return whether it will be."""
        if self._monitor is None or not returned.queues or self._answers:
            return False
        self._open.append(returned)
        self._asked.set()
        return True

    async def run(self) -> None:
        """Ask until cancelled, whenever there is something to ask."""
        while self._monitor is None:
            await asyncio.Event().wait()
        try:
            while True:
                await self._until_asked(self._monitor)
                self._asked.clear()
                await self._look(self._monitor)
        finally:
            await self._monitor.close()

    async def _until_asked(self, monitor: DepthMonitor) -> None:
        if self._open or self._waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL):
                    await self._asked.wait()
            return
        try:
            async with asyncio.timeout(QUIET):
                await self._asked.wait()
        except TimeoutError:
            await monitor.close()
            await self._asked.wait()

    async def _look(self, monitor: DepthMonitor) -> None:
        """Ask for all queues of which something is to be known, tell what is known then."""
        clock = asyncio.get_running_loop().time
        asked, began = list(self._open), clock()
        wanted = [*(one.queues for one in asked), *self._waiting]
        known = await _known(monitor, dict.fromkeys(queue for queues in wanted for queue in queues))
        now = clock()
        del self._open[: len(asked)]
        for one in asked:
            self._answer(one, known, now)
        for queues, flows in list(self._waiting.items()):
            self._keep(queues, flows, _is_away(queues, known), now)
        self._tell_of(known, monitor, now)
        self._presence.see(known, began, now)
        for flow, numbers in list(self._tried.items()):
            left = {number for number in numbers if number >= flow.watermark.resolved and not flow.closing}
            self._tried.pop(flow) if not left else self._tried.update({flow: left})

    def _answer(self, one: Returned, known: Mapping[str, Found], now: float) -> None:
        is_away = _is_away(one.queues, known)
        if one.flow.closing:
            is_away = True  # whoever comes next reads it again, and asks again
        elif is_away is None and now - one.at < PATIENCE:
            self._open.append(one)
            return
        if is_away and not one.flow.closing:
            self._waiting.setdefault(one.queues, set()).add(one.flow)
        is_final = not is_away and not self._is_tried_again(one, known, now)
        self._answers = True
        try:
            one.flow.on_outcome(
                one.batch,
                one.start,
                one.end,
                Outcome.UNDELIVERABLE if is_final else Outcome.NACKED,
                seconds=one.seconds,
                reason=Reason.UNROUTABLE,
                detail=one.detail,
            )
        finally:
            self._answers = False

    def _is_tried_again(self, one: Returned, known: Mapping[str, Found], now: float) -> bool:
        """Return whether events are sent once more: a queue that is there may have been away when they came back."""
        written = one.at - (inf if one.seconds is None else one.seconds)
        if self._presence.since([queue for queue in one.queues if known.get(queue) is Found.THERE], now) <= written:
            return False
        numbers = range(one.batch.first + one.start, one.batch.first + one.end)
        tried = self._tried.setdefault(one.flow, set())
        if tried.issuperset(numbers):
            return False
        tried.update(numbers)
        return True

    def _keep(self, queues: Queues, flows: set[PartitionFlow], is_away: bool | None, now: float) -> None:
        """Let partitions wait on while a queue of theirs is away; if nobody knows, until their time is up."""
        flows -= {flow for flow in flows if flow.closing}
        if is_away is not None:
            for flow in flows:
                flow.wait(now + LEASE if is_away else now)
        if not is_away or not flows:
            del self._waiting[queues]

    def _tell_of(self, known: Mapping[str, Found], monitor: DepthMonitor, now: float) -> None:
        awaited = {queue for queues in self._waiting for queue in queues}
        for queue, found in known.items():
            is_away = found is Found.AWAY
            if is_away and queue in awaited and queue not in self._away:
                self._away[queue] = now
                _say.warning(
                    "queue_away",
                    queue=queue,
                    why=monitor.why(queue),
                    effect="what is for it waits in the log and goes when it is back",
                    remedy="start its node; a quorum queue would have another leader",
                )
            elif not is_away and queue in self._away:
                _say.info("queue_back", queue=queue, after_s=round(now - self._away.pop(queue), 1))
        self._away = {queue: since for queue, since in self._away.items() if queue in awaited}


async def _known(monitor: DepthMonitor, queues: Collection[str]) -> Mapping[str, Found]:
    """Return what the broker tells of each queue, as far as it does."""
    try:
        states = await monitor.poll(queues)
    except BrokerError:
        return {}  # the lanes say so, and why
    gone = {queue: Found.AWAY if monitor.is_away(queue) else Found.GONE for queue in states}
    return {queue: gone[queue] if state is None else Found.THERE for queue, state in states.items()}


def _is_away(queues: Queues, known: Mapping[str, Found]) -> bool | None:
    """Return whether one of the queues is away; None if that is not known yet."""
    told = [known.get(queue) for queue in queues]
    return True if Found.AWAY in told else None if None in told else False
