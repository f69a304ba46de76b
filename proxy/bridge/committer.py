"""One commit for all partitions every interval, and with it the proof that this replica still owns them."""

import asyncio
import contextlib

import structlog

from proxy.bridge.assignment import Assignment
from proxy.bridge.event_log import EventLog
from proxy.bridge.lease import Lease
from proxy.bridge.listener import Incident
from proxy.errors import AssignmentLostError, LogError

LOOKS_PER_LEASE = 4
"""A commit interval too long for the lease is cut to this share of it, so that one failure does not end it."""

_say = structlog.get_logger("tidegate.committer")


class Committer:
    """Commits what the watermarks allow, renews the lease."""

    def __init__(
        self, log: EventLog, assignment: Assignment, lease: Lease, interval: float, incident: Incident
    ) -> None:
        self._log = log
        self._assignment = assignment
        self._lease = lease
        self._interval = interval
        self._incident = incident
        self._is_failing = False

    async def run(self) -> None:
        """Commit until cancelled, every interval or as often as the lease needs it; at once when that is asked for."""
        pause = min(self._interval, self._lease.term / LOOKS_PER_LEASE)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._lease.asked.wait()
            self._lease.asked.clear()
            await self.commit()

    async def commit(self) -> bool:
        """Commit once, or affirm the assignment if there is nothing to commit; return whether nothing failed.

        A failure is said once until the next success; the positions stay uncommitted and go with the next commit.
        """
        due = {flow: flow.watermark.resolved for flow in self._assignment.flows() if flow.watermark.uncommitted}
        positions = {flow.partition: flow.watermark.position for flow in due}
        started = asyncio.get_running_loop().time()
        try:
            taken = await self._log.commit(positions) if positions else frozenset()
            if not taken:  # which proves nothing: neither that anything is committed nor whose the partitions are
                if not self._assignment.flows() or self._lease.left(started) > self._lease.term / 2:
                    return True
                if not await self._log.affirm():
                    return self._failed("the group did not affirm the assignment")
        except AssignmentLostError as error:
            if self._lease.left(started) > 0:
                self._incident("assignment_lost", detail=str(error))
            self._lease.end()
            return self._failed(str(error))
        except LogError as error:
            return self._failed(str(error))
        self._lease.renew(started)
        self._is_failing = False
        for flow, resolved in due.items():
            if flow.partition not in taken:
                continue
            flow.watermark.committed = max(flow.watermark.committed, resolved)
            self._assignment.listeners[flow.partition.topic].wake()
        return True

    def _failed(self, why: str) -> bool:
        if not self._is_failing:
            self._is_failing = True
            _say.warning(
                "commit_failed", why=why, effect="sending stops when the lease ends; tried again every interval"
            )
        return False
