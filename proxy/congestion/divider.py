"""Who gets a rate: a token bucket with tiers, served by (tier, arrival).

Source of the rules: AutoMQ's asynchronous network limiter ("Rate limiting practices in AutoMQ"): refill every 10 ms;
tier 0 only subtracts; lower tiers queue; what is larger than a refill sets refills aside until it is whole.
With one pool it is that limiter. With one pool per class (docs/design/0008) pool k counts the tokens of classes 0 to k,
so that a class's limit binds it and everything below, and nothing above. A token is whatever the caller counts: an
event, a byte.

Tier k is what is live of class k. Tier `catch_up(k)` is what is old of it and stands behind (docs/design/0027): behind
what is live of its own class, or behind everything.
"""

from collections.abc import Sequence
from math import ceil, floor, inf

from proxy.congestion.ladder import Ladder, Tier
from proxy.congestion.pools import PERIOD, Pool, Ticket, Trickle

LONGEST_STALL = 60.0
"""Seconds of refills that one call makes up for while requests wait; a process frozen for longer loses the rest."""
_DUST = 1e-9
"""Less than this is rounding, not a token."""


class Divider:
    """Grants tokens. Every method is handed `now`, in seconds, never falling.

    `tiers` is the number of classes, `pools` is 1 or as many. `strict` binds tier 0 by its pool, too. `last` puts all
    catch-up tiers behind everything; `share` is what each gets at least of what goes before it from its own class (with
    `last`: and from those below). Who asks waits, so no more requests wait than callers there are.
    """

    def __init__(
        self,
        *,
        tiers: int,
        pools: int = 1,
        strict: bool = False,
        last: bool = False,
        share: float = 0.0,
        now: float = 0.0,
    ) -> None:
        assert pools in {1, tiers}
        self._pools = [Pool(inf, inf, inf, 0.0) for _ in range(pools)]
        self._trickles = [Trickle() for _ in range(tiers)]
        """By class."""
        self._share = share
        self._ladder = Ladder(tiers, pools, last=last)
        self._tiers = self._ladder.tiers
        self._gates: list[tuple[Pool, ...]] = []
        """The pools whose tokens a tier needs."""
        self._look()
        self._strict = strict
        self._waiting = 0
        self._refills = floor(now / PERIOD + _DUST)

    def catch_up(self, rank: int) -> int:
        """Return the tier of what is old of a class."""
        return self._ladder.catch_up(rank)

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

    def set_counts(self, pool: int, classes: Sequence[bool], now: float) -> list[Ticket]:
        """Say which classes a pool counts, its own among them; return what is granted by now.

        Who is counted by nobody below keeps nobody there waiting.
        """
        granted = self.advance(now)
        if self._ladder.count(pool, classes):
            self._look()
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

    def set_trickle(self, rank: int, rate: float, burst: float, now: float) -> list[Ticket]:
        """Give a class as a whole at least `rate` tokens a second while it waits; return what is granted by now."""
        granted = self.advance(now)
        self._trickles[rank].change(rate, burst)
        return granted

    def request(self, tier: int, size: float, now: float) -> tuple[Ticket, list[Ticket]]:
        """Ask for `size` tokens; return the ticket, granted or waiting, and others granted by now."""
        granted = self.advance(now)
        ticket = Ticket(tier, size)
        if self._passes(tier) or (not self._anyone_before(tier) and self._stock(tier) >= size - _DUST):
            ticket.granted = True
            self._debit(tier, size)
            self._serve_owed(granted)
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
        for pool in self._tiers[tier].counting:
            self._pools[pool].give(size)

    def overdraw(self, tier: int, size: float) -> None:
        """Subtract tokens that nobody could wait for any longer; the balance falls to the largest debt at most."""
        self._debit(tier, size)

    def advance(self, now: float) -> list[Ticket]:
        """Refill up to now and return what is granted by it, in order."""
        due = floor(now / PERIOD + _DUST) - self._refills
        granted: list[Ticket] = []
        if due <= 0:
            return granted
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
        if not self._waiting:
            return None
        periods = inf
        for tier, place in enumerate(self._tiers):
            gates = [pool for pool in self._gates[tier] if pool.rate != inf]
            if place.waiting and all(pool.rate > 0 for pool in gates) and not self._ladder.waits_above(tier):
                missing = place.waiting[0].size - place.waiting[0].reserve
                waits = [(missing - pool.balance) / (pool.rate * PERIOD) for pool in gates]
                periods = min(periods, max(waits, default=0.0))
        for rank, trickle in enumerate(self._trickles):
            first = self._ladder.first_of(rank) if trickle.rate > 0 else None
            if first is not None:
                head = self._tiers[first].waiting[0]
                missing = head.size - head.reserve - trickle.balance
                periods = min(periods, missing / (trickle.rate * PERIOD))
        return None if periods == inf else (self._refills + max(1, ceil(periods - _DUST))) * PERIOD

    def refill(self, tier: int) -> float:
        """Return the tokens of one refill; infinite where the tier has no limit."""
        return min([pool.rate for pool in self._gates[tier]]) * PERIOD

    def portion(self, tier: int) -> float:
        """Return what a fair request asks for: one refill, all the stock if nobody waits; infinite without a limit."""
        stock = 0.0 if self._anyone_before(tier) else self._stock(tier)
        return max(self.refill(tier), stock)

    def has_waited(self, rank: int) -> bool:
        """Return whether anyone has waited for the pool of a class since this was asked last, or waits now."""
        has_waited = False
        for place in self._ladder.waiting_for(rank):
            has_waited = has_waited or place.has_waited
            place.has_waited = bool(place.waiting)
        return has_waited

    @property
    def forgiven(self) -> float:
        """Tokens of the first pool that nobody pays for: the largest debt was reached."""
        return self._pools[0].forgiven

    @property
    def requests(self) -> int:
        """How many requests wait, of all tiers."""
        return sum(len(tier.waiting) for tier in self._tiers)

    def waiting(self, tier: int) -> int:
        """Return how many requests of the tier wait."""
        return len(self._tiers[tier].waiting)

    def _look(self) -> None:
        self._gates = [tuple([self._pools[pool] for pool in tier.gates]) for tier in self._tiers]

    def _passes(self, tier: int) -> bool:
        """Return whether the tier only subtracts and never waits."""
        is_bypass = tier == 0 and not self._strict and len(self._pools) == 1
        return is_bypass or self._is_unlimited(tier)

    def _stock(self, tier: int) -> float:
        """Return what it finds in the pools that have a limit."""
        return min([pool.balance for pool in self._gates[tier] if pool.rate != inf], default=0.0)

    def _anyone_before(self, tier: int) -> bool:
        return bool(self._tiers[tier].waiting) or self._is_behind(tier)

    def _is_behind(self, tier: int) -> bool:
        return (self._waiting > 0 and self._ladder.waits_above(tier)) or self._ladder.comes_back(tier, self._refills)

    def _debit(self, tier: int, size: float) -> None:
        for pool in self._tiers[tier].counting:
            self._pools[pool].take(size)
        for behind in self._tiers[tier].feeds:
            if self._tiers[behind].waiting:
                self._tiers[behind].owed += self._share * size

    def _refill(self, periods: int) -> None:
        self._refills += periods
        for pool in self._pools:
            pool.refill(periods)
        for rank, trickle in enumerate(self._trickles):
            if trickle.rate > 0 and self._ladder.first_of(rank) is not None:
                trickle.refill(periods)

    def _serve(self, granted: list[Ticket]) -> None:
        """Complete requests from the head for as long as their pools have tokens."""
        for tier in self._ladder.order:
            place = self._tiers[tier]
            while place.waiting and not self._is_behind(tier):
                head = place.waiting[0]
                missing = head.size - head.reserve
                part = missing if self._is_unlimited(tier) else min(missing, self._stock(tier))
                if part > 0:
                    head.reserve += part
                    self._debit(tier, part)
                if head.reserve < head.size - _DUST:
                    break
                self._grant(place, granted)
        self._serve_trickles(granted)
        self._serve_owed(granted)

    def _is_unlimited(self, tier: int) -> bool:
        for pool in self._gates[tier]:  # noqa: SIM110  # asked for each event; a generator is twice the work
            if pool.rate != inf:
                return False
        return True

    def _serve_trickles(self, granted: list[Ticket]) -> None:
        for rank, trickle in enumerate(self._trickles):
            while trickle.balance > _DUST and (tier := self._ladder.first_of(rank)) is not None:
                trickle.balance -= self._set_aside(tier, trickle.balance, granted)

    def _serve_owed(self, granted: list[Ticket]) -> None:
        """Give catch-up tiers what their shares have come to, whoever waits before them."""
        if not self._waiting:
            return
        for tier in self._ladder.behind():
            place = self._tiers[tier]
            while place.waiting and place.owed > _DUST:
                place.owed -= self._set_aside(tier, place.owed, granted)

    def _set_aside(self, tier: int, most: float, granted: list[Ticket]) -> float:
        """Set up to so many tokens aside for the head of a tier; return how many."""
        place = self._tiers[tier]
        head = place.waiting[0]
        part = min(head.size - head.reserve, most)
        head.reserve += part
        self._debit(tier, part)
        if head.reserve >= head.size - _DUST:
            self._grant(place, granted)
        return part

    def _grant(self, place: Tier, granted: list[Ticket]) -> None:
        head = place.waiting.popleft()
        self._waiting -= 1
        head.granted = True
        place.served = self._refills
        granted.append(head)
