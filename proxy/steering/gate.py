"""Waiting for tokens: the futures and the one timer around a divider."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from proxy.congestion.divider import Divider
from proxy.congestion.pools import Ticket

LONGEST_WAIT = 10.0
"""Seconds after which the divider is asked even if nothing is due: what it sets aside meanwhile is counted in time."""


class Gate:
    """Lets callers wait for what a divider grants. Made inside a running loop."""

    def __init__(self, divider: Divider) -> None:
        self._loop = asyncio.get_running_loop()
        self._divider = divider
        self._waiting: dict[Ticket, asyncio.Future[None]] = {}
        self._timer: asyncio.Handle | None = None
        self._due: float | None = None
        """For when the timer is set."""
        self.taken = 0.0
        """Tokens granted and not given back since the start."""
        self.on_asked: Callable[[], None] | None = None
        """Called by whoever asks for tokens before it has them; to be set by whoever rests while nobody does."""

    @property
    def callers(self) -> int:
        """Who waits now; each has one request with the divider."""
        return len(self._waiting)

    @property
    def requests(self) -> int:
        """Requests that the divider has not granted yet."""
        return self._divider.requests

    @property
    def forgiven(self) -> float:
        """Tokens that nobody pays for; see `Divider.forgiven`."""
        return self._divider.forgiven

    @property
    def is_armed(self) -> bool:
        """Whether a timer runs."""
        return self._timer is not None

    async def passed(self, tier: int, size: float) -> None:
        """Wait until `size` tokens are granted. If cancelled, nothing is taken."""
        if self.on_asked is not None:
            self.on_asked()
        ticket, others = self._divider.request(tier, size, self._loop.time())
        self._tell(others)
        if ticket.granted:
            self.taken += size
            return
        told = self._loop.create_future()
        self._waiting[ticket] = told
        self._arm()
        try:
            await told
        except asyncio.CancelledError:
            self._waiting.pop(ticket, None)
            self._tell(self._divider.cancel(ticket, self._loop.time()))
            self._arm()
            raise
        self.taken += size

    def refill(self, tier: int) -> float:
        """Return the tokens of one refill; infinite where the tier has no limit."""
        return self._divider.refill(tier)

    def portion(self, tier: int) -> float:
        """Return what a fair request asks for; see `Divider.portion`."""
        self._tell(self._divider.advance(self._loop.time()))
        return self._divider.portion(tier)

    def give_back(self, tier: int, size: float) -> None:
        """Return tokens that were granted and not used; negative: take more."""
        self.taken -= size
        self._divider.give_back(tier, size)
        self._arm()

    def overdraw(self, tier: int, size: float) -> None:
        """Take tokens without waiting; see `Divider.overdraw`."""
        self.taken += size
        self._divider.overdraw(tier, size)
        self._arm()

    def set_rate(self, pool: int, rate: float, burst: float, debt: float | None = None) -> None:
        """Change a pool's rate, in tokens a second; see `Divider.set_rate`."""
        self._tell(self._divider.set_rate(pool, rate, burst, self._loop.time(), debt))
        self._arm()

    def set_counts(self, pool: int, classes: Sequence[bool]) -> None:
        """Say which classes a pool counts; see `Divider.set_counts`."""
        self._tell(self._divider.set_counts(pool, classes, self._loop.time()))
        self._arm()

    def set_stock(self, pool: int, tokens: float) -> None:
        """Give a pool tokens instead of a rate; see `Divider.set_stock`."""
        self._tell(self._divider.set_stock(pool, tokens, self._loop.time()))
        self._arm()

    def set_trickle(self, rank: int, rate: float, burst: float) -> None:
        """Change what a class gets at least; see `Divider.set_trickle`."""
        self._tell(self._divider.set_trickle(rank, rate, burst, self._loop.time()))
        self._arm()

    def has_waited(self, rank: int) -> bool:
        """Return whether anyone has waited for the pool of a class since this was asked last, or waits now."""
        return self._divider.has_waited(rank)

    def _tell(self, granted: Iterable[Ticket]) -> None:
        for ticket in granted:
            told = self._waiting.pop(ticket, None)
            if told is not None and not told.done():
                told.set_result(None)

    def _arm(self) -> None:
        """Have the divider asked again when it can grant next."""
        due = self._divider.next_due()
        if due == self._due:
            return
        soon = self._loop.time() + LONGEST_WAIT
        if due is not None and due > soon:
            due = soon
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = None if due is None else self._loop.call_at(due, self._turn)

    def _turn(self) -> None:
        due, self._timer, self._due = self._due, None, None
        assert due is not None
        # The loop may be half a millisecond early; the refill that the timer stands for is due all the same.
        self._tell(self._divider.advance(max(due, self._loop.time())))
        self._arm()
