"""What the replicas of a wire history say: every line of their logs, with time and process."""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Iterator, MutableMapping
from typing import Any

import structlog

from proxy.simulation.virtual_time import PROCESS

MOST_LINES = 60
"""Lines kept of each replica, the last ones."""
Line = tuple[float, str, str, dict[str, Any]]
"""When, level, event, and what else it says."""


class Heard:
    """The last lines of each replica."""

    def __init__(self) -> None:
        self.lines: defaultdict[str, deque[Line]] = defaultdict(lambda: deque(maxlen=MOST_LINES))

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take all that is said within the block; nothing of it is printed."""
        before = structlog.get_config()
        structlog.configure(processors=[self._hear], wrapper_class=structlog.make_filtering_bound_logger("info"))
        try:
            yield
        finally:
            structlog.configure(**before)

    def _hear(self, _: Any, level: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        more = dict(line)
        self.lines[PROCESS.get()].append((asyncio.get_running_loop().time(), level, more.pop("event"), more))
        raise structlog.DropEvent
