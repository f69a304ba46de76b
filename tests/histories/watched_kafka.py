"""The production `KafkaLog` as a replica of a wire history gets it: real client inside, the witness listening in."""

import asyncio
from collections.abc import Callable, Mapping

from proxy.bridge.assignment import Assignment
from proxy.bridge.event_log import PartitionOwner
from proxy.kafka_log import KafkaLog
from proxy.model import Event, Partition, Position
from proxy.settings import Limits, LogSettings
from tests.histories.watched import WatchedOwner, show_commit, show_fetched
from tests.histories.witness import Witness


class WatchedKafkaLog(KafkaLog):
    """Tells the witness what the bridge is handed; `kill` ends whatever runs in a process."""

    def __init__(
        self, settings: LogSettings, limits: Limits, *, name: str, witness: Witness, kill: Callable[[str], None]
    ) -> None:
        super().__init__(settings, limits)
        self.name = name
        self.is_committing = False
        self._witness = witness
        self._kill = kill
        self._listeners: Assignment

    @property
    def generation(self) -> int:
        """The last one that it is a part of."""
        return int(self._consumer._coordinator.generation)

    async def start(self, owner: PartitionOwner) -> None:
        """See `EventLog`."""
        assert isinstance(owner, Assignment)
        self._listeners = owner
        await super().start(WatchedOwner(owner, self, self._witness))

    async def poll(self, wait: float) -> Mapping[Partition, list[Event]]:
        """See `EventLog`."""
        fetched = await super().poll(wait)
        show_fetched(fetched, self._listeners, self.name, self._witness)
        return fetched

    async def commit(self, positions: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """See `EventLog`."""
        self.is_committing = True
        try:
            return await show_commit(super().commit, positions, self.name, self._witness)
        finally:
            self.is_committing = False

    def cut_off(self) -> None:
        """Close its sockets, as the death of its process does."""
        self._stopped = True  # that a task of it ends orderly while it is cleared away commits nothing
        self._kill(self.name)

    async def sever(self) -> None:
        """Clear away what the client has left."""
        consumer = self._consumer
        for client in (self._client, consumer and consumer._client):
            for connection in client._conns.values() if client is not None else ():
                connection.close()
        if consumer is not None:
            consumer._closed = True  # or it would complain when it is collected, at any moment
        await asyncio.sleep(0)
        self._kill(self.name)

    def rewind(self, *_: object) -> bool:
        """Return False: what Kafka's client has handed out it hands out again only after it failed."""
        return False
