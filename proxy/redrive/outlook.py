"""Whether the queues exist that letters would go to, for a dry run: a real one finds out by sending."""

from collections.abc import Sequence

from proxy.bridge.broker import DepthMonitor
from proxy.redrive.choice import Going
from proxy.settings import Settings


class Outlook:
    """Asks once for each queue."""

    def __init__(self, monitor: DepthMonitor, settings: Settings) -> None:
        self._monitor = monitor
        self._settings = settings
        self._exists: dict[str, bool] = {}

    async def lacks(self, going: Going) -> str:
        """Return why a letter would stay: nothing is known of one of its queues; else an empty text.

        Raises `BrokerError`.
        """
        kind = going.event_type
        unknown = await self._unknown(self._settings.routes[kind.route].way(kind.name, kind.routing_key))
        return f"nothing is known of {', '.join(unknown)}" if unknown else ""

    async def _unknown(self, queues: Sequence[str]) -> list[str]:
        while unasked := [queue for queue in queues if queue not in self._exists]:
            states = await self._monitor.poll(unasked)
            told = {queue: state is not None for queue, state in states.items()}
            self._exists.update(told or dict.fromkeys(unasked, False))
        return sorted(queue for queue in queues if not self._exists[queue])
