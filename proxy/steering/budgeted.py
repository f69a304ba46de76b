"""Throttles that wait for tokens: of the route's class budget, of its hard cap."""

import asyncio
from dataclasses import dataclass
from math import inf

from proxy.bridge.throttle import Throttle
from proxy.steering.gate import Gate
from proxy.steering.interruption import Interruption

AGAIN_PATIENCE = 1.0
"""Seconds that what must go again may wait for its tokens, at all gates together; then it goes, and they are subtracted
all the same.

Classes above could keep it from going for ever, and with it the partition it belongs to.
"""


class Tiers:
    """The tiers of one event type: its class's, and one for retries and dead letters, never above the middle."""

    def __init__(self, rank: int, classes: int, *, gates: int = 1, catches_up: bool = False) -> None:
        """Make them; `gates` is how many its events pass, one after the other.

        `catches_up`: those of what is old. A job that has no partition, a redrive for instance, asks for these, too.
        """
        self.patience = AGAIN_PATIENCE / gates
        self._rank = rank
        self._classes = classes
        self._catches_up = catches_up
        self.lift(None)

    def lift(self, rank: int | None) -> None:
        """Stand where what is live of another class does, or where it belongs."""
        behind = self._classes if self._catches_up and rank is None else 0  # as `Divider.catch_up` counts
        own = self._rank if rank is None else rank
        self.first = behind + own
        self.again = behind + max(own, min(1, self._classes - 1))

    def of(self, *, again: bool) -> int:
        """Return the tier of an event."""
        return self.again if again else self.first


@dataclass(frozen=True, slots=True)
class Charge:
    """What events of a type take from the budget of their route."""

    cost: float = 1.0
    """Tokens for each."""
    turn: float | None = None
    """Tokens that a type may always ask for at once: what its class's dearest event costs. None: all cost alike."""


class BudgetedThrottle:
    """Admits what the route's budget has for the class (`policy: class_budget`).

    Asks for one refill at most while anyone waits, so that event types of one class take turns: deficit round robin.
    """

    batch_size = None

    def __init__(self, gate: Gate, tiers: Tiers, charge: Charge = Charge()) -> None:
        self._gate = gate
        self._tiers = tiers
        self._charge = charge
        self._left = 0.0
        """Of the turns before, less than an event costs: it comes on top of the next."""
        self._granted = 0
        self._tier = tiers.first

    async def admit(self, want: int, *, size: float, again: bool) -> int:  # noqa: ARG002
        """See `Throttle.admit`."""
        tier = self._tiers.of(again=again)
        # A portion of its own class even where it queues in a lower tier: one event at a time, each waiting out its
        # patience, would make a partition of the top class as slow as the class below is just now.
        granted = self._events_of_turn(self._gate.portion(self._tiers.first), want)
        tokens = granted * self._charge.cost
        await pass_in_time(self._gate, tier, tokens, again=again, patience=self._tiers.patience)
        self._granted, self._tier = granted, tier
        return granted

    def _events_of_turn(self, portion: float, want: int) -> int:
        """Return how many events a turn is worth, one at least."""
        cost, least = self._charge.cost, self._charge.turn
        if least is None:
            return int(min(want, max(1.0, portion / cost)))
        tokens = max(least, portion) + self._left
        worth = inf if tokens == inf else tokens // cost
        if worth >= want or worth < 1:
            self._left = 0.0
            return want if worth >= want else 1
        self._left = tokens - worth * cost
        return int(worth)

    def settle(self, events: int, size: int) -> None:  # noqa: ARG002
        """Give back what could not be used."""
        if events != self._granted:
            self._gate.give_back(self._tier, (self._granted - events) * self._charge.cost)
        self._granted = 0

    async def admit_letters(self, count: int, *, size: float) -> None:  # noqa: ARG002
        """Take tokens like events that go again, one each: no consumer of the route works on letters."""
        await pass_in_time(self._gate, self._tiers.again, count, again=True, patience=self._tiers.patience)

    def lift(self, rank: int | None) -> None:
        """See `Throttle.lift`; who waits for tokens already goes on waiting where it does."""
        self._tiers.lift(rank)


class CappedThrottle:
    """Admits what another throttle does, within a hard cap; a token of it is an event or a byte."""

    def __init__(self, inner: Throttle, gate: Gate, tiers: Tiers, *, counts_bytes: bool) -> None:
        self.inner = inner
        """What it caps."""
        self._gate = gate
        self._tiers = tiers
        self._counts_bytes = counts_bytes
        self._taken = 0.0
        self._tier = tiers.first

    @property
    def batch_size(self) -> float | None:
        """The inner throttle's."""
        return self.inner.batch_size

    async def admit(self, want: int, *, size: float, again: bool) -> int:
        """See `Throttle.admit`."""
        tier = self._tiers.of(again=again)
        each = max(1.0, size) if self._counts_bytes else 1.0
        granted = await self.inner.admit(
            int(min(want, max(1.0, self._gate.portion(tier) / each))), size=size, again=again
        )
        try:
            await pass_in_time(self._gate, tier, granted * each, again=again, patience=self._tiers.patience)
        except asyncio.CancelledError:
            self.inner.settle(0, 0)
            raise
        self._taken, self._tier = granted * each, tier
        return granted

    def settle(self, events: int, size: int) -> None:
        """Give back what could not be used, take what an estimate was short of."""
        used = size if self._counts_bytes else events
        if used != self._taken:
            self._gate.give_back(self._tier, self._taken - used)
        self._taken = 0.0
        self.inner.settle(events, size)

    async def admit_letters(self, count: int, *, size: float) -> None:
        """Take tokens like events that go again."""
        tokens, tier = count * size if self._counts_bytes else count, self._tiers.again
        await pass_in_time(self._gate, tier, tokens, again=True, patience=self._tiers.patience)
        try:
            await self.inner.admit_letters(count, size=size)
        except asyncio.CancelledError:
            self._gate.give_back(tier, tokens)
            raise

    def lift(self, rank: int | None) -> None:
        """See `Throttle.lift`."""
        self._tiers.lift(rank)
        self.inner.lift(rank)


class HeldThrottle:
    """Admits what another throttle does, and while a person caps it, within that too: the other keeps its state."""

    def __init__(self, inner: Throttle, tiers: Tiers) -> None:
        self.inner = inner
        self._tiers = tiers
        self._now: Throttle = inner
        self._admitted: Throttle = inner
        """Through which the last events were admitted."""
        self._gate: Gate | None = None
        self._lifted: int | None = None
        self._wait, self._letters_wait = Interruption(), Interruption()
        """Of events that ask for the throttle now, and of dead letters; they ask again when it is ended."""

    @property
    def batch_size(self) -> float | None:
        """The inner throttle's."""
        return self.inner.batch_size

    def hold(self, gate: Gate | None) -> None:
        """Pass this gate too, from now on; None: no other. A token of it is an event."""
        if gate is not self._gate:
            self._gate = gate
            self._now = (
                self.inner if gate is None else CappedThrottle(self.inner, gate, self._tiers, counts_bytes=False)
            )

    def replace(self, inner: Throttle) -> None:
        """Admit what another throttle does from now on; who waits for the one before asks this one."""
        inner.lift(self._lifted)
        self.inner = inner
        self._now = inner if self._gate is None else CappedThrottle(inner, self._gate, self._tiers, counts_bytes=False)
        self._wait.end()
        self._letters_wait.end()

    async def admit(self, want: int, *, size: float, again: bool) -> int:
        """See `Throttle.admit`."""
        while True:
            with self._wait:
                self._admitted = self._now
                return await self._admitted.admit(want, size=size, again=again)

    def settle(self, events: int, size: int) -> None:
        """Tell whoever admitted them."""
        self._admitted.settle(events, size)

    async def admit_letters(self, count: int, *, size: float) -> None:
        """See `Throttle.admit_letters`."""
        while True:
            with self._letters_wait:
                return await self._now.admit_letters(count, size=size)

    def lift(self, rank: int | None) -> None:
        """See `Throttle.lift`."""
        self._lifted = rank
        self.inner.lift(rank)
        self._tiers.lift(rank)


async def pass_in_time(gate: Gate, tier: int, tokens: float, *, again: bool, patience: float = AGAIN_PATIENCE) -> None:
    """Wait for tokens; what must go again waits no longer than `patience`, in seconds."""
    if not again:
        await gate.passed(tier, tokens)
        return
    try:
        async with asyncio.timeout(patience):
            await gate.passed(tier, tokens)
    except TimeoutError:
        gate.overdraw(tier, tokens)
