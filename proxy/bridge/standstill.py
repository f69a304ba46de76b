"""Which of this replica's partitions stand still, and why: what the log does not give; all while none may be sent."""

import asyncio
from collections.abc import Callable, Mapping

from proxy.bridge.assignment import Assignment
from proxy.bridge.event_log import EventLog, Standing
from proxy.bridge.lease import Lease
from proxy.model import Partition

GRACE = 3.0
"""Seconds without the group's word that are nothing to speak of: a rebalance or a coordinator that moves takes them."""


class Standstill:
    """Asks the parts; `refusal` tells why the last commit failed, None if it did not."""

    def __init__(self, log: EventLog, assignment: Assignment, lease: Lease, refusal: Callable[[], str | None]) -> None:
        self._log = log
        self._assignment = assignment
        self._lease = lease
        self._refusal = refusal

    def outside(self) -> str | None:
        """Return why this replica has no partition and gets none; None: others have them all, or it is not known."""
        return None if self._assignment.owns_any else self._log.outside()

    def standing(self) -> Mapping[Partition, Standing]:
        """Return the partitions that have stood still for seconds; the log's reason goes before the group's."""
        told = self._log.standing()
        if self._lease.lapsed(asyncio.get_running_loop().time()) < GRACE:
            return told
        why = self._refusal() or "it has not answered yet"
        silent = Standing("lease", f"the group does not confirm that they are this replica's: {why}")
        return {flow.partition: silent for flow in self._assignment.flows()} | dict(told)
