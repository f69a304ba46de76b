"""An event loop whose time jumps to the next timer: hours of waiting pass in milliseconds, always in the same order.

Only waiting is skipped; everything else runs as in production, on one thread. A wait that nothing can end raises
instead of hanging. Code under it must use the loop's clock only.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from math import ulp
from typing import Any, TypeVar

Result = TypeVar("Result")


class DeadlockError(RuntimeError):
    """Every task waits and no timer is armed: nothing could ever happen again."""


_LOOK_EVERY = 100
"""Turns of the loop from one look at real descriptors to the next; only signals ever come that way."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: tells the loop how long it would have waited instead."""

    def __init__(self, on_wait: Callable[[float], None]) -> None:
        super().__init__()
        self._on_wait = on_wait
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._turns += 1
        ready = super().select(0) if timeout is None or self._turns % _LOOK_EVERY == 0 else []
        if not ready:
            if timeout is None:
                raise DeadlockError("every task waits and no timer is armed")
            self._on_wait(timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Starts at time 0 and never sleeps."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_JumpingSelector(self._pass))

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    @property
    def _clock_resolution(self) -> float:
        """Return how much earlier than its time a timer may fire: not at all, or time would stand still.

        Whoever waits for a time and is called before it waits again, and here no time passes by itself.
        """
        return ulp(self._now)

    @_clock_resolution.setter
    def _clock_resolution(self, seconds: float) -> None:
        """Pass over what the system's clock has."""

    def _pass(self, seconds: float) -> None:
        self._now += max(seconds, 0.0)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run `main` to its end under virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
