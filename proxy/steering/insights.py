"""What the broker's statistics tell of the watched queues beyond depth; off unless a source is named.

They are some seconds old and only add to what is known: without them, or while they fail, everything else goes on.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

import structlog

from proxy.bridge.broker import QueueInsight, QueueInsights
from proxy.congestion.unacked import UnackedGrowth
from proxy.errors import BrokerError

_say = structlog.get_logger("tidegate.insights")

STALE_AFTER = 3
"""Pauses, after which an answer says nothing any more."""
MOST_OF_TIME = 10
"""A pause is at least so many times as long as the answer took: a broker with very many queues is asked less often."""


@dataclass(frozen=True, slots=True)
class _Known:
    insight: QueueInsight
    at: float


class Insights:
    """Asks every `interval` seconds, less often where answers take long, and remembers the last ones."""

    def __init__(self, source: QueueInsights, queues: Collection[str], interval: float) -> None:
        self._source = source
        self._queues = queues
        self._interval = interval
        self._changed = asyncio.Event()
        self._pause = interval
        self._known: dict[str, _Known] = {}
        self._growths: dict[str, UnackedGrowth] = {}
        self.is_blind = False
        """Whether the last question failed."""

    def watch(self, queues: Collection[str]) -> None:
        """Ask for these queues from now on."""
        self._queues = queues
        for queue in self._known.keys() - set(queues):
            del self._known[queue], self._growths[queue]
        self._changed.set()

    def of(self, queue: str) -> QueueInsight | None:
        """Return the last answer; None if there is none, the queue does not exist, or it is older than 3 pauses."""
        known = self._known.get(queue)
        if known is None or asyncio.get_running_loop().time() - known.at > STALE_AFTER * self._pause:
            return None
        return known.insight

    def is_growing(self, queue: str) -> bool | None:
        """Return whether messages pile up unacknowledged at consumers that have stopped; None if that is not known."""
        return None if self.of(queue) is None else self._growths[queue].is_growing

    async def run(self) -> None:
        """Ask until cancelled."""
        while not self._queues:
            self._changed.clear()
            await self._changed.wait()
        now = asyncio.get_running_loop().time
        try:
            while True:
                began = now()
                await self._ask()
                self._pause = max(self._interval, MOST_OF_TIME * (now() - began))
                await asyncio.sleep(self._pause)
        finally:
            await self._source.close()

    async def _ask(self) -> None:
        try:
            queues = self._queues
            found = await self._source.ask(queues)
        except BrokerError as error:
            if not self.is_blind:
                _say.warning(
                    "insights_blind",
                    why=str(error),
                    effect="unacknowledged messages are not known; all else goes on without them",
                )
            self.is_blind = True
            return
        if self.is_blind:
            _say.info("insights_back")
        self.is_blind = False
        now = asyncio.get_running_loop().time()
        for queue in self._queues if self._queues is queues else ():
            insight = found.get(queue)
            if insight is None:
                self._known.pop(queue, None)
                self._growths.pop(queue, None)
            else:
                self._known[queue] = _Known(insight, now)
                self._growths.setdefault(queue, UnackedGrowth()).add(now, insight.unacked, insight.acked)
