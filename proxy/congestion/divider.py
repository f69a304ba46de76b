"""Who gets a rate: a token bucket with tiers, served by (tier, arrival).

Source of the rules: AutoMQ's asynchronous network limiter ("Rate limiting practices in AutoMQ"): refill every 10 ms;
tier 0 only subtracts; lower tiers queue; what is larger than a refill sets refills aside until it is whole.
With one pool it is that limiter. With one pool per tier (docs/design/0008) pool k counts the tokens of tiers 0 to k, so
that a tier's limit binds it and everything below, and nothing above. A token is whatever the caller counts: an event, a
byte.
"""

from collections.abc import Iterator, Sequence
from math import ceil, floor, inf

from proxy.congestion.pools import PERIOD, Pool, Ticket, Tier, Trickle

LONGEST_STALL = 60.0
"""Seconds of refills that one call makes up for while requests wait; a process frozen for longer loses the rest."""
_DUST = 1e-9
"""Less than this is rounding, not a token."""


class FullError(Exception):
    """As many requests wait as may."""


class Divider:
    """Grants tokens. Every method is handed `now`, in seconds, never falling.

    `pools` is 1 or the number of tiers. `strict` binds tier 0 by its pool, too. At most `most_waiting` requests wait.
    """

    def __init__(
        self, *, tiers: int, pools: int = 1, strict: bool = False, most_waiting: int = 100_000, now: float = 0.0
    ) -> None:
        assert pools in {1, tiers}
        self._pools = [Pool(inf, inf, inf, 0.0) for _ in range(pools)]
        self._trickle = Trickle()
        self._tiers = [Tier() for _ in range(tiers)]
        self._counts = [[tier <= pool for tier in range(tiers)] for pool in range(pools)]
        if pools == 1:
            self._counts = [[True] * tiers]
        self._strict = strict
        self._most_waiting = most_waiting
        self._waiting = 0
        self._refills = floor(now / PERIOD + _DUST)

    def set_rate(self, pool: int, rate: float, burst: float, now: float, debt: float | None = None) -> list[Ticket]:
        """Refill a pool by `rate` tokens a second from the next refill on; debts and reserves stay.

        `rate` may be infinite, `burst` bounds the stock, `debt` what may be owed: as much if it is None. Return what
        is granted by now.
        """
        granted = self.advance(now)
        at = self._pools[pool]
        if at.rate == inf:
            at.balance = min(burst, rate * PERIOD)
        at.rate, at.burst, at.debt = rate, burst, burst if debt is None else debt
        at.balance = max(-at.debt, min(burst, at.balance)) if rate != inf else 0.0
        if rate == inf:
            self._serve(granted)
        return granted

    def set_counts(self, pool: int, tiers: Sequence[bool], now: float) -> list[Ticket]:
        """Say which tiers a pool counts, its own among them; who is counted by nobody below keeps nobody there waiting.

        Return what is granted by now.
        """
        granted = self.advance(now)
        if self._counts[pool] != list(tiers):
            self._counts[pool] = list(tiers)
            self._serve(granted)
        return granted

    def set_stock(self, pool: int, tokens: float, now: float) -> list[Ticket]:
        """Give a pool `tokens` instead of a rate, until it is told otherwise; debts stay, what was not used is gone.

        Return what is granted by now.
        """
        granted = self.advance(now)
        at = self._pools[pool]
        owed = 0.0 if at.rate == inf else min(0.0, at.balance)
        at.rate, at.burst, at.debt, at.balance = 0.0, tokens, tokens, tokens + owed
        self._serve(granted)
        return granted

    def set_trickle(self, rate: float, burst: float, now: float) -> list[Ticket]:
        """Give the lowest tier as a whole at least `rate` tokens a second while it waits; return what is granted."""
        granted = self.advance(now)
        self._trickle.rate, self._trickle.burst = rate, burst
        return granted

    def request(self, tier: int, size: float, now: float) -> tuple[Ticket, list[Ticket]]:
        """Ask for `size` tokens; return the ticket, granted or waiting, and others granted by now.

        Raises `FullError` if too many wait; then nothing is granted to anyone.
        """
        if self._waiting >= self._most_waiting and not self._passes(tier):
            raise FullError(f"{self._waiting} requests wait already")
        granted = self.advance(now)
        ticket = Ticket(tier, size)
        if self._passes(tier) or (not self._anyone_before(tier) and self._stock(tier) >= size - _DUST):
            ticket.granted = True
            self._debit(tier, size)
            return ticket, granted
        place = self._tiers[tier]
        place.waiting.append(ticket)
        place.has_waited = True
        self._waiting += 1
        self._serve(granted)
        if ticket.granted:
            granted.remove(ticket)
        return ticket, granted

    def cancel(self, ticket: Ticket, now: float) -> list[Ticket]:
        """Take back a request that waits: what was set aside for it goes back; return what is granted by that."""
        granted = self.advance(now)
        if ticket.granted:
            self.give_back(ticket.tier, ticket.size)
            return [other for other in granted if other is not ticket]
        self._tiers[ticket.tier].waiting.remove(ticket)
        self._waiting -= 1
        self.give_back(ticket.tier, ticket.reserve)
        self._serve(granted)
        return granted

    def give_back(self, tier: int, size: float) -> None:
        """Return tokens that were granted and not used; negative: take more."""
        for pool in self._counting(tier):
            pool.give(size)

    def overdraw(self, tier: int, size: float) -> None:
        """Subtract tokens that nobody could wait for any longer; the balance falls to the largest debt at most."""
        self._debit(tier, size)

    def advance(self, now: float) -> list[Ticket]:
        """Refill up to now and return what is granted by it, in order."""
        due = floor(now / PERIOD + _DUST) - self._refills
        granted: list[Ticket] = []
        if self._waiting and due > LONGEST_STALL / PERIOD:
            kept = round(LONGEST_STALL / PERIOD)
            self._refills += due - kept
            due = kept
        while due > 0 and self._waiting:
            # One by one: a stall of the caller must not turn refills that were waited for into a full bucket.
            self._refill(1)
            due -= 1
            self._serve(granted)
        if due > 0:
            self._refill(due)
        return granted

    def next_due(self) -> float | None:
        """Return when `advance` can grant again, at the earliest; None if nobody waits, or for nothing that comes."""
        periods = inf
        for tier, place in enumerate(self._tiers):
            pool = self._pools[self._pool_of(tier)]
            if place.waiting and pool.rate > 0 and not self._anyone_above(tier):
                head = place.waiting[0]
                periods = min(periods, (head.size - head.reserve - pool.balance) / (pool.rate * PERIOD))
        if self._tiers[-1].waiting and self._trickle.rate > 0:
            head = self._tiers[-1].waiting[0]
            missing = head.size - head.reserve - self._trickle.balance
            periods = min(periods, missing / (self._trickle.rate * PERIOD))
        return None if periods == inf else (self._refills + max(1, ceil(periods - _DUST))) * PERIOD

    def refill(self, tier: int) -> float:
        """Return the tokens of one refill; infinite where the tier has no limit."""
        return self._pools[self._pool_of(tier)].rate * PERIOD

    def portion(self, tier: int) -> float:
        """Return what a fair request asks for: one refill, all the stock if nobody waits; infinite without a limit."""
        stock = 0.0 if self._anyone_before(tier) else self._stock(tier)
        return max(self.refill(tier), stock)

    def has_waited(self, tier: int) -> bool:
        """Return whether anyone of the tier has waited since this was asked last, or waits now."""
        place = self._tiers[tier]
        has_waited, place.has_waited = place.has_waited, bool(place.waiting)
        return has_waited

    @property
    def requests(self) -> int:
        """How many requests wait, of all tiers."""
        return sum(len(tier.waiting) for tier in self._tiers)

    def waiting(self, tier: int) -> int:
        """Return how many requests of the tier wait."""
        return len(self._tiers[tier].waiting)

    def _pool_of(self, tier: int) -> int:
        return min(tier, len(self._pools) - 1)

    def _passes(self, tier: int) -> bool:
        """Return whether the tier only subtracts and never waits."""
        is_bypass = tier == 0 and not self._strict and len(self._pools) == 1
        return is_bypass or self._pools[self._pool_of(tier)].rate == inf

    def _stock(self, tier: int) -> float:
        return self._pools[self._pool_of(tier)].balance

    def _anyone_before(self, tier: int) -> bool:
        return bool(self._tiers[tier].waiting) or self._anyone_above(tier)

    def _anyone_above(self, tier: int) -> bool:
        """Return whether anyone waits above whose tokens are the tier's as well."""
        counts = self._counts[self._pool_of(tier)]
        return any(counts[above] and place.waiting for above, place in enumerate(self._tiers[:tier]))

    def _counting(self, tier: int) -> Iterator[Pool]:
        """Yield the pools that count the tier."""
        return (pool for pool, counts in zip(self._pools, self._counts, strict=True) if counts[tier])

    def _debit(self, tier: int, size: float) -> None:
        for pool in self._counting(tier):
            pool.take(size)

    def _refill(self, periods: int) -> None:
        self._refills += periods
        for pool in self._pools:
            pool.refill(periods)
        trickle = self._trickle
        if self._tiers[-1].waiting:
            trickle.balance = min(trickle.burst, trickle.balance + periods * trickle.rate * PERIOD)

    def _serve(self, granted: list[Ticket]) -> None:
        """Complete requests from the head for as long as their pools have tokens."""
        for tier, place in enumerate(self._tiers):
            pool = self._pools[self._pool_of(tier)]
            while place.waiting and not self._anyone_above(tier):
                head = place.waiting[0]
                part = head.size - head.reserve if pool.rate == inf else min(head.size - head.reserve, pool.balance)
                if part > 0:
                    head.reserve += part
                    self._debit(tier, part)
                if head.reserve < head.size - _DUST:
                    break
                self._grant(place, granted)
        self._serve_trickle(granted)

    def _serve_trickle(self, granted: list[Ticket]) -> None:
        place, trickle = self._tiers[-1], self._trickle
        while place.waiting and trickle.balance > _DUST:
            head = place.waiting[0]
            part = min(head.size - head.reserve, trickle.balance)
            trickle.balance -= part
            head.reserve += part
            self._debit(len(self._tiers) - 1, part)
            if head.reserve >= head.size - _DUST:
                self._grant(place, granted)

    def _grant(self, place: Tier, granted: list[Ticket]) -> None:
        head = place.waiting.popleft()
        self._waiting -= 1
        head.granted = True
        granted.append(head)
