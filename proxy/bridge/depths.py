"""The latest depth of every watched queue; a monitor that fails leaves it unknown and never stops the data."""

import asyncio
from collections.abc import Collection, Mapping

import structlog

from proxy.bridge.broker import DepthMonitor, QueueState
from proxy.errors import BrokerError

_say = structlog.get_logger("tidegate.depths")

RETRY = 1.0
"""Seconds before a monitor that failed is asked again."""


class Depths:
    """Polls the monitor and remembers its last answer."""

    def __init__(self, monitor: DepthMonitor, queues: Collection[str], interval: float) -> None:
        self._monitor = monitor
        self._queues = queues
        self._interval = interval
        self._states: Mapping[str, QueueState | None] = {}
        self._is_blind = False

    def of(self, queue: str) -> QueueState | None:
        """Return the queue's last known state; None if it does not exist or the monitor is blind."""
        return self._states.get(queue)

    def known(self) -> dict[str, QueueState]:
        """Return the last state of every queue that exists; empty while the monitor is blind."""
        return {queue: state for queue, state in self._states.items() if state is not None}

    async def run(self) -> None:
        """Poll until cancelled."""
        if not self._queues:
            return
        try:
            while True:
                pause = self._interval if await self._poll() else RETRY
                await asyncio.sleep(pause)
        finally:
            await self._monitor.close()

    async def _poll(self) -> bool:
        try:
            states = await self._monitor.poll(self._queues)
        except BrokerError as error:
            self._states = {}
            if not self._is_blind:
                _say.warning("monitor_blind", why=str(error), effect="queue depths are unknown; data flows on")
            self._is_blind = True
            return False
        for queue in self._queues:
            if states.get(queue) is None and (self._states.get(queue) is not None or not self._states):
                _say.warning("queue_missing", queue=queue, remedy="create it, or take it out of the route's queues")
        if self._is_blind:
            _say.info("monitor_sees_again")
        self._is_blind = False
        self._states = states
        return True
