"""Which partitions this replica owns, and what of them is done: the bridge's side of every rebalance."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping

import structlog

from proxy.bridge.account import Account
from proxy.bridge.event_log import Beginning
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.lease import Lease
from proxy.bridge.listener import Listener
from proxy.bridge.move import Moved
from proxy.bridge.offsets import counted
from proxy.model import Partition, Position

_say = structlog.get_logger("tidegate")


class Assignment:
    """Finds the listener of each partition. A `PartitionOwner`."""

    def __init__(
        self,
        lease: Lease,
        settled: asyncio.Event,
        grace: float,
        account: Account,
        place: Callable[[Position], int] | None = None,
    ) -> None:
        """Make one; without `place` the log takes all of what it is offered, or nothing."""
        self.listeners = dict[str, Listener]()
        """By topic."""
        self._lease = lease
        self._settled = settled
        self._grace = grace
        """Seconds to await confirms before partitions are given away."""
        self._account = account
        self._place = place
        self._ending: dict[Partition, tuple[PartitionFlow, int]] = {}
        """Flows that were revoked or are to be moved, the last commit under way, and how many events that commits."""
        self._is_closed = False
        self.successors = dict[str, Listener]()
        """By topic, listeners that are to replace one as soon as it has no partitions left."""
        self.on_replaced: Callable[[Listener, Listener], None] = lambda _before, _after: None
        """Called in the step in which the second one has taken the first one's place."""

    def latest(self, topic: str) -> Listener:
        """Return the listener of a topic, or the one that is to replace it."""
        return self.successors.get(topic, self.listeners[topic])

    def replace(self, listener: Listener) -> None:
        """Have a listener replace that of its topic: at once if that has no partitions, else when it has given them.

        Whoever calls sees to it that they begin anew, by `EventLog.renew`; a rebalance does it as well.
        """
        self.successors[listener.event_type.topic] = listener
        self._succeed(listener.event_type.topic)

    def _succeed(self, topic: str) -> None:
        before = self.listeners.get(topic)
        if before is not None and topic in self.successors and not before.inbox.flows and not self._is_closed:
            self.listeners[topic] = after = self.successors.pop(topic)
            self.on_replaced(before, after)

    def flows(self) -> list[PartitionFlow]:
        """Return the flows of all partitions owned now."""
        return [flow for listener in self.listeners.values() for flow in listener.inbox.flows.values()]

    @property
    def owns_any(self) -> bool:
        """Whether any partition is owned now."""
        return any(listener.inbox.flows for listener in self.listeners.values())

    def owns(self, flow: PartitionFlow) -> bool:
        """Return whether the epoch of a flow still lasts."""
        listener = self.listeners.get(flow.partition.topic)
        return listener is not None and listener.inbox.flows.get(flow.partition) is flow

    def on_assigned(self, partitions: Collection[Partition]) -> Collection[Partition]:
        """See `PartitionOwner.on_assigned`."""
        self._lease.ask()
        return [partition for partition in partitions if self._open(partition)]

    def _open(self, partition: Partition) -> bool:
        """Begin an epoch; return whether the partition must be paused from the start."""
        listener = self.listeners.get(partition.topic)
        if listener is None:
            return True
        if self._is_closed:
            listener.inbox.close(partition)  # an earlier epoch's, of a log that is gone: it must commit nothing more
            return True
        return listener.open(partition)

    def on_begun(self, partition: Partition, beginning: Beginning) -> None:
        """See `PartitionOwner.on_begun`."""
        listener = self.listeners.get(partition.topic)
        flow = listener.inbox.flows.get(partition) if listener is not None else None
        if listener is not None and flow is not None:
            flow.again_until = beginning.again
            flow.topic_id = beginning.topic_id
            self._account.on_begun(listener.event_type.name, flow, beginning)

    async def on_revoked(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        """See `PartitionOwner.on_revoked`."""
        return await self._end(partitions)

    async def on_moving(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        """See `PartitionOwner.on_moving`."""
        return await self._end(partitions)

    async def _end(self, partitions: Collection[Partition]) -> Mapping[Partition, Position]:
        owned = [self.listeners[p.topic].inbox.flows.get(p) for p in partitions if p.topic in self.listeners]
        flows = [flow for flow in owned if flow is not None]
        try:
            await self.drain(flows, self._grace)
        finally:
            for flow in flows:
                if self.owns(flow):  # one that is moved may be revoked meanwhile
                    self.listeners[flow.partition.topic].inbox.close(flow.partition)
                self._succeed(flow.partition.topic)
        self._ending |= {flow.partition: (flow, flow.watermark.resolved) for flow in flows}
        # All that is done, new or not: a commit meanwhile may have left out what the log no longer counts as ours.
        return {flow.partition: flow.watermark.position for flow in flows if flow.watermark.resolved}

    def on_moved(self, moved: Moved) -> None:
        """See `PartitionOwner.on_moved`."""
        flow, resolved = self._ending.pop(moved.partition, (None, 0))
        if flow is not None:
            self._account.on_committed(flow, resolved, moved.done)
        listener = self.listeners.get(moved.partition.topic)
        if listener is not None:  # also of what was assigned after `close`, and has no flow
            self._account.on_moved(listener.event_type.name, moved)
        if flow is not None:
            self._count_uncommitted(flow, max(flow.watermark.committed, resolved))
            self._account.on_ended([flow])

    def on_renewed(self, partition: Partition, taken: int) -> None:
        """See `PartitionOwner.on_renewed`."""
        flow, resolved = self._ending.pop(partition, (None, 0))
        if flow is not None:
            self._account.on_committed(flow, resolved, taken)
            self._count_uncommitted(flow, max(flow.watermark.committed, resolved))
            self._account.on_ended([flow])

    def on_ended(self, taken: Mapping[Partition, int]) -> None:
        """See `PartitionOwner.on_ended`."""
        ending, self._ending = self._ending, {}
        left = 0
        for flow, offered in ending.values():
            committed = flow.watermark.committed
            if (end := taken.get(flow.partition)) is not None:
                position = flow.watermark.position
                resolved = offered
                if self._place is not None and position is not None and offered == flow.watermark.resolved:
                    resolved = counted(offered, self._place(position) + 1, end)
                committed = max(committed, resolved)
                self._account.on_committed(flow, resolved, end)
            left += self._count_uncommitted(flow, committed)
        if left:
            _say.warning("left_uncommitted", events=left, effect="they perhaps come again, from whoever gets them next")
        self._account.on_ended([flow for flow, _ in ending.values()])

    def on_passed(self, partition: Partition) -> None:
        """See `PartitionOwner.on_passed`."""
        listener = self.listeners.get(partition.topic)
        flow = listener.inbox.flows.get(partition) if listener is not None else None
        if listener is not None and flow is not None:
            listener.on_resolved(flow, 0)  # no event is at stake, but there is something to commit

    def on_truncated(self, partition: Partition, at_most: int, first: int) -> None:
        """See `PartitionOwner.on_truncated`."""
        self._account.on_truncated(partition, at_most, first)

    def on_last_commit(self) -> int:
        """Say what of all that is owned comes again, and count it: nothing is recorded once the log is left.

        Return how many events that were received are not done with.
        """
        marks = [flow.watermark for flow in self.flows()]
        for flow in self.flows():
            self._count_uncommitted(flow, flow.watermark.committed)
        if uncommitted := sum(mark.resolved - mark.committed for mark in marks):
            _say.warning("final_commit_failed", events=uncommitted, effect="they perhaps come again")
        if ahead := sum(mark.ahead for mark in marks):
            why = "events before them are not done with: they, or their dead letters, could not go"
            _say.warning("stopped_ahead", events=ahead, why=why, effect="they come again")
        return sum(mark.received - mark.resolved for mark in marks)

    def _count_uncommitted(self, flow: PartitionFlow, committed: int) -> int:
        """Count and return what the broker has, or may have, of a flow that ends."""
        listener = self.listeners.get(flow.partition.topic)
        if listener is None:
            return 0
        count = flow.watermark.done_beyond(committed) + flow.out + flow.doubtful
        listener.counts.on_uncommitted(count)
        return count

    def close(self) -> None:
        """Begin nothing from partitions that are assigned from now on."""
        self._is_closed = True

    async def drain(self, flows: Collection[PartitionFlow], grace: float) -> int:
        """Stop sending from the flows and wait up to `grace` seconds for the outcomes of what is written.

        Dead letters are awaited like events. Returns how many events and letters have no outcome then, or an unknown
        one: the broker may have them.
        """
        for flow in flows:
            self.listeners[flow.partition.topic].let_go([flow])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while any(flow.out or flow.letters_out for flow in flows):
                    self._settled.clear()
                    await self._settled.wait()
        return sum(flow.out + flow.letters_out + flow.doubtful for flow in flows)
