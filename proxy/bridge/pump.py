"""The one task that polls the log: whole buffers into the inboxes, pauses before the next await."""

from proxy.bridge.assignment import Assignment
from proxy.bridge.event_log import EventLog

POLL_WAIT = 0.2
"""Seconds one poll waits for records; the longest a stop waits for the pump."""


class Pump:
    """Polls until told to stop."""

    def __init__(self, log: EventLog, assignment: Assignment) -> None:
        self._log = log
        self._assignment = assignment
        self._stopping = False

    def stop(self) -> None:
        """Let `run` end after the poll under way; a cancelled poll could leave the client in disorder."""
        self._stopping = True

    async def run(self) -> None:
        """Move records from the log into the inboxes."""
        listeners = self._assignment.listeners
        while not self._stopping:
            fetched = await self._log.poll(POLL_WAIT)
            for partition, events in fetched.items():
                listener = listeners.get(partition.topic)
                if listener is not None:
                    listener.offer(partition, events)
