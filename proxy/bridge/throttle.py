"""How many events of a type may go now: at once, or at the pace of a batch size.

The seed's consumer could not change its batch size either and emulated it by pausing and resuming consumption
(Zalando, 2024-04-22); here the paced release lets the inbox fill up to a mark that follows the batch size, and that
pauses the partitions: what a throttle holds back stays in the log.
"""

import asyncio
import math
from typing import Protocol

from proxy.congestion.detector import Verdict

MARK_TICKS = 20
"""Ticks of a batch size that may wait in the process, but for one fetch."""
_CARRY = 1 - 1e-9


class Throttle(Protocol):
    """Admits events of one event type; its listener is the only caller, one call of each kind at a time."""

    @property
    def batch_size(self) -> float | None:
        """Events per tick; None where there is no such thing."""
        ...

    async def admit(self, want: int, *, size: float, again: bool) -> int:
        """Wait until at least one event may go; return how many of `want` (> 0) may go now.

        `size` is what an event has on average, in bytes; `again`: they were sent before, in vain.
        """
        ...

    def settle(self, events: int, size: int) -> None:
        """Be told how much of what was admitted last is really sent, in events and bytes."""
        ...

    async def admit_letters(self, count: int, *, size: float) -> None:
        """Wait until `count` dead letters may go."""
        ...

    def lift(self, rank: int | None) -> None:
        """Let events that ask from now on go as what is live of another class, 0 the most important; None: of its own.

        Where classes are not told apart nothing changes.
        """
        ...


def inbox_mark(throttle: Throttle) -> float:
    """Return how many events may wait for a throttle before the log is paused; infinite: the inbox's bound decides."""
    size = throttle.batch_size
    return math.inf if size is None else max(1.0, MARK_TICKS * size)


class OpenThrottle:
    """Admits everything at once (`policy: static`)."""

    batch_size = None

    async def admit(self, want: int, *, size: float, again: bool) -> int:  # noqa: ARG002
        """Return `want`."""
        return want

    def settle(self, events: int, size: int) -> None:
        """Do nothing."""

    async def admit_letters(self, count: int, *, size: float) -> None:
        """Do nothing."""

    def lift(self, rank: int | None) -> None:
        """Do nothing: there are no classes here."""


class BatchSize(Protocol):
    """The rule that sets the batch size, `congestion.per_type` for instance."""

    value: float
    """Events per tick, > 0."""

    def on_verdict(self, verdict: Verdict) -> None:
        """Grow or shrink."""
        ...


class PacedThrottle:
    """Admits on average one batch size per tick, never more than one, rounded up, at once (`policy: per_type`)."""

    def __init__(self, tick: float, size: BatchSize, *, phase: float = 0.0) -> None:
        self._tick = tick
        self._size = size
        self._phase = phase
        """Seconds by which the releases are shifted, so that a thousand types do not release in one burst."""
        self._credit = 0.0
        self._granted = 0
        self._last: int | None = None
        self._grown = asyncio.Event()

    @property
    def batch_size(self) -> float:
        """Events per tick."""
        return self._size.value

    def on_verdict(self, verdict: Verdict) -> None:
        """Observe the congestion detector."""
        before = self._size.value
        self._size.on_verdict(verdict)
        if self._size.value > before:
            self._grown.set()

    async def admit(self, want: int, *, size: float, again: bool) -> int:  # noqa: ARG002
        """See `Throttle.admit`."""
        loop = asyncio.get_running_loop()
        while True:
            tick = self._refill(loop.time(), self._size.value)
            if self._credit >= 1:
                self._granted = min(want, int(self._credit))
                self._credit -= self._granted
                return self._granted
            ticks = math.ceil((1 - self._credit) / self._size.value)
            # A size below one event a tick makes long waits; they end early when it has grown.
            self._grown.clear()
            timer = loop.call_at((tick + ticks) * self._tick + self._phase, self._grown.set)
            try:
                await self._grown.wait()
            finally:
                timer.cancel()

    def settle(self, events: int, size: int) -> None:  # noqa: ARG002
        """Take back what could not be used."""
        self._credit += self._granted - events
        self._granted = 0

    async def admit_letters(self, count: int, *, size: float) -> None:
        """Do nothing: the seed knows no dead letters."""

    def lift(self, rank: int | None) -> None:
        """Do nothing: each type has a batch size of its own."""

    def _refill(self, now: float, size: float) -> int:
        tick = math.floor((now - self._phase) / self._tick + 1e-9)
        passed = 1 if self._last is None else tick - self._last
        self._last = tick
        if passed > 0:
            # Idle ticks are not saved up; only the fraction of an event is carried, or 1.5 a tick would be 1.
            self._credit = min(self._credit + passed * size, size + _CARRY)
        return tick
