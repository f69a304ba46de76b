"""What this replica owns from one rebalance to the next, and the commits that go with it.

How the commits of an epoch are kept from meeting the next one:

- The consumer awaits `on_partitions_revoked` before it sends JoinGroup, heartbeats going on. Only that request ends our
  generation, so a commit answered inside the callback is one of this epoch's.
- The callback first takes the shares away, with no await before: from then on `commit` and `affirm` find nothing owned.
- A commit that is already running holds the lock, and the final one waits for it. One that exceeds its deadline is
  abandoned; its request, if written, stands before the final one on the same connection, which the broker answers in
  order. If that connection was replaced in between, it could still come last: until the next generation begins, which
  fences it. The positions committed are then older ones of the same epoch: duplicates within its cap, never a loss.
- Every commit names the generation of its own epoch, whatever the consumer's is by then.
- Subscribing anew drops the consumer's assignment at once, before any callback; so `KafkaLog.subscribe` ends the epoch
  itself first.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import structlog
from aiokafka import TopicPartition
from aiokafka.abc import ConsumerRebalanceListener

from proxy.bridge.event_log import PartitionOwner
from proxy.errors import AssignmentLostError, LogError
from proxy.kafka_log.group import GroupCoordinator, Membership
from proxy.kafka_log.identity import Committed
from proxy.kafka_log.shares import Placing, Share, Shares
from proxy.model import Partition, Position

_say = structlog.get_logger("tidegate.kafka")


class Epoch:
    """The shares of the current epoch; none between two."""

    def __init__(
        self,
        consumer: Any,
        coordinator: GroupCoordinator,
        placing: Placing,
        owner: PartitionOwner,
        *,
        on_refused: Callable[[str], None],
        is_urgent: Callable[[str], bool],
    ) -> None:
        self._is_urgent = is_urgent
        self._consumer = consumer
        self._coordinator = coordinator
        self._placing = placing
        self._owner = owner
        self._on_refused = on_refused
        self._membership = Membership(-1, "")
        self._commits = asyncio.Lock()
        self._endings = asyncio.Lock()
        self._ending: Shares = {}
        self.shares: Shares = {}

    def begin(self, assigned: Iterable[TopicPartition]) -> None:
        """Begin an epoch; no await happens between the owner's answer and the pauses."""
        partitions = {at: Partition(*at) for at in assigned}
        paused = set(self._owner.on_assigned(list(partitions.values())))
        shares = {
            at: Share(at, is_paused=partition in paused, is_urgent=self._is_urgent(at.topic))
            for at, partition in partitions.items()
        }
        self._placing.begin(shares)
        self.shares = shares
        group = self._consumer._coordinator  # noqa: SLF001  # what the group calls us is told nowhere else
        self._membership = Membership(group.generation, group.member_id)

    async def end(self) -> None:
        """End the epoch: nothing is owned from now on; return after the final commit, or its failure."""
        shares, self.shares = self.shares, {}
        if shares:
            self._ending = shares
        async with self._endings:  # whoever comes second waits for the first one's final commit
            if shares:
                try:
                    await self._finish(shares)
                finally:
                    self._ending = {}

    async def _finish(self, shares: Shares) -> None:
        positions = await self._owner.on_revoked([share.partition for share in shares.values()])
        final = [share for partition in positions if (share := shares.get(partition)) is not None]
        for share in final:
            share.finish(positions[share.partition])
        taken: Mapping[Partition, int] = {}
        try:
            taken = await self._commit(lambda: final)
        except LogError as error:
            _say.warning("final_commit_failed", partitions=len(final), why=str(error), effect="duplicates")
        self._owner.on_ended(taken)

    async def commit(self, positions: Mapping[Partition, Position]) -> Mapping[Partition, int]:
        """Commit what is owned of the positions; see `EventLog.commit`."""
        for partition, position in positions.items():
            if (share := self.shares.get(partition)) is not None:
                share.finish(position)
        return await self._commit(lambda: [share for partition in positions if (share := self.shares.get(partition))])

    async def pin(self, shares: Collection[Share]) -> None:
        """Commit where the shares begin, so that they begin there again whatever comes. Raises `LogError`."""
        await self._commit(lambda: [share for share in shares if self.shares.get(share.at) is share])

    async def affirm(self) -> bool:
        """Ask the group, by a heartbeat, whether it still knows this replica; True at once if nothing is owned.

        Raises `AssignmentLostError` if it does not.
        """
        if not self.shares:
            return True
        membership = self._membership
        try:
            await self._coordinator.affirm(membership)
        except AssignmentLostError:
            if self._membership is membership and self.shares:
                raise
            return False  # it was asked for an epoch that has ended meanwhile
        except LogError:
            return False
        return True

    async def progress(self) -> dict[Partition, int]:
        """Return what others committed; what is committed for a share is our doing until after the final commit."""
        ours = {*self.shares, *self._ending}
        committed = await self._coordinator.progress()
        ours |= {*self.shares, *self._ending}
        return {Partition(*at): told.offset for at, told in committed.items() if at not in ours}

    async def _commit(self, choose: Callable[[], Collection[Share]]) -> dict[Partition, int]:
        """Commit what is done of the shares chosen, once it is this commit's turn; return what the group took."""
        async with self._commits:
            offsets = {one.at: Committed(one.done, one.topic_id) for one in choose() if one.began is not None}
            if not offsets:
                return {}
            taken = await self._coordinator.commit(self._membership, offsets)
            for topic in taken.refused:
                self._on_refused(topic)
            return {Partition(*at): offsets[at].offset for at in offsets if at in taken.partitions}


class Rebalances(ConsumerRebalanceListener):  # type: ignore[misc]  # the library is untyped
    """Takes the consumer's calls; it would only log what they raise, so that goes to `on_failure` instead."""

    def __init__(self, epoch: Epoch, *, on_begin: Callable[[], None], on_failure: Callable[[Exception], None]) -> None:
        self._epoch = epoch
        self._on_begin = on_begin
        self._on_failure = on_failure

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Begin an epoch."""
        try:
            self._epoch.begin(assigned)
        except Exception as error:  # noqa: BLE001  # handed on, see the class
            self._on_failure(error)
        self._on_begin()

    async def on_partitions_revoked(self, _: set[TopicPartition]) -> None:
        """End the epoch; what it owns is known there, the consumer has forgotten it if it was subscribed anew."""
        try:
            await self._epoch.end()
        except Exception as error:  # noqa: BLE001  # handed on, see the class
            self._on_failure(error)
