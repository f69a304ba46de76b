"""An event loop whose time jumps to the next timer: hours of waiting pass in milliseconds, always in the same order.

Only waiting is skipped; everything else runs as in production, on one thread. A wait that nothing can end raises
instead of hanging. Code under it must use the loop's clock only.
"""

import asyncio
import itertools
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from math import ulp
from typing import Any, Self, TypeVar

Result = TypeVar("Result")


class DeadlockError(RuntimeError):
    """Every task waits and no timer is armed: nothing could ever happen again."""


_LOOK_EVERY = 100
"""Turns of the loop from one look at real descriptors to the next; only signals ever come that way."""


class EndlessError(RuntimeError):
    """So many turns of the loop that what runs there would never end."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: tells the loop how long it would have waited instead."""

    def __init__(self, on_wait: Callable[[float], None], most_turns: int | None) -> None:
        super().__init__()
        self._on_wait = on_wait
        self._most_turns = most_turns
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready, now and then; else let `timeout` seconds pass.

        Raises `DeadlockError` if nothing can ever come, `EndlessError` after too many turns.
        """
        self._turns += 1
        if self._turns == self._most_turns:
            raise EndlessError(f"{self._turns:,} turns of the loop")
        ready = super().select(0) if timeout is None or self._turns % _LOOK_EVERY == 0 else []
        if not ready:
            if timeout is None:
                raise DeadlockError("every task waits and no timer is armed")
            self._on_wait(timeout)
        return ready


class _NumberedTask(asyncio.Task[Any]):
    """Stands in a set where its number says.

    asyncio keeps tasks in sets, and cancels a group's in that set's order: by addresses, which are other ones in every
    process.
    """

    number: int

    def __new__(cls, *_: Any, number: int, **__: Any) -> Self:
        made = super().__new__(cls)
        made.number = number  # asyncio asks for the hash before `__init__` returns
        return made

    def __init__(self, work: Any, *, number: int, **more: Any) -> None:  # noqa: ARG002 -- see `__new__`
        super().__init__(work, **more)

    def __hash__(self) -> int:
        return self.number


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Starts at time 0 and never sleeps. Raises `EndlessError` after `most_turns`, if that is given."""

    def __init__(self, most_turns: int | None = None) -> None:
        self._now = 0.0
        self._numbers = itertools.count()
        super().__init__(_JumpingSelector(self._pass, most_turns))
        self.set_task_factory(self._new_task)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now

    def timers_of_processes(self) -> list[asyncio.TimerHandle]:
        """Return the timers that are armed on behalf of a simulated process."""
        scheduled: list[Any] = getattr(self, "_scheduled", [])
        return [timer for timer in scheduled if not timer.cancelled() and timer._context.get(PROCESS)]  # noqa: SLF001

    @property
    def _clock_resolution(self) -> float:
        """Return how much earlier than its time a timer may fire: not at all, or time would stand still.

        Whoever waits for a time and is called before it waits again, and here no time passes by itself.
        """
        return ulp(self._now)

    @_clock_resolution.setter
    def _clock_resolution(self, seconds: float) -> None:
        """Pass over what the system's clock has."""

    def _new_task(self, _: Any, work: Any, **more: Any) -> _NumberedTask:
        return _NumberedTask(work, loop=self, number=next(self._numbers), **more)

    def _pass(self, seconds: float) -> None:
        self._now += max(seconds, 0.0)


PROCESS: ContextVar[str] = ContextVar("process", default="")
"""The simulated process that a task or callback is part of; "" is the world around them."""


class StoppableLoop(VirtualTimeLoop):
    """One on which a simulated process can be stopped and resumed, as by SIGSTOP and SIGCONT; all others go on."""

    def __init__(self, most_turns: int | None = None) -> None:
        self.stopped: dict[str, list[_Owned]] = {}
        """By process: what fell due while it was stopped, in order."""
        super().__init__(most_turns)

    def stop_process(self, name: str) -> None:
        """Run nothing of the process any more."""
        if not self.stopped:
            # While nobody is stopped callbacks are bare; now all are looked at before they run.
            waiting: Any = self
            for handle in (*waiting._ready, *waiting._scheduled):  # noqa: SLF001
                self._own(handle)
        self.stopped.setdefault(name, [])

    def resume_process(self, name: str) -> None:
        """Run what fell due meanwhile, all at once, and go on; to it, time has jumped."""
        for owned in self.stopped.pop(name, []):
            super().call_soon(owned.resume, context=owned.context)

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        """See the event loop's documentation."""
        handle = super().call_soon(callback, *args, context=context)
        if self.stopped:
            self._own(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See the event loop's documentation."""
        handle = super().call_at(when, callback, *args, context=context)
        if self.stopped:
            self._own(handle)
        return handle

    def _own(self, handle: Any) -> None:
        """Let a callback be put aside if its process is stopped when it falls due."""
        owner = handle._context.get(PROCESS, "")  # noqa: SLF001
        if owner and not handle.cancelled() and not isinstance(handle._callback, _Owned):  # noqa: SLF001
            handle._callback, handle._args = _Owned(self, owner, handle), ()  # noqa: SLF001


class _Owned:
    """A callback of a process, put aside if that is stopped when it falls due."""

    __slots__ = ("args", "callback", "context", "handle", "loop", "owner")

    def __init__(self, loop: StoppableLoop, owner: str, handle: Any) -> None:
        self.loop = loop
        self.owner = owner
        self.handle = handle
        self.context, self.callback, self.args = handle._context, handle._callback, handle._args  # noqa: SLF001

    def __call__(self) -> None:
        waiting = self.loop.stopped.get(self.owner)
        if waiting is None:
            self.callback(*self.args)
        else:
            waiting.append(self)

    def resume(self) -> None:
        """Run, unless something that ran before has cancelled it."""
        if not self.handle.cancelled():
            self()


def run(
    main: Coroutine[Any, Any, Result], loop_factory: Callable[[], asyncio.AbstractEventLoop] = VirtualTimeLoop
) -> Result:
    """Run `main` to its end under virtual time."""
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(main)
