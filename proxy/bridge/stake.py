"""What is at stake: events that are done with and that the log would hand out again after a crash.

It asks for a commit before that is more than a crash may cost (docs/design/0014-commit-cadence.md).
"""

import asyncio

from proxy.bridge.flow import PartitionFlow

ENOUGH = 250
"""Events at stake that ask for a commit at once: half of what a crash may cost, as the rest comes while it is asked."""


class Stake:
    """Counts what each watermark has moved since the last commit."""

    def __init__(self, asked: asyncio.Event, cap: int) -> None:
        """Make one that sets `asked`; `cap` is how many events of a partition may be sent ahead of the commit.

        A partition at its cap stands still until the next commit; half a cap at stake is enough, too.
        """
        self.events = 0
        self._asked = asked
        self.go_by(cap)
        self._moved: dict[PartitionFlow, None] = {}

    def go_by(self, cap: int) -> None:
        """Ask for a commit at what is much for another cap, from now on."""
        self._enough = min(ENOUGH, max(1, cap // 2))

    def add(self, flow: PartitionFlow, events: int) -> None:
        """Count so many events more of a flow."""
        before, self.events = self.events, self.events + events
        self._moved[flow] = None
        if before < self._enough <= self.events:
            self._asked.set()

    def take(self) -> tuple[list[PartitionFlow], int]:
        """Return the flows that have moved and by how much in all, and count anew; for who commits them."""
        moved, events = list(self._moved), self.events
        self._moved, self.events = {}, 0
        return moved, events

    def put_back(self, flows: list[PartitionFlow], events: int) -> None:
        """Take back what was not committed; it asks for nothing now: it goes with the next commit, whenever that is."""
        self._moved = dict.fromkeys(flows) | self._moved
        self.events += events
