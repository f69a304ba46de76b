"""What this replica owns from one rebalance to the next, and the commits that go with it.

How the commits of an epoch are kept from meeting the next one:

- The consumer awaits `on_partitions_revoked` before it sends JoinGroup, heartbeats going on. Only that request ends our
  generation, so a commit answered inside the callback is one of this epoch's.
- The callback first takes the shares away, with no await before: from then on `commit` and `affirm` find nothing owned.
- A commit that is already running holds the lock, and the final one waits for it. One that exceeds its deadline is
  abandoned; its request, if written, stands before the final one on the same connection, which the broker answers in
  order. If that connection was replaced in between, it could still come last: until the next generation begins, which
  fences it. The positions committed are then older ones of the same epoch: duplicates within its cap, never a loss.
  So that they don't stay where nothing follows, what is done is committed once more a while after such a commit.
- Every commit names the generation of its own epoch, whatever the consumer's is by then.
- Subscribing anew drops the consumer's assignment at once, before any callback; so `KafkaLog.subscribe` ends the epoch
  itself first.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

import structlog

from proxy.bridge.event_log import PartitionOwner
from proxy.bridge.move import Moved
from proxy.errors import AssignmentLostError, LogError
from proxy.model import Partition, Position
from proxy.positions.identity import Committed
from proxy.positions.placing import Placing
from proxy.positions.port import Fetches, Group, Membership
from proxy.positions.share import Share, Shares

_say = structlog.get_logger("tidegate.positions")


DOUBT = 15.0
"""Seconds for which a topic is in doubt after a commit without it: brokers may still name what is gone."""
REPEAT_AFTER = 5.0
"""Seconds after which what is done is committed once more, if an older commit may have come last by then."""


class Epoch:
    """The shares of the current epoch; none between two."""

    def __init__(
        self,
        fetches: Fetches,
        group: Group,
        placing: Placing,
        owner: PartitionOwner,
        *,
        on_refused: Callable[[str], None],
    ) -> None:
        self._fetches = fetches
        self._group = group
        self._placing = placing
        self._owner = owner
        self._on_refused = on_refused
        self._membership = Membership(-1, "")
        self._commits = asyncio.Lock()
        self._endings = asyncio.Lock()
        self._ending: Shares = {}
        self._repeat_at: float | None = None
        """When everything is to be committed once more."""
        self._doubtful_until = float("-inf")
        self._leaves_out = False
        """The group did not take all of the last commit."""
        self.shares: Shares = {}

    def begin(self, partitions: Collection[Partition], membership: Membership) -> None:
        """Begin an epoch; no await happens between the owner's answer and the pauses."""
        paused = set(self._owner.on_assigned(partitions))
        shares = {at: Share(at, is_paused=at in paused) for at in partitions}
        self._placing.begin(shares)
        self.shares = shares
        self._membership = membership
        self._repeat_at = None

    @property
    def member(self) -> str:
        """What the group calls this replica, as of the last epoch; empty before the first."""
        return self._membership.member_id

    @property
    def is_left_out(self) -> bool:
        """Whether the group has lately left something out of a commit: the topic may be gone.

        For a while, owned or not: the group takes the partitions of a topic that is gone away, and brokers may name it
        for some seconds more.
        """
        return asyncio.get_running_loop().time() < self._doubtful_until

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
        ended = [share for partition in positions if (share := shares.get(partition)) is not None]
        self.note(ended, positions)
        ended += [
            share for share in shares.values() if (share.moving is not None or share.is_let_go) and share not in ended
        ]
        final = ended if self._repeat_at is None else list(shares.values())
        taken: Mapping[Partition, int] = {}
        try:
            taken = await self._commit(lambda: final)
        except LogError as error:
            _say.warning("final_commit_failed", partitions=len(final), why=str(error), effect="duplicates")
        self._owner.on_ended({at: offset for at, offset in taken.items() if not shares[at].is_away})

    async def commit(self, positions: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Commit what is owned of the positions; see `EventLog.commit`."""
        self.note(self._owned(positions), positions)
        return await self._commit(lambda: self._owned(positions))

    async def pin(self, shares: Collection[Share]) -> None:
        """Commit where the shares stand, so that they begin there again whatever comes. Raises `LogError`."""
        taken = await self._commit(lambda: [share for share in shares if self.shares.get(share.partition) is share])
        for share in shares:
            share.is_pinned = share.is_pinned or share.partition in taken

    async def secure(self, shares: Collection[Share]) -> Mapping[Partition, int]:
        """Commit what is done of the shares; return what the group took. Raises `LogError`."""
        return await self._commit(lambda: [share for share in shares if self.shares.get(share.partition) is share])

    async def repeat(self, *, is_last: bool = False) -> None:
        """Commit once more what is done, if that is in doubt, when it is time to or at last. Raises `LogError`."""
        if self._repeat_at is not None and (is_last or asyncio.get_running_loop().time() >= self._repeat_at):
            self._repeat_at = None
            await self._commit(lambda: list(self.shares.values()))

    async def affirm(self) -> bool:
        """Ask the group, by a heartbeat, whether it still knows this replica, until its epoch's final commit.

        False without asking if nothing is owned: nothing is proven then. Raises `AssignmentLostError` if it does not.
        """
        shares = self.shares or self._ending
        if not shares:
            return False
        try:
            await self._group.affirm(self._membership)
        except AssignmentLostError:
            if (self.shares or self._ending) is shares:
                raise
            return False  # it was asked for an epoch that has ended meanwhile
        except LogError:
            return False
        return True

    async def progress(self) -> dict[Partition, int]:
        """Return what others committed; what is committed for a share is our doing until after the final commit."""
        ours = {*self.shares, *self._ending}
        committed = await self._group.progress()
        ours |= {*self.shares, *self._ending}
        return {at: told.offset for at, told in committed.items() if at not in ours}

    def _owned(self, partitions: Iterable[Partition]) -> list[Share]:
        return [share for partition in partitions if (share := self.shares.get(partition)) is not None]

    def note(self, shares: Iterable[Share], positions: Mapping[Partition, Position | None]) -> None:
        """Note up to where the shares are done with."""
        for share in shares:
            position = positions[share.partition]
            if position is not None and (offset := self._fetches.offset_of(position)) is not None:
                share.finish(offset)

    async def _commit(self, choose: Callable[[], Collection[Share]]) -> dict[Partition, int]:
        """Commit what is done of the shares chosen, once it is this commit's turn; return what the group took."""
        async with self._commits:
            chosen = [share for share in choose() if share.began is not None]
            led_by = self._fetches.leader_epoch
            offsets = {
                one.partition: Committed(one.done, one.topic_id, one.move, led_by(one.partition)) for one in chosen
            }
            if not offsets:
                return {}
            is_doubtful = True
            try:
                taken, refused, is_doubtful = await self._group.commit(self._membership, offsets)
            finally:
                if is_doubtful:
                    self._repeat_at = asyncio.get_running_loop().time() + REPEAT_AFTER
            for share in chosen:
                if share.partition in taken:
                    self._tell_moved(share, offsets[share.partition].move)
            self._say_left_out(offsets.keys() - taken)
            for topic in refused:
                self._on_refused(topic)
            return {at: offsets[at].offset for at in offsets if at in taken}

    def _tell_moved(self, share: Share, committed: str) -> None:
        """Tell the owner, once, that the log has a move; `committed` is the id that it took.

        Not of one that was settled without a halt: nothing has changed by it.
        """
        moving = share.moving
        if moving is not None and not moving.is_taken and moving.move.id == committed:
            moving.is_taken = True
            if not moving.begins_anew:
                return
            self._owner.on_moved(Moved(share.partition, moving.move, moving.done, moving.to))

    def _say_left_out(self, partitions: Collection[Partition]) -> None:
        """Say once what the group does not take, until it takes everything again."""
        if partitions and not self._leaves_out:
            effect = "not committed, tried again; once too much is uncommitted they stand still"
            _say.warning("commit_left_out", partitions=len(partitions), first=str(min(partitions)), effect=effect)
        self._leaves_out = bool(partitions)
        if partitions:
            self._doubtful_until = asyncio.get_running_loop().time() + DOUBT
