"""Turns a batch size into a pace: one batch size of events is released per tick.

The seed's consumer could not change its batch size either and emulated it by pausing and resuming consumption
(Zalando, 2024-04-22); here the paced release lets the inbox fill up to its high mark, which pauses the partitions.
"""

import asyncio
import math
from typing import Protocol

from proxy.congestion.detector import Verdict

_CARRY = 1 - 1e-9


class BatchSize(Protocol):
    """The rule that sets the batch size, `congestion.per_type` for instance."""

    value: float
    """Events per tick, > 0."""

    def on_verdict(self, verdict: Verdict) -> None:
        """Grow or shrink."""
        ...


class Throttle:
    """Admits events of one event type, on average one batch size per tick, never more than one, rounded up, at once.

    Without a batch size (`policy: static`) everything is admitted at once.
    """

    def __init__(self, tick: float, size: BatchSize | None, *, phase: float = 0.0) -> None:
        self._tick = tick
        self._size = size
        self._phase = phase
        """Seconds by which the releases are shifted, so that a thousand types do not release in one burst."""
        self._credit = 0.0
        self._last: int | None = None
        self._grown = asyncio.Event()

    @property
    def batch_size(self) -> float | None:
        """Events per tick; None under `policy: static`."""
        return None if self._size is None else self._size.value

    def on_verdict(self, verdict: Verdict) -> None:
        """Observe the congestion detector."""
        if self._size is not None:
            before = self._size.value
            self._size.on_verdict(verdict)
            if self._size.value > before:
                self._grown.set()

    async def admit(self, want: int) -> int:
        """Wait until at least one event may go; return how many of `want` (> 0) may go now."""
        if self._size is None:
            return want
        loop = asyncio.get_running_loop()
        while True:
            tick = self._refill(loop.time(), self._size.value)
            if self._credit >= 1:
                granted = min(want, int(self._credit))
                self._credit -= granted
                return granted
            ticks = math.ceil((1 - self._credit) / self._size.value)
            # A size below one event a tick makes long waits; they end early when it has grown.
            self._grown.clear()
            timer = loop.call_at((tick + ticks) * self._tick + self._phase, self._grown.set)
            try:
                await self._grown.wait()
            finally:
                timer.cancel()

    def give_back(self, count: int) -> None:
        """Return what was admitted and could not be used."""
        self._credit += count

    def _refill(self, now: float, size: float) -> int:
        tick = math.floor((now - self._phase) / self._tick + 1e-9)
        passed = 1 if self._last is None else tick - self._last
        self._last = tick
        if passed > 0:
            # Idle ticks are not saved up; only the fraction of an event is carried, or 1.5 a tick would be 1.
            self._credit = min(self._credit + passed * size, size + _CARRY)
        return tick
