"""What a replica does, shown to the witness: what its log hands it, and how its events end."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

from proxy.bridge.assignment import Assignment
from proxy.bridge.broker import Batch, QueueFinder
from proxy.bridge.event_log import Beginning, PartitionOwner
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.move import Moved
from proxy.bridge.returned import Returned
from proxy.bridge.returns import Returns
from proxy.model import Event, Outcome, Partition, Position, Reason
from proxy.settings import Limits, LogSettings
from proxy.simulation.memory_cluster import MemoryCluster
from proxy.simulation.memory_log import MemoryLog
from tests.histories.tokens import Tokens
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
        await super().start(WatchedOwner(owner, self, self._witness))

    async def poll(self, wait: float) -> Mapping[Partition, list[Event]]:
        """See `EventLog`; nothing may come of what the bridge has paused."""
        fetched = await super().poll(wait)
        show_fetched(fetched, self._listeners, self.name, self._witness)
        return fetched

    async def commit(self, positions: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """See `EventLog`."""
        return await show_commit(super().commit, positions, self.name, self._witness)

    def cut_off(self) -> None:
        """Let nothing more of it pass to the log or back: its process was killed."""
        self._cluster.cut_off(self.name)

    async def _join(self) -> None:
        self._witness.on_joining()
        await super()._join()


def show_fetched(
    fetched: Mapping[Partition, Sequence[Event]], assignment: Assignment, name: str, witness: Witness
) -> None:
    """Tell the witness what a replica was handed; nothing may come of what the bridge has paused."""
    for partition in fetched:
        listener = assignment.listeners.get(partition.topic)
        if listener is not None and partition in listener.inbox.flows and listener.inbox.pauses(partition):
            witness.accuse(f"{name} reads {partition} although it is paused")
    witness.on_fetched(name, fetched)


async def show_commit(
    commit: Callable[[Mapping[Partition, Position | None]], Awaitable[Mapping[Partition, int]]],
    positions: Mapping[Partition, Position | None],
    name: str,
    witness: Witness,
) -> Mapping[Partition, int]:
    """Commit, and tell the witness what the log took of the epochs that still last then."""
    booked = {partition: witness.ranges.current(name, partition) for partition in positions}
    taken = await commit(positions)
    for partition, end in taken.items():
        epoch = booked[partition]
        if epoch is not None and epoch is witness.ranges.current(name, partition):
            witness.on_taken(partition, epoch, end)
    return taken


class Log(Protocol):
    """A watched log of either kind."""

    name: str

    @property
    def generation(self) -> int:
        """The last one that it is a part of."""
        ...


class WatchedOwner:
    """Tells the witness what a log tells its owner."""

    def __init__(self, owner: Assignment, log: Log, witness: Witness) -> None:
        self._owner = owner
        self._log = log
        self._name = log.name
        self._witness = witness

    def on_assigned(self, partitions: Collection[Partition]) -> Collection[Partition]:
        """See `PartitionOwner`."""
        self._witness.on_assigned(self._name, partitions, self._log.generation)
        paused = self._owner.on_assigned(partitions)
        for partition in partitions:
            listener = self._owner.listeners.get(partition.topic)
            flow = listener.inbox.flows.get(partition) if listener is not None else None
            if flow is not None:
                self._witness.epoch_of[flow] = self._witness.epochs[self._name, partition]
        return paused

    async def on_revoked(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        """See `PartitionOwner`."""
        self._witness.on_revoking(self._name)
        try:
            return await self._owner.on_revoked(partitions)
        finally:
            self._witness.on_revoked(self._name, partitions)

    def on_begun(self, partition: Partition, beginning: Beginning) -> None:
        """See `PartitionOwner`."""
        self._owner.on_begun(partition, beginning)
        listener = self._owner.listeners.get(partition.topic)
        if listener is not None and partition in listener.inbox.flows:
            self._witness.on_begun(self._name, partition, beginning)

    async def on_moving(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        """See `PartitionOwner`."""
        self._witness.note(f"{self._name} is to move {', '.join(map(str, partitions))}")
        return await self._owner.on_moving(partitions)

    def on_moved(self, moved: Moved) -> None:
        """See `PartitionOwner`."""
        self._witness.on_moved(self._name, moved)
        self._owner.on_moved(moved)

    def on_renewed(self, partition: Partition, taken: int) -> None:
        """See `PartitionOwner`."""
        self._on_taken(partition, taken)
        self._owner.on_renewed(partition, taken)

    def on_ended(self, taken: Mapping[Partition, int]) -> None:
        """See `PartitionOwner`."""
        for partition, end in taken.items():
            self._on_taken(partition, end)
        self._owner.on_ended(taken)

    def _on_taken(self, partition: Partition, end: int) -> None:
        epoch = self._witness.ranges.current(self._name, partition)
        if epoch is not None:
            self._witness.on_taken(partition, epoch, end)

    def on_passed(self, partition: Partition) -> None:
        """See `PartitionOwner`."""
        self._owner.on_passed(partition)

    def on_truncated(self, partition: Partition, at_most: int, first: int) -> None:
        """See `PartitionOwner`."""
        self._witness.on_truncated(self._name, partition, at_most, first)
        self._owner.on_truncated(partition, at_most, first)


class WatchedBridge:
    """The `Observer` of one replica: tells the witness of every outcome, counts every token."""

    def __init__(self, name: str, witness: Witness) -> None:
        self.tokens = Tokens()
        self._name = name
        self._witness = witness

    def on_outcome(
        self, flow: PartitionFlow, batch: Batch, start: int, end: int, outcome: Outcome, _seconds: float | None
    ) -> None:
        """See `Observer`."""
        self._witness.on_outcome(self._name, self._witness.epoch_of[flow], batch, start, end, outcome)

    def on_letter_outcome(
        self, flow: PartitionFlow, batch: Batch, start: int, end: int, outcome: Outcome, reason: Reason
    ) -> None:
        """See `Observer`."""
        epoch = self._witness.epoch_of.get(flow)
        self._witness.on_letter_outcome(self._name, epoch, batch, start, end, outcome, str(reason.value))

    def on_discarded(self, flow: PartitionFlow, batch: Batch) -> None:
        """See `Observer`."""
        self._witness.on_discarded(self._name, self._witness.epoch_of[flow], batch)

    def on_used(self, route: str, events: int, work: float, size: float) -> None:
        """See `Observer`."""
        self.tokens.use(route, {"event": events, "work": work, "byte": size})


class WatchedReturns(Returns):
    """Tells the witness what is in question: it has left the lane, and its flow has not been told."""

    def __init__(self, finder: QueueFinder, witness: Witness, name: str) -> None:
        super().__init__(finder)
        self._witness = witness
        self._name = name

    def ask(self, returned: Sequence[Returned]) -> bool:
        """See `Returns`."""
        is_asked = super().ask(returned)
        for one in returned if is_asked else ():
            self._witness.on_returned(self._name, one.batch, one.start, one.end)
        return is_asked
