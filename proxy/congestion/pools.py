"""What a divider counts with: pools of tokens, requests for them."""

from dataclasses import dataclass
from math import inf

PERIOD = 0.01
"""Seconds between two refills."""


@dataclass(slots=True, eq=False)
class Ticket:
    """One request for tokens."""

    tier: int
    size: float
    reserve: float = 0.0
    """Tokens set aside for it so far."""
    granted: bool = False


@dataclass(slots=True)
class Pool:
    """A bucket of tokens."""

    rate: float
    """Tokens a second; infinite: no limit."""
    burst: float
    """Tokens that it holds at most."""
    debt: float
    """... and owes at most."""
    balance: float
    forgiven: float = 0.0
    """Tokens taken beyond the largest debt since the start: nobody pays for them."""

    def refill(self, periods: int) -> None:
        """Add what so many periods bring, up to the burst."""
        if self.rate != inf and self.balance < self.burst:
            self.balance = min(self.burst, self.balance + periods * self.rate * PERIOD)

    def take(self, size: float) -> None:
        """Subtract tokens, down to the largest debt."""
        if self.rate != inf:
            # Never up: a debt may be larger where a size was estimated too small.
            left = min(self.balance, max(-self.debt, self.balance - size))
            self.forgiven += left - (self.balance - size)
            self.balance = left

    def give(self, size: float) -> None:
        """Add tokens that were not used."""
        # Beyond the burst, too: it was waited for, refill by refill, and would be lost to the rate.
        if self.rate != inf:
            self.balance += size


@dataclass(slots=True)
class Trickle:
    """What one class as a whole gets at least, whoever waits above it."""

    rate: float = 0.0
    burst: float = 0.0
    balance: float = 0.0

    def change(self, rate: float, burst: float) -> None:
        """Bring so many tokens a second from the next refill on, and hold so many at most."""
        self.rate, self.burst, self.balance = rate, burst, min(self.balance, burst)

    def refill(self, periods: int) -> None:
        """Add what so many periods bring, up to the burst."""
        self.balance = min(self.burst, self.balance + periods * self.rate * PERIOD)
