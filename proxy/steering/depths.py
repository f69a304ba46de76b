"""The latest depth of every watched queue; a monitor that fails leaves it unknown and never stops the data."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

import structlog

from proxy.bridge.broker import DepthMonitor, QueueState
from proxy.errors import BrokerError
from proxy.steering.rota import Rota

_say = structlog.get_logger("tidegate.depths")

RETRY = 1.0
"""Seconds before a monitor that failed is asked again."""
POLLS = 1_000
"""Questions a second in all, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a queue, and how old that is."""

    state: QueueState | None
    """None: it did not exist."""
    at: float
    """When the answer came, by the loop's clock in seconds."""
    interval: float
    """Seconds between two questions for this queue as things are now; an answer older than three of them is too old."""


class Depths:
    """Polls the monitor and remembers its last answers: queues in use every `interval` seconds, idle ones in turn."""

    def __init__(self, monitor: DepthMonitor, queues: Collection[str], interval: float, polls: float = POLLS) -> None:
        self._monitor = monitor
        self._queues = queues
        self._interval = interval
        self._rota = Rota(queues, interval, polls)
        self._seen: dict[str, tuple[QueueState | None, float]] = {}
        self.is_blind = False
        """Whether the last poll failed."""
        self.on_polled: Callable[[], None] = lambda: None
        """Called after every poll, also after one that failed; to be set by whoever wants to act at once."""

    def of(self, queue: str) -> QueueState | None:
        """Return the queue's last known state; None if it does not exist or the monitor is blind."""
        state, _ = self._seen.get(queue, (None, 0.0))
        return None if self.is_blind else state

    def known(self) -> dict[str, QueueState]:
        """Return the last state of every queue that exists; empty while the monitor is blind."""
        if self.is_blind:
            return {}
        return {queue: state for queue, (state, _) in self._seen.items() if state is not None}

    def seen(self, queue: str) -> Seen | None:
        """Return the last answer however old it is, while the monitor is blind too; None if there never was one."""
        if queue not in self._seen:
            return None
        state, at = self._seen[queue]
        return Seen(state, at, self._rota.interval(queue))

    async def run(self) -> None:
        """Poll until cancelled."""
        if not self._queues:
            return
        now = asyncio.get_running_loop().time
        try:
            while True:
                began = now()
                pause = self._interval if await self._poll(began) else RETRY
                self.on_polled()
                await asyncio.sleep(max(0.0, began + pause - now()))
        finally:
            await self._monitor.close()

    async def _poll(self, began: float) -> bool:
        asked = self._rota.due(began)
        if not asked:
            return True
        try:
            states = await self._monitor.poll(asked)
        except BrokerError as error:
            if not self.is_blind:
                _say.warning("monitor_blind", why=str(error), effect="queue depths are unknown; data flows on")
            self.is_blind = True
            return False
        now = asyncio.get_running_loop().time()
        for queue in asked:
            if queue not in states:
                continue
            state = states[queue]
            if state is None and (queue not in self._seen or self._seen[queue][0] is not None):
                _say.warning(
                    "queue_missing",
                    queue=queue,
                    effect="a route of class_budget that names it is blind: none of its rates grows",
                    remedy="create it, or take it out of the route's queues",
                )
            self._seen[queue] = state, now
            self._rota.tell(queue, now, is_deep=state is not None and state.ready > 0)
        if self.is_blind:
            _say.info("monitor_sees_again")
        self.is_blind = False
        return True
