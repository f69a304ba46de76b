"""Partitions given up: together, in turn, each with its last commit.

The owner is told what the log took of all that has ended since it was last told. So endings wait for one another, and
those that have come together meanwhile go together: a drain of one type holds up no other for longer than its own.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping

from proxy.bridge.event_log import PartitionOwner
from proxy.errors import LogError
from proxy.model import Partition, Position
from proxy.nakadi_log.session import Session, Share

Commit = Callable[[Mapping[Partition, tuple[Session, Share, Position]]], Awaitable[Mapping[Partition, int]]]


class Endings:
    """Of all streams of this replica; `owned` is what they have, by partition."""

    def __init__(self, owner: PartitionOwner, owned: dict[Partition, tuple[Session, Share]], commit: Commit) -> None:
        self._owner = owner
        self._owned = owned
        self._commit = commit
        self._waiting: dict[Share, Session] = {}
        self._turn = asyncio.Lock()
        self._work: set[asyncio.Task[None]] = set()
        self.ending: Mapping[Partition, Session] = {}
        """What is being given up now, until after its last commit, and of which stream."""

    async def end(self, session: Session, shares: Collection[Share]) -> None:
        """Give up partitions of a stream: nothing of them is owned from now on; return after the last commit.

        Cancelled, it goes on all the same.
        """
        for share in shares:
            if self._owned.get(share.partition) == (session, share):
                del self._owned[share.partition]
                self._waiting[share] = session
                self.ending = {**self.ending, share.partition: session}
        work = asyncio.create_task(self._next(), name="nakadi-ending")
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        await asyncio.shield(work)

    async def _next(self) -> None:
        async with self._turn:
            ended, self._waiting = self._waiting, {}
            if ended:
                try:
                    await self._finish({share.partition: (session, share) for share, session in ended.items()})
                finally:
                    self.ending = {share.partition: session for share, session in self._waiting.items()}

    async def _finish(self, ended: Mapping[Partition, tuple[Session, Share]]) -> None:
        positions = await self._owner.on_revoked(list(ended))
        taken: Mapping[Partition, int] = {}
        with contextlib.suppress(LogError):  # said where it is asked; what was done comes again
            taken = await self._commit({at: (*ended[at], done) for at, done in positions.items() if at in ended})
        self._owner.on_ended(taken)
        for session, share in ended.values():
            session.drop(share)
