"""How events leave one event type: what is live, what is old, dead letters, what a person has discarded."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from proxy.bridge.broker import Batch
from proxy.bridge.dead_letters import DeadLetters
from proxy.bridge.discarding import Discarding
from proxy.bridge.sending import Sending


class WaysOut:
    """Each in a task of its own, so that none waits for another; most event types never need but the first."""

    def __init__(self, name: str, live: Sending, letters: DeadLetters, discarding: Discarding) -> None:
        """Make one; `name` is the event type's."""
        self.live = live
        self.old: Sending | None = None
        self._name = name
        self._letters = letters
        self._discarding = discarding
        self._tasks: asyncio.TaskGroup | None = None
        """While it runs."""
        self._catches_up = False
        """There was something old since it runs."""
        self._discards = False

    async def run(self, admit: Callable[[int, int], Awaitable[None]], *, catches_up: bool, discards: bool) -> None:
        """Send until cancelled; from the start also what is old, or what is to be discarded."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._letters.run(admit), name=f"dead letters of {self._name}")
            self._tasks = tasks
            if catches_up:
                self.begin_catching_up()
            if discards:
                self.begin_discarding()
            try:
                await self.live.run()
            finally:
                self._tasks, self._catches_up, self._discards = None, False, False

    def begin_catching_up(self) -> None:
        """Start the way out of what is old, unless it has begun."""
        if self._tasks is not None and not self._catches_up:
            assert self.old is not None
            self._catches_up = True
            self._tasks.create_task(self.old.run(), name=f"catch-up of {self._name}")

    def begin_discarding(self) -> None:
        """Start the way out of what is discarded, unless it has begun."""
        if self._tasks is not None and not self._discards:
            self._discards = True
            self._tasks.create_task(self._discarding.run(), name=f"discarding of {self._name}")

    @property
    def stage(self) -> str:
        """What events on their way to the lane wait for: `rate`, `lease` or `lane`; "" if none is on its way."""
        return self.live.stage or (self.old.stage if self.old is not None else "")

    @property
    def on_way(self) -> Iterator[Batch]:
        """What was handed on and has no outcome yet."""
        yield from self.live.batches
        if self.old is not None:
            yield from self.old.batches

    def wake(self) -> None:
        """Let each look again for something to send."""
        self.live.wake()
        if self.old is not None:
            self.old.wake()
        if self._discards:
            self._discarding.wake()
