"""Processes under test that share one piece of work, seen as one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Self

from load.worker import Worker


class Crew(AbstractContextManager["Crew"]):
    """Makes them when it is entered; they end with it, whatever ends it."""

    def __init__(self, make: Sequence[Callable[[], Worker]]) -> None:
        self._make = make
        self._running = ExitStack()
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        """Start them."""
        with ExitStack() as running:
            self.workers = [running.enter_context(make()) for make in self._make]
            self._running = running.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill whatever still runs."""
        self._running.close()

    async def until(self, is_so: Callable[[], Awaitable[bool]], seconds: float) -> None:
        """Wait for it. Raises WorkerError if one ends meanwhile, or if it is not so in time."""

        async def is_so_while_all_run() -> bool:
            self.check()
            return await is_so()

        await self.workers[0].until(is_so_while_all_run, seconds)

    def check(self) -> None:
        """Raise WorkerError if one has ended."""
        for worker in self.workers:
            worker.check()

    def began(self) -> float:
        """Return when the first was started, in seconds since 1970."""
        return min(worker.process.create_time() for worker in self.workers)

    def cpu_seconds(self) -> float:
        """Return the processor time of all."""
        return sum(worker.cpu_seconds() for worker in self.workers)

    def switches(self) -> int:
        """Return how often they gave up a core by themselves."""
        return sum(worker.process.num_ctx_switches().voluntary for worker in self.workers)

    def rss(self) -> int:
        """Return what the largest has resident, in bytes."""
        return max(int(worker.process.memory_info().rss) for worker in self.workers)

    def peak_rss(self) -> int:
        """Return the most that any ever had resident, in bytes."""
        return max(worker.peak_rss() for worker in self.workers)

    async def stop(self) -> None:
        """End them in order, all at once."""
        await asyncio.gather(*(asyncio.to_thread(worker.stop) for worker in self.workers))
