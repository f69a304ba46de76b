"""Since when queues are there, as far as one knows who asks for them now and then: pure."""

from collections.abc import Collection, Mapping
from math import inf

from proxy.bridge.broker import Finding, Found

TRUST = 1.0
"""Seconds between two answers that a queue is there in which it can't have been away: no node restarts so soon."""


class Presence:
    """What the answers of late say together; times are seconds of one clock."""

    def __init__(self) -> None:
        self._there: dict[str, tuple[float, float]] = {}
        """From when on each queue was there without a break, and when it was last asked for."""

    def see(self, known: Mapping[str, Finding], asked: float, answered: float) -> None:
        """Take answers in that were true at some time between the question and now."""
        there = [queue for queue, finding in known.items() if finding.found is Found.THERE]
        self._there = {
            queue: told
            for queue, told in self._there.items()
            if queue not in known and self._is_trusted(told[1], answered)
        } | {queue: (self.since([queue], answered), asked) for queue in there}

    def since(self, queues: Collection[str], now: float) -> float:
        """Return from when on all of these queues have been there, all of which are there now; -inf if they are none.

        It is `now` if one was not known to be there lately.
        """
        told = [self._there.get(queue, (now, -inf)) for queue in queues]
        return max([since if self._is_trusted(asked, now) else now for since, asked in told], default=-inf)

    def _is_trusted(self, asked: float, now: float) -> bool:
        return now - asked <= TRUST
