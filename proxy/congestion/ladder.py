"""Where each tier of a divider stands: what goes before it, which pools it needs, who gets a share of it.

Tier k is what is live of class k, tier `catch_up(k)` what is old of it (docs/design/0027). Served in this order, of
three classes: live 0, old 0, live 1, old 1, live 2, old 2; with `last`: live 0, 1, 2, old 0, 1, 2.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from proxy.congestion.pools import Ticket


@dataclass(slots=True)
class Tier:
    """The requests of one tier, in the order of their arrival, and what they stand behind."""

    rank: int
    """The class that it is of."""
    above: tuple[int, ...]
    """Tiers that go first."""
    feeds: tuple[int, ...]
    """Catch-up tiers below that get a share of what this one is granted."""
    gates: tuple[int, ...] = ()
    """Pools whose tokens it needs."""
    counting: tuple[int, ...] = ()
    """Pools that count what it is granted."""
    rivals: tuple[int, ...] = ()
    """Of the tiers above those that one of these pools counts: who waits there goes first."""
    waiting: deque[Ticket] = field(default_factory=deque)
    has_waited: bool = False
    served: int = -1
    """Number of the refill in which one that had waited was granted last."""
    owed: float = 0.0
    """Tokens that its share has come to and nobody has got yet; it grows only while somebody waits."""


class Ladder:
    """The tiers of so many classes over one pool, or over one of each class."""

    def __init__(self, classes: int, pools: int, *, last: bool) -> None:
        self._classes = classes
        self._pools = pools
        self._last = last
        live = range(classes)
        self.order = [*live, *(classes + rank for rank in live)]
        """In which they are served."""
        if not last:
            self.order.sort(key=lambda tier: (tier % classes, tier))
        self.tiers = [self._tier(tier) for tier in range(2 * classes)]
        self._counts = [[rank <= pool or pools == 1 for rank in live] for pool in range(pools)]
        """By pool and class."""
        self._look()

    def catch_up(self, rank: int) -> int:
        """Return the tier of what is old of a class."""
        return self._classes + rank

    def count(self, pool: int, classes: Sequence[bool]) -> bool:
        """Let a pool count these classes; return whether that is new."""
        if self._counts[pool] == list(classes):
            return False
        self._counts[pool] = list(classes)
        self._look()
        return True

    def waits_above(self, tier: int) -> bool:
        """Return whether anyone waits above whose tokens are the tier's as well."""
        for above in self.tiers[tier].rivals:  # noqa: SIM110  # asked for each event; a generator is twice the work
            if self.tiers[above].waiting:
                return True
        return False

    def comes_back(self, tier: int, refill: int) -> bool:
        """Return whether a catch-up tier must let one come back first whose wait ended with this refill.

        An event type asks anew when its last events are written, a moment later; without, whoever is behind it in the
        same pool would find what is left of the refill, and with few tokens a refill that is as much.
        """
        if tier < self._classes:
            return False
        return any(self.tiers[above].served == refill for above in self.tiers[tier].rivals)

    def first_of(self, rank: int) -> int | None:
        """Return the first tier of a class where anyone waits; what is old of it counts unless it stands behind all."""
        tiers = (rank,) if self._last else (rank, self.catch_up(rank))
        return next((tier for tier in tiers if self.tiers[tier].waiting), None)

    def waiting_for(self, rank: int) -> Iterator[Tier]:
        """Yield the tiers that wait for the pool of a class; who stands behind everything waits for its last one."""
        for tier, place in enumerate(self.tiers):
            if (tier if tier < self._classes else place.gates[-1]) == rank:
                yield place

    def behind(self) -> Iterator[int]:
        """Yield the catch-up tiers."""
        return iter(range(self._classes, 2 * self._classes))

    def _tier(self, tier: int) -> Tier:
        rank, place = tier % self._classes, self.order.index(tier)
        below = self.order[place + 1 :] if tier < self._classes else []
        feeds = tuple(other for other in below if other >= self._classes and other % self._classes <= rank)
        return Tier(rank, tuple(self.order[:place]), feeds)

    def _look(self) -> None:
        """Note which pools each tier needs, and who above it is counted by one of them."""
        lowest = self._pools - 1
        for tier, place in enumerate(self.tiers):
            gates = {min(place.rank, lowest)}
            if self._last and tier >= self._classes and self._counts[lowest][place.rank]:
                gates.add(lowest)
            place.gates = tuple(sorted(gates))
            place.counting = tuple(pool for pool, counts in enumerate(self._counts) if counts[place.rank])
            counted = [any(self._counts[pool][rank] for pool in gates) for rank in range(self._classes)]
            place.rivals = tuple(above for above in place.above if counted[self.tiers[above].rank])
