"""Which partitions the next fetch leaves out: the client names every partition that is not paused in every fetch.

Each fetch costs some 30 µs of the event loop for each partition named, whether or not there is anything to read, and a
fetch is answered as soon as one partition has something: with 1,000 partitions, of which a few are busy, the loop would
do little else. So partitions that were empty for a while rest, and are looked at in turn.
"""

from collections.abc import Callable

from proxy.positions.port import Fetches
from proxy.positions.share import Share, Shares

MOST = 200
"""Up to so many partitions nothing rests."""
AWAKE = 100
"""Idle partitions that are looked at in one turn."""
TURN = 0.1
"""Seconds of a turn: longer than a fetch waits. 1,000 idle partitions are looked at once a second."""
BUSY = 2.0
"""Seconds after its last event, or after it was placed, for which a partition is not idle."""


class Rests:
    """Lets idle partitions rest; urgent ones never do."""

    def __init__(self, fetches: Fetches, clock: Callable[[], float]) -> None:
        self._fetches = fetches
        self._clock = clock
        self._turn_ends = 0.0
        self._next = 0

    def turn(self, shares: Shares) -> None:
        """Begin a new turn if the last one is over."""
        now = self._clock()
        if now < self._turn_ends:
            return
        self._turn_ends = now + TURN
        idle = []
        for share in shares.values():
            if len(shares) > MOST and share.is_placed and not share.is_urgent and now - share.fed_at > BUSY:
                idle.append(share)
            elif share.is_resting:
                self._rest(share, on=False)
        begin = self._next if self._next < len(idle) else 0
        self._next = begin + AWAKE
        for place, share in enumerate(idle):
            is_awake = begin <= place < self._next
            if share.is_resting is is_awake:
                self._rest(share, on=not is_awake)

    def _rest(self, share: Share, *, on: bool) -> None:
        share.is_resting = on
        if share.is_placed and not share.is_paused:
            (self._fetches.pause if on else self._fetches.resume)(share.partition)
