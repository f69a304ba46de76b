"""One commit for all partitions as often as what is at stake asks, and with it the proof that they are still owned."""

import asyncio
import contextlib

import structlog

from proxy.bridge.account import Account
from proxy.bridge.assignment import Assignment
from proxy.bridge.event_log import EventLog
from proxy.bridge.flow import PartitionFlow
from proxy.bridge.lease import Lease
from proxy.bridge.offsets import counted
from proxy.bridge.stake import Stake
from proxy.errors import AssignmentLostError, LogError
from proxy.model import Position

LOOKS_PER_LEASE = 4
"""A commit interval too long for the lease is cut to this share of it, so that one failure does not end it."""
SPACING = 0.05
"""Seconds between the beginnings of two commits at least: Kafka keeps every one of them. Larger: more duplicates."""

_say = structlog.get_logger("tidegate.committer")


class Committer:
    """Commits what the watermarks allow, renews the lease; one request at a time."""

    def __init__(
        self, log: EventLog, assignment: Assignment, lease: Lease, stake: Stake, interval: float, account: Account
    ) -> None:
        """Make one that commits every `interval` seconds while little is at stake, sooner when much is."""
        self._log = log
        self._assignment = assignment
        self._lease = lease
        self._stake = stake
        self._interval = interval
        self._account = account
        self.refusal: str | None = None
        """Why the last commit, or affirmation, failed; None: it did not."""
        self._turn = asyncio.Lock()
        self._begun_at = float("-inf")

    async def run(self) -> None:
        """Commit until cancelled, every interval or as often as the lease needs it; at once when that is asked for."""
        pause = min(self._interval, self._lease.term / LOOKS_PER_LEASE)
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._lease.asked.wait()
            await asyncio.sleep(max(0.0, self._begun_at + SPACING - loop.time()))
            self._lease.asked.clear()
            await self.commit()

    async def commit(self) -> bool:
        """Commit once, or affirm the assignment if there is nothing to commit; return whether nothing failed.

        A failure is said once until the next success; the positions stay uncommitted and go with the next commit. What
        the log leaves out, of a topic that is gone for instance, proves nothing.
        """
        async with self._turn:
            moved, events = self._stake.take()
            is_taken = False
            try:
                is_taken = await self._commit([flow for flow in moved if self._assignment.owns(flow)])
            except AssignmentLostError as error:
                if self._lease.left(asyncio.get_running_loop().time()) > 0:
                    self._account.on_assignment_lost(str(error))
                self._lease.end()
                self._fail(str(error))
            except LogError as error:
                self._fail(str(error))
            finally:
                if not is_taken:
                    self._stake.put_back(moved, events)
            return is_taken

    async def _commit(self, flows: list[PartitionFlow]) -> bool:
        due = {flow: (flow.watermark.resolved, self._reached(flow.watermark.position)) for flow in flows}
        started = asyncio.get_running_loop().time()
        if due:
            self._begun_at = started
            taken = await self._log.commit({flow.partition: flow.watermark.position for flow in due})
            self._stake.put_back([flow for flow in due if flow.partition not in taken], 0)
        else:
            taken = {}
        if not taken:
            if not self._assignment.owns_any or self._lease.left(started) > self._lease.term / 2:
                return True
            if not await self._log.affirm():
                self._fail("the group did not affirm the assignment")
                return False
        self._lease.renew(started)
        self.refusal = None
        for flow, (offered, reached) in due.items():
            if flow.partition in taken:
                resolved = counted(offered, reached, taken[flow.partition])
                flow.watermark.committed = max(flow.watermark.committed, resolved)
                self._account.on_committed(flow, resolved, taken[flow.partition])
                if flow.waiting:  # perhaps for this, at `limits.uncommitted_events`
                    self._assignment.listeners[flow.partition.topic].wake()
        return True

    def _reached(self, position: Position | None) -> int:
        return 0 if position is None else self._log.place(position) + 1

    def _fail(self, why: str) -> None:
        before, self.refusal = self.refusal, why
        if before is None:
            _say.warning(
                "commit_failed", why=why, effect="sending stops when the lease ends; tried again every interval"
            )
