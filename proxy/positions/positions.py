"""Where this replica stands in all that it owns: what an adapter of a log asks, and what it tells."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from proxy.bridge.event_log import Extent, PartitionOwner
from proxy.bridge.move import Move
from proxy.errors import LogError
from proxy.model import Partition, Position
from proxy.positions.epoch import Epoch
from proxy.positions.identity import LOOK_SECONDS
from proxy.positions.moving import Moves
from proxy.positions.placing import Placing
from proxy.positions.port import Fetches, Group, Membership, Offsets
from proxy.positions.renewing import Renewals
from proxy.positions.share import Share, Shares
from proxy.settings import LogSettings

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 2.0
"""Seconds until what the log did not answer is tried again: the first pause, doubled up to the longest."""


class Positions:
    """Of one member of a consumer group. An adapter tells it of every assignment and of what its fetches run into.

    `fetches`, `offsets` and `group` are the port; `on_refused` is told of topics for which this login may not commit.
    """

    def __init__(
        self,
        settings: LogSettings,
        fetches: Fetches,
        offsets: Offsets,
        group: Group,
        owner: PartitionOwner,
        *,
        on_refused: Callable[[str], None] = lambda _topic: None,
    ) -> None:
        self._fetches = fetches
        self._offsets = offsets
        self._group = group
        self._owner = owner
        self._placing = Placing(settings, fetches, offsets, group, owner)
        self._epoch = Epoch(fetches, group, self._placing, owner, on_refused=on_refused)
        self._moves = Moves(self._placing, self._epoch, owner)
        self._renewals = Renewals(self._placing, self._epoch, owner)
        self._attention = asyncio.Event()
        self._begun = asyncio.Event()
        """An epoch has begun since `keep` last looked."""

    @property
    def shares(self) -> Shares:
        """What is owned now; nothing between two epochs."""
        return self._epoch.shares

    @property
    def member(self) -> str:
        """What the group calls this replica; empty before the first epoch."""
        return self._epoch.member

    @property
    def is_left_out(self) -> bool:
        """Whether the group did not take all of the last commit: a topic may be gone."""
        return self._epoch.is_left_out

    def begin(self, partitions: Collection[Partition], membership: Membership) -> None:
        """Begin an epoch: the group has given these partitions to this member."""
        self._epoch.begin(partitions, membership)
        self._begun.set()
        self.attend_soon()

    async def end(self) -> None:
        """End the epoch: nothing is owned from now on; return after the final commit, or its failure."""
        await self._epoch.end()

    async def repeat(self) -> None:
        """Commit once more what is done, if an older commit may have come last. Raises `LogError`."""
        await self._epoch.repeat(is_last=True)

    def note_missing(self, topics: Iterable[str]) -> None:
        """Note that the log does not have these topics: nothing of them is skipped once it has."""
        self._placing.note_missing(topics)

    def drop(self) -> None:
        """End the epoch without a word: this replica has left the log."""
        self._epoch.shares = {}

    def pause(self, partitions: Collection[Partition]) -> None:
        """Fetch no more from the partitions; those not owned are passed over."""
        self._set_paused(partitions, self._fetches.pause, paused=True)

    def resume(self, partitions: Collection[Partition]) -> None:
        """Fetch again from the partitions, as soon as they are placed; those not owned are passed over."""
        self._set_paused(partitions, self._fetches.resume, paused=False)

    def _set_paused(self, partitions: Collection[Partition], act: Callable[[Partition], None], *, paused: bool) -> None:
        for partition in partitions:
            share = self.shares.get(partition)
            if share is not None and share.is_paused is not paused:
                share.is_paused = paused
                if share.is_placed:
                    act(partition)

    def go_astray(self, share: Share, offset: int) -> None:
        """Hold a share of which the log does not have the offset that was to be fetched next."""
        share.unavailable = offset
        self.hold(share)
        self.attend_soon()

    def pass_over(self, share: Share, end: int) -> None:
        """Note that no event stands between where the share is read and `end`: it was read up to there in this step."""
        if share.is_placed and share.next < end:
            is_done = share.skip(end)
            share.next = end
            if is_done:
                self._owner.on_passed(share.partition)

    def hold(self, share: Share) -> None:
        """Read nothing from the share until it is placed again."""
        self._placing.hold(share)

    async def commit(self, positions: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Commit what is owned of the positions, in one request, once none is under way; see `EventLog.commit`."""
        return await self._epoch.commit(positions)

    def move(self, wanted: Mapping[Partition, Move]) -> Collection[Partition]:
        """Replace which cursors are to be moved; return of which owned partitions that is still to come."""
        left = self._moves.want(wanted)
        if left:
            self.attend_soon()
        return left

    def renew(self, topics: Collection[str]) -> None:
        """Begin what is owned of these topics anew; see `EventLog.renew`."""
        if self._renewals.want(topics):
            self.attend_soon()

    async def affirm(self) -> bool:
        """Ask the group whether it still knows this member; False without asking if nothing is owned."""
        return await self._epoch.affirm()

    async def progress(self) -> Mapping[Partition, int]:
        """Return what the group has committed of what this replica does not own; see `EventLog.progress`."""
        return await self._epoch.progress()

    async def extents(self, topics: Collection[str]) -> dict[Partition, Extent]:
        """Return how far the group has come in each partition, and where it ends; see `EventLog.extents`."""
        committed = {at: told.offset for at, told in (await self._group.progress()).items() if at.topic in topics}
        ends = await self._offsets.ends(committed) if committed else {}
        return {at: Extent(min(committed[at], end), end) for at, end in ends.items()}

    async def lags(self, done: Mapping[Partition, Position | None]) -> Mapping[Partition, int]:
        """Ask for the ends of all partitions at once; nothing is returned if the log does not answer in time."""
        if not done:
            return {}
        heads: dict[Partition, int] = {}
        shares, offset_of = self.shares, self._fetches.offset_of
        for partition, position in done.items():
            share = shares.get(partition)
            offset = None if position is None else offset_of(position)
            head = None if offset is None else offset + 1
            if share is not None and share.began is not None:
                head = max(head or 0, share.done)  # it also knows of what the log has dropped
            if head is not None:
                heads[partition] = head
        try:
            ends = await self._offsets.ends(heads)
        except LogError:
            return {}
        return {at: max(0, end - heads[at]) for at, end in ends.items()}

    def attend_soon(self) -> None:
        """Have `keep` look at once."""
        self._attention.set()

    async def keep(self, beforehand: Callable[[], Awaitable[None]] | None = None) -> None:
        """Place and pin what is new, make the moves that are wanted, until cancelled.

        Tried again for as long as it takes, at once for a new epoch. With nothing to do it still looks for topics that
        were made anew, some of them each time. `beforehand` is awaited first, each time; a `LogError` of it, too, is
        tried again.
        """
        pause = FIRST_PAUSE
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._attention.wait()
            self._attention.clear()
            self._begun.clear()
            try:
                if beforehand is not None:
                    await beforehand()
                is_done = await self._attend()
            except LogError:
                is_done = False
            if is_done:
                pause = FIRST_PAUSE
            else:
                self._attention.set()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._begun.wait()
                pause = FIRST_PAUSE if self._begun.is_set() else min(2 * pause, LONGEST_PAUSE)

    async def _attend(self) -> bool:
        """Place, move and pin once; return whether nothing is left to do but to look again."""
        is_placed = await self._placing.attend(lambda: self.shares)
        await self._moves.attend()
        is_renewed = await self._renewals.attend()
        await self._epoch.repeat()
        unpinned = [one for one in self.shares.values() if (one.is_placed or one.successor) and not one.is_pinned]
        if unpinned:
            await self._epoch.pin(unpinned)
        return is_placed and is_renewed
