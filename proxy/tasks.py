"""The tasks of one process: begun by name, ended as they were meant to, missed when they end by themselves."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any

Work = Callable[[], Coroutine[Any, Any, None]]
Running = asyncio.Task[None]

_MAY_END = {"log start"}
"""Tasks that are through at some time; every other one lasts until it is ended."""


class Tasks:
    """Runs them in `group`, which is set while the process runs."""

    def __init__(self) -> None:
        self.group: asyncio.TaskGroup | None = None
        self._begun: list[Running] = []
        self._kept: dict[str, Running] = {}
        """Those of `keep`."""

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> Running:
        """Begin a task."""
        assert self.group is not None
        task: Running = self.group.create_task(work, name=name)
        task.add_done_callback(self._on_end)
        self._begun.append(task)
        return task

    def _on_end(self, task: Running) -> None:
        """End the process where what a task waited for was cancelled, and it was not: its group would miss nothing."""
        if not task.cancelled() or task.cancelling():
            return
        assert self.group is not None
        failing = _fail(f"{task.get_name()}: what it waited for was cancelled, by nobody who ends it")
        try:
            self.group.create_task(failing, name=task.get_name())
        except RuntimeError:  # all are through
            failing.close()

    def retire(self, task: Running) -> None:
        """End a task as it was meant to."""
        task.cancel()
        self._begun.remove(task)

    def keep(self, works: Mapping[str, Work], anew: Collection[str] = ()) -> None:
        """Have just these works run, of all that this was ever asked for; those that are `anew` begin again."""
        for name in [name for name in self._kept if name not in works or name in anew]:
            self.retire(self._kept.pop(name))
        for name, work in works.items():
            if name not in self._kept:
                self._kept[name] = self.spawn(work(), name)

    def cancel(self) -> None:
        """End all."""
        for task in self._begun:
            task.cancel()

    def ended(self) -> list[str]:
        """Return the names of those that have ended by themselves, and must not have."""
        return [task.get_name() for task in self._begun if task.done() and task.get_name() not in _MAY_END]


async def _fail(why: str) -> None:
    raise RuntimeError(why)


async def either(task: Running, event: asyncio.Event) -> None:
    """Wait until a task has ended or an event is set, whichever comes first."""
    setting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait([task, setting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        setting.cancel()
