"""The production metric log on a disk in memory that can fill up."""

import errno
from collections import deque
from collections.abc import Callable
from pathlib import Path

from proxy.recording import MetricLog
from proxy.recording.folder import MetricFolder
from proxy.settings import MetricLogSettings


class MemoryDisk(MetricFolder):
    """Keeps lines instead of files."""

    def __init__(self, settings: MetricLogSettings, wall: Callable[[], float], instance: str) -> None:
        super().__init__(Path(), settings, wall, instance)
        self.lines: list[bytes] = []
        self.is_full = False

    def append(self, lines: deque[bytes], now: float) -> None:  # noqa: ARG002 -- memory does not age
        """Keep the lines. Raises `OSError` while the disk is full."""
        if self.is_full and lines:
            raise OSError(errno.ENOSPC, "no space left on device")
        self.lines.extend(lines)
        lines.clear()

    def rotate_if_old(self, now: float) -> None:
        """Do nothing: there are no files."""

    def rotate(self) -> None:
        """Do nothing: there are no files."""

    def finish_leftovers(self, now: float) -> None:
        """Do nothing: there are no files."""


class MemoryMetricLog(MetricLog):
    """Writes to a `MemoryDisk`, without a thread."""

    def __init__(self, settings: MetricLogSettings, wall: Callable[[], float], instance: str) -> None:
        super().__init__(settings, wall, instance, offload=_at_once)
        self.disk = MemoryDisk(settings, wall, instance)
        self._folder = self.disk


async def _at_once(work: Callable[[float], None], now: float) -> None:
    work(now)
