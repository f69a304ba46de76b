"""How long this replica may take its partitions for its own.

A process that was stopped, cut off or that lost its group can't know it; the group may have given its partitions away
after one session timeout. So it publishes only for half a session timeout after the group last confirmed it, by a
commit or an affirmation. An assignment proves nothing by itself: a process that was stopped while the group told it may
read it when the group has long gone on. It is affirmed at once instead.
"""

import asyncio


class Lease:
    """Held from each renewal for `term` seconds of the loop's clock."""

    def __init__(self, term: float) -> None:
        self.term = term
        self._until = float("-inf")
        self._wanted_at = float("-inf")
        """When it was last held before it was given up, or there were new partitions."""
        self._renewed = asyncio.Event()
        self.asked = asyncio.Event()
        """Set when it is to be confirmed at once, or a commit is to be made, which confirms it; for who does that."""

    def renew(self, since: float) -> None:
        """Extend to `since + term`; `since` is when the confirmed request was sent, not when it was answered."""
        self._until = max(self._until, since + self.term)
        self._renewed.set()

    def end(self) -> None:
        """Give it up at once: the group has fenced this replica."""
        self._wanted_at = max(self._wanted_at, min(self._until, asyncio.get_running_loop().time()))
        self._until = float("-inf")

    def ask(self) -> None:
        """Have it confirmed at once: there are new partitions."""
        self._wanted_at = asyncio.get_running_loop().time()
        self.asked.set()

    def left(self, now: float) -> float:
        """Return how many seconds it is still held, <= 0 if it is not."""
        return self._until - now

    def lapsed(self, now: float) -> float:
        """Return for how many seconds it has not been held though it is wanted, 0 if it is held."""
        return max(0.0, now - max(self._until, self._wanted_at)) if self.left(now) <= 0 else 0.0

    async def held(self) -> None:
        """Wait until it is held."""
        loop = asyncio.get_running_loop()
        while self.left(loop.time()) <= 0:
            self._renewed.clear()
            await self._renewed.wait()
