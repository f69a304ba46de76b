"""A wait that somebody else may end, so that what was waited for is asked for anew.

As `asyncio.timeout(None)` that is rescheduled to now, at a tenth of its calls: nearly no wait is ever ended, and each
event that goes alone begins one.
"""

import asyncio
from types import TracebackType


class Interruption:
    """For one task at a time: `with interruption: ...` is left quietly when it is ended meanwhile."""

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        """How often the task was cancelled by others when it began."""
        self._is_ended = False

    def __enter__(self) -> None:
        """Begin; only a task waits."""
        task = asyncio.current_task()
        assert task is not None
        self._task, self._cancelling = task, task.cancelling()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Tell whether it was only ended: whoever cancels the task as well is heard."""
        task, self._task = self._task, None
        if not self._is_ended:
            return False
        self._is_ended = False
        assert task is not None
        return task.uncancel() <= self._cancelling and kind is not None and issubclass(kind, asyncio.CancelledError)

    def end(self) -> None:
        """End the wait under way, if there is one."""
        if self._task is not None and not self._is_ended:
            self._is_ended = True
            self._task.cancel()
