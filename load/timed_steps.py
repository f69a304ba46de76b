"""Tidegate with every step of its event loop timed: `python -m load.timed_steps FILE run -c SETTINGS`.

On asyncio's own loop, whose steps go through one place, in processor time of its thread: what another process takes of
the machine does not count. Timing costs some, and that loop more than the one that ships, so CPU is measured elsewhere.
"""

import asyncio
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from proxy import event_loop
from proxy.__main__ import main

LONG_SECONDS = 0.005
"""Steps from here on are told one by one."""
MOST_LONG = 20_000
_RUN = asyncio.Handle._run  # noqa: SLF001 - the one place through which every step goes


class Steps:
    """What the steps took. Written when the process ends, as JSON."""

    def __init__(self) -> None:
        self._kinds: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
        self._long: list[tuple[float, float, str]] = []

    def time(self, handle: Any) -> None:
        """Run a step of the loop."""
        began = time.thread_time()
        _RUN(handle)
        took, name = time.thread_time() - began, step_name(handle._callback)  # noqa: SLF001 - named nowhere else
        kind = self._kinds[name]
        kind[0] += 1
        kind[1] += took
        kind[2] = max(kind[2], took)
        if took >= LONG_SECONDS and len(self._long) < MOST_LONG:
            self._long.append((time.monotonic(), took, name))

    def write(self, file: Path) -> None:
        """Write how often and how long each kind of step was, at most too, and each long one with its instant."""
        kinds = {
            name: {"count": count, "cpu_s": all_, "most_s": most} for name, (count, all_, most) in self._kinds.items()
        }
        file.write_text(json.dumps({"kinds": kinds, "long": self._long}), encoding="utf-8")


def step_name(callback: Any) -> str:
    """Return what a step is of: the coroutine of a task, else the function."""
    callback = getattr(callback, "func", callback)
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return str(getattr(owner.get_coro(), "__qualname__", owner.get_name()))
    return str(getattr(callback, "__qualname__", repr(callback)))


if __name__ == "__main__":
    steps = Steps()

    def timed(handle: asyncio.Handle) -> None:
        """Stand in for the loop's own way to run a step."""
        steps.time(handle)

    asyncio.Handle._run = timed  # type: ignore[method-assign,assignment]  # noqa: SLF001 - as above
    event_loop.PreciseLoop = asyncio.SelectorEventLoop  # type: ignore[misc, assignment]
    code = main(sys.argv[2:])
    steps.write(Path(sys.argv[1]))
    sys.exit(code)
