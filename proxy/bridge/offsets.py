"""What is safe to commit: the contiguous run of resolved events of one partition in one assignment epoch.

Sequence numbers count the records received since the assignment, from 0. Positions are only handed through, so gaps
in them (compaction, transaction markers) and positions that are no numbers need no care.
"""

from proxy.model import Position


def counted(resolved: int, reached: int, taken: int) -> int:
    """Return how many of `resolved` events the log has for done that took all before a place, `taken`.

    The last of them stands just before the place `reached`. A log may take less than it is offered: it may only know
    the borders of batches, within which places have no gaps.
    """
    return resolved - max(0, reached - taken)


class Watermark:
    """Lowest unresolved sequence number of one partition, and the position just below it.

    Invariants: `committed <= resolved <= received`; every sequence number below `resolved` was resolved, exactly once.
    """

    __slots__ = ("_ahead", "ahead", "committed", "position", "received", "resolved")

    def __init__(self) -> None:
        self.received = 0
        """Records received; the next one gets this sequence number."""
        self.resolved = 0
        """Every event below is done with: confirmed, or its dead letter is."""
        self.committed = 0
        """Every event below is done with, and the log knows it."""
        self.position: Position | None = None
        """Of the event `resolved - 1`; None while nothing is resolved."""
        self.ahead = 0
        """Events that are done with although one before them is not."""
        self._ahead: dict[int, tuple[int, Position]] = {}

    def receive(self, count: int) -> int:
        """Count `count` more records in; return the sequence number of the first."""
        first = self.received
        self.received += count
        return first

    def resolve(self, start: int, end: int, position: Position) -> None:
        """Take note that the events `start..end-1` are done with; `position` is that of `end - 1`.

        Each range may be resolved once; ranges may come in any order, never overlapping.
        """
        if not self.resolved <= start < end <= self.received:
            raise ValueError(f"range {start}..{end} is outside {self.resolved}..{self.received}")
        if start != self.resolved:
            self._ahead[start] = (end, position)
            self.ahead += end - start
            return
        while True:
            self.resolved, self.position = end, position
            following = self._ahead.pop(end, None)
            if following is None:
                return
            end, position = following
            self.ahead -= end - self.resolved

    def done_beyond(self, committed: int) -> int:
        """Return how many events are done with that are not among the first `committed`."""
        return self.resolved - committed + self.ahead
