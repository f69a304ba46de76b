"""The thread that waits for the disk in place of the event loop: made once, for as long as the process lives."""

import asyncio
import errno
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue

Work = Callable[[float], None]
"""Called with the time on the loop's clock."""
_Asked = SimpleQueue[tuple[Work, float, Future[None]] | None]


class DiskThread:
    """One daemon thread: it can't hold up the exit of the process, as `asyncio.to_thread` would on a hung disk.

    It is made with the first work. Where the system has no thread to give (a limit on processes), that is tried again
    with the next one.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._asked: _Asked | None = None
        """What the thread is asked; None: there is none."""

    async def run(self, work: Work, now: float) -> None:
        """Do `work(now)` after all that was asked before; return, or raise what it raises, when it has ended.

        Raises `OSError` if there is no thread to be had. Cancelled, it leaves the work to itself.
        """
        if self._asked is None:
            asked: _Asked = SimpleQueue()
            try:
                threading.Thread(target=_live, args=[asked], name=self._name, daemon=True).start()
            except (RuntimeError, MemoryError) as error:
                raise OSError(errno.EAGAIN, f"no thread to write with: {error}") from error
            self._asked = asked
        ended: Future[None] = Future()
        ended.set_running_or_notify_cancel()
        self._asked.put((work, now, ended))
        await asyncio.wrap_future(ended)

    def close(self) -> None:
        """Let the thread end when it has done what it was asked; one that is needed afterwards is another one."""
        if self._asked is not None:
            self._asked.put(None)
            self._asked = None


def _live(asked: _Asked) -> None:
    while (task := asked.get()) is not None:
        work, now, ended = task
        try:
            work(now)
        except BaseException as error:  # noqa: BLE001 - raised again where the future is awaited
            ended.set_exception(error)
        else:
            ended.set_result(None)
