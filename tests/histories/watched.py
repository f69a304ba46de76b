"""Log and lanes as a replica gets them: the memory ones, with the witness listening in."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from proxy.bridge.assignment import Assignment
from proxy.bridge.broker import Batch, Lane
from proxy.bridge.event_log import Beginning, PartitionOwner
from proxy.bridge.flow import PartitionFlow
from proxy.model import Event, Outcome, Partition, Position
from proxy.publish_lane import PublishLane
from proxy.settings import Limits, LogSettings
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog
from tests.histories.witness import Witness


class WatchedLog(MemoryLog):
    """Tells the witness what the bridge is handed."""

    def __init__(
        self, cluster: MemoryCluster, settings: LogSettings, limits: Limits, *, name: str, witness: Witness
    ) -> None:
        super().__init__(cluster, settings, limits, name=name)
        self.name = name
        self._witness = witness
        self._listeners: Assignment

    async def start(self, owner: PartitionOwner) -> None:
        """See `EventLog`."""
        assert isinstance(owner, Assignment)
        self._listeners = owner
        await super().start(_WatchedOwner(owner, self, self._witness))

    async def poll(self, wait: float) -> Mapping[Partition, list[Event]]:
        """See `EventLog`; nothing may come of what the bridge has paused."""
        fetched = await super().poll(wait)
        for partition in fetched:
            listener = self._listeners.listeners.get(partition.topic)
            if listener is not None and listener.inbox.is_paused:
                self._witness.accuse(f"{self.name} reads {partition} although its type is paused")
        self._witness.on_fetched(self.name, fetched)
        return fetched

    async def _join(self) -> None:
        self._witness.on_joining()
        await super()._join()


class _WatchedOwner:
    def __init__(self, owner: Assignment, log: WatchedLog, witness: Witness) -> None:
        self._owner = owner
        self._log = log
        self._name = log.name
        self._witness = witness

    def on_assigned(self, partitions: Collection[Partition]) -> Collection[Partition]:
        self._witness.on_assigned(self._name, partitions, self._log.generation)
        paused = self._owner.on_assigned(partitions)
        for partition in partitions:
            listener = self._owner.listeners.get(partition.topic)
            flow = listener.inbox.flows.get(partition) if listener is not None else None
            if flow is not None:
                watch_flow(flow, self._name, self._witness)
        return paused

    async def on_revoked(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        self._witness.on_revoking(self._name)
        try:
            return await self._owner.on_revoked(partitions)
        finally:
            self._witness.on_revoked(self._name, partitions)

    def on_begun(self, partition: Partition, beginning: Beginning) -> None:
        self._owner.on_begun(partition, beginning)

    def on_ended(self, taken: Mapping[Partition, int]) -> None:
        self._owner.on_ended(taken)

    def on_truncated(self, partition: Partition, lost: int, first: int) -> None:
        self._witness.on_truncated(self._name, partition, lost)
        self._owner.on_truncated(partition, lost, first)


def watch_flow(flow: PartitionFlow, name: str, witness: Witness) -> None:
    """Have the witness told of every outcome that the flow is told of."""
    epoch, tell = witness.epochs[name, flow.partition], flow.on_outcome

    def on_outcome(batch: Batch, start: int, end: int, outcome: Outcome, **more: Any) -> None:
        witness.on_outcome(name, epoch, batch, start, end, outcome)
        tell(batch, start, end, outcome, **more)

    flow.__dict__.update(on_outcome=on_outcome, epoch=epoch)


class WatchedLetters:
    """The dead-letter lane: a `Lane` that tells the witness of every outcome."""

    def __init__(self, lane: PublishLane, name: str, witness: Witness) -> None:
        self._lane = lane
        self._name = name
        self._witness = witness
        self.run = lane.run
        self.withdraw = lane.withdraw
        self.oldest = lane.oldest

    @property
    def state(self) -> Any:
        """See `Lane`."""
        return self._lane.state

    @property
    def in_flight(self) -> int:
        """See `Lane`."""
        return self._lane.in_flight

    async def publish(self, batches: Sequence[Batch]) -> None:
        """See `Lane`."""
        for batch in batches:
            letter: Any = batch.recipient
            if "on_outcome" not in letter.__dict__:
                letter.__dict__["on_outcome"] = self._watched(letter)
        await self._lane.publish(batches)

    def _watched(self, letter: Any) -> Callable[..., None]:
        tell = letter.on_outcome
        epoch = letter.flow.__dict__.get("epoch")

        def on_outcome(batch: Batch, start: int, end: int, outcome: Outcome, **more: Any) -> None:
            reason = str(letter.reason.value)
            self._witness.on_letter_outcome(self._name, epoch, batch, start, end, outcome, reason)
            tell(batch, start, end, outcome, **more)

        return on_outcome


def letters_lane(lane: PublishLane, name: str, witness: Witness) -> Lane:
    """Return the dead-letter lane, watched."""
    return WatchedLetters(lane, name, witness)
