"""Whether the queues exist that letters would go to, for a dry run: a real one finds out by sending."""

from collections.abc import Sequence

from proxy.bridge.broker import DepthMonitor


class Outlook:
    """Asks once for each queue."""

    def __init__(self, monitor: DepthMonitor) -> None:
        self._monitor = monitor
        self._exists: dict[str, bool] = {}

    async def unknown(self, queues: Sequence[str]) -> list[str]:
        """Return those of which the broker tells nothing, sorted. Raises `BrokerError`."""
        while unasked := [queue for queue in queues if queue not in self._exists]:
            states = await self._monitor.poll(unasked)
            told = {queue: state is not None for queue, state in states.items()}
            self._exists.update(told or dict.fromkeys(unasked, False))
        return sorted(queue for queue in queues if not self._exists[queue])
