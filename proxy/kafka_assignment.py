"""What this replica owns now, and the commits that go with it.

How a rebalance and the commits of an epoch are kept apart, given how aiokafka does it:

- It awaits `on_partitions_revoked` before it sends JoinGroup, heartbeats going on. Only that request ends our
  generation, so a commit answered inside the callback is one of this epoch's.
- The callback first takes the shares away, with no await before: `commit` and `affirm` find nothing owned from then on.
  A commit that is already running holds the lock, and the final one waits for it. One that exceeds its deadline is
  abandoned, but its request, already written, stands before the final one on the same connection, which the broker
  answers in order; were the connection replaced between the two, the worst would be duplicates, never a loss.
- A commit carries the generation the library has *now*, and -1 once it was fenced, which an empty group accepts. So the
  generation of the assignment is kept, and nothing is committed under another.
- Subscribing anew drops the assignment at once, before any callback; what was held could no longer be committed.
  Therefore `KafkaLog.subscribe` ends the epoch itself first.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import structlog
from aiokafka import TopicPartition, errors
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.structs import OffsetAndMetadata

from proxy.bridge.event_log import PartitionOwner
from proxy.errors import AssignmentLostError, LogError
from proxy.kafka_client import Reach
from proxy.kafka_shares import Placing, Share, Shares
from proxy.model import Partition, Position

log = structlog.get_logger()


class Assignment:
    """The shares of the current epoch; none between two epochs."""

    def __init__(
        self,
        consumer: Any,
        owner: PartitionOwner,
        placing: Placing,
        reach: Reach,
        *,
        commit_deadline: float,
        on_refused: Callable[[str], None],
    ) -> None:
        self._consumer = consumer
        self._owner = owner
        self._placing = placing
        self._reach = reach
        self._deadline = commit_deadline
        self._on_refused = on_refused
        self._generation = -1
        self._commits = asyncio.Lock()
        self._endings = asyncio.Lock()
        self.shares: Shares = {}

    def begin(self, assigned: Iterable[TopicPartition]) -> None:
        """Begin an epoch; no await happens between the owner's answer and the pauses."""
        partitions = {at: Partition(*at) for at in assigned}
        paused = set(self._owner.on_assigned(list(partitions.values())))
        shares = {at: Share(at, is_paused=partition in paused) for at, partition in partitions.items()}
        self._placing.begin(shares)
        self.shares = shares
        self._generation = self._generation_now()
        self._reach.found("group")
        log.info("partitions_assigned", count=len(shares))

    async def end(self) -> None:
        """End the epoch: nothing is owned from now on; return after the final commit, or its failure."""
        shares, self.shares = self.shares, {}
        async with self._endings:  # whoever comes second waits for the first one's final commit
            if not shares:
                return
            positions = await self._owner.on_revoked([share.partition for share in shares.values()])
            final = [share for partition in positions if (share := shares.get(partition)) is not None]
            for share in final:
                share.finish(positions[share.partition])
            try:
                await self._commit(lambda: final)
            except LogError as error:
                log.warning("final_commit_failed", partitions=len(final), reason=str(error))

    async def commit(self, positions: Mapping[Partition, Position]) -> None:
        """Commit what is owned of the positions in one request.

        Raises `AssignmentLostError` if the group has fenced this replica, `LogError` if there is no answer in time.
        """
        for partition, position in positions.items():
            if (share := self.shares.get(partition)) is not None:
                share.finish(position)
        await self._commit(lambda: [share for partition in positions if (share := self.shares.get(partition))])

    async def affirm(self) -> bool:
        """Commit again what is committed, or where the epoch began, for one share: the group checks who asks.

        True without asking if nothing is owned; False if nothing of what is owned has been placed yet.
        """
        if not self.shares:
            return True
        asked = next((share for share in self.shares.values() if share.began is not None), None)
        if asked is None:
            return False
        try:
            await self._commit(lambda: [asked] if self.shares.get(asked.at) is asked else [])
        except LogError:
            return False
        return True

    async def _commit(self, choose: Callable[[], Collection[Share]]) -> None:
        """Commit what is done of the shares chosen once it is this commit's turn."""
        try:
            async with asyncio.timeout(self._deadline), self._commits:
                offsets = {share.at: OffsetAndMetadata(share.done, "") for share in choose() if share.began is not None}
                if not offsets:
                    return
                if self._generation_now() != self._generation:
                    raise AssignmentLostError("the group has fenced this replica")
                await self._consumer.commit(offsets)
        except (errors.CommitFailedError, errors.IllegalStateError) as error:
            raise AssignmentLostError(f"the group has fenced this replica: {error}") from error
        except TimeoutError as error:
            reason = f"no answer to a commit within {self._deadline:g} s"
            self._reach.lost("group", reason)
            raise LogError(f"the log gave {reason}") from error
        except errors.TopicAuthorizationFailedError as error:
            refused = sorted(error.args[0])
            for topic in refused:
                self._on_refused(topic)
            raise LogError(f"the log refuses commits for topics {', '.join(refused)}") from error
        except errors.KafkaError as error:
            self._reach.lost("group", str(error))
            raise LogError(f"the log refuses a commit: {error}") from error
        self._reach.found("group")

    def _generation_now(self) -> int:
        generation: int = self._consumer._coordinator.generation  # noqa: SLF001  # told nowhere else
        return generation


class Rebalances(ConsumerRebalanceListener):  # type: ignore[misc]  # the library is untyped
    """Takes the consumer's calls; it would only log what they raise, so that goes to `on_failure` instead."""

    def __init__(
        self, assignment: Assignment, *, on_begin: Callable[[], None], on_failure: Callable[[Exception], None]
    ) -> None:
        self._assignment = assignment
        self._on_begin = on_begin
        self._on_failure = on_failure

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Begin an epoch."""
        try:
            self._assignment.begin(assigned)
        except Exception as error:  # noqa: BLE001  # handed on, see the class
            self._on_failure(error)
        self._on_begin()

    async def on_partitions_revoked(self, _: set[TopicPartition]) -> None:
        """End the epoch; what it owns is known here better than to the consumer."""
        try:
            await self._assignment.end()
        except Exception as error:  # noqa: BLE001  # handed on, see the class
            self._on_failure(error)
