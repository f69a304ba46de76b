"""The metric log: JSON Lines for the reports (docs/metric-log.md), never in the bridge's way.

`write` appends to a bounded buffer and returns. `run` empties the buffer every half second, off the event loop, into
the files of `folder`. What fails there, whatever it is, is said once per change of state and tried again; what is lost
by that is counted. No failure leaves `run` or `close`.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import structlog

from proxy.recording.disk_thread import DiskThread, Work
from proxy.recording.folder import NO_SPACE, MetricFolder
from proxy.records import Drops, enveloped
from proxy.settings import MetricLogSettings

FLUSH_INTERVAL = 0.5
"""Seconds between two writes to the disk."""
RETRY_INTERVAL = 2.0
"""Seconds between two writes after one that failed."""
CLOSE_DEADLINE = 5.0
"""Seconds that `close` waits for the disk."""
CHUNK_RECORDS = 500
"""Records made into lines and handed to the disk at once."""

_say = structlog.get_logger("tidegate.metrics")
_as_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

Offload = Callable[[Work, float], Awaitable[None]]
"""Does `work(now)` where blocking does no harm, and returns when it has ended; `OSError` if it can't be done."""


class MetricLog:
    """Takes records at any rate; loses them, counted, rather than waiting or raising.

    `wall` gives seconds since 1970 and is used for `at_ms` and file names only; `instance` names this process among all
    that ever write into the folder. `offload` is replaced where no thread may run (the simulation).
    """

    def __init__(
        self,
        settings: MetricLogSettings,
        wall: Callable[[], float],
        instance: str,
        *,
        offload: Offload | None = None,
    ) -> None:
        self._wall = wall
        self._instance = instance
        self._thread = DiskThread("metric-log")
        self._offload = offload or self._thread.run
        self._bound = settings.buffer_records
        self._folder = (
            None if settings.folder is None else MetricFolder(Path(settings.folder), settings, wall, instance)
        )
        self._waiting: deque[Mapping[str, Any]] = deque()
        self._lines: deque[bytes] = deque()
        self._overflowed = 0
        self._unwritable = 0
        self._said_records = 0
        self._said_files = 0
        self._dropped_before = 0
        """Of `dropped_records`, those from before the log was last said to be unavailable."""
        self._is_closed = False
        self.failing = False
        """Whether the last attempt to write failed."""

    @property
    def waiting(self) -> int:
        """Records taken and not yet on disk; at most `buffer_records`."""
        return len(self._waiting) + len(self._lines)

    @property
    def dropped_records(self) -> int:
        """Records lost since the start: no room in the buffer, not expressible as JSON, or removed with their file."""
        return self._overflowed + self._unwritable + (0 if self._folder is None else self._folder.lost_records)

    @property
    def dropped_files(self) -> int:
        """Finished files removed since the start to keep the folder within `total_bytes`."""
        return 0 if self._folder is None else self._folder.dropped

    def write(self, record: Mapping[str, Any]) -> None:
        """Take a record, envelope and all. Never blocks, never raises; what it holds must not be altered afterwards."""
        if self._folder is None:
            return
        if self.waiting >= self._bound:
            self._overflowed += 1
            return
        self._waiting.append(record)

    async def run(self) -> None:
        """Write what was taken, until cancelled or closed; returns at once if no folder is set."""
        if self._folder is None:
            return
        loop = asyncio.get_running_loop()
        while not self._is_closed:
            await self._at_disk(self._drain, loop.time())
            await asyncio.sleep(RETRY_INTERVAL if self.failing else FLUSH_INTERVAL)

    async def close(self) -> None:
        """Write what still waits and finish the file; gives up after `CLOSE_DEADLINE` seconds. Idempotent.

        What can't be written by then is lost, and said to be.
        """
        if self._folder is None:
            return
        self._is_closed = True
        effect = "they are lost"
        try:
            async with asyncio.timeout(CLOSE_DEADLINE):
                await self._at_disk(self._finish, asyncio.get_running_loop().time())
        except TimeoutError:
            effect = "perhaps lost; the next start finishes the file"
        else:
            if not self.waiting:
                return
        finally:
            self._thread.close()
        _say.warning("metric_log_unfinished", records_left=self.waiting, effect=effect)

    async def _at_disk(self, work: Work, now: float) -> None:
        """Work where blocking does no harm; where that can't be (no thread to be had), it is a failure of the disk."""
        try:
            await self._offload(work, now)
        except OSError as error:
            self._fail(error)

    def _drain(self, now: float) -> None:
        assert self._folder is not None
        with self._telling_of_failure():
            self._folder.abandon_if_taken()
            self._tell_of_taken()
            self._folder.rotate_if_old(now)
            while self._waiting or self._lines or self._unsaid_losses():
                self._make_lines()
                self._folder.append(self._lines, now)
                self._folder.finish_leftovers(now)
            self._folder.finish_leftovers(now)

    def _finish(self, now: float) -> None:
        assert self._folder is not None
        self._drain(now)
        with self._telling_of_failure():
            self._folder.rotate()
            self._folder.finish_leftovers(now)

    @contextlib.contextmanager
    def _telling_of_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever fails here must not end the process
            self._fail(error)
        else:
            if self._lines:
                return  # the disk did something else, and still has not taken these
            if self.failing:
                _say.info(
                    "metric_log_available",
                    dropped_records=self.dropped_records - self._dropped_before,
                    effect="records are written again; so many were dropped since the log was said to be unavailable",
                )
            self.failing = False

    def _tell_of_taken(self) -> None:
        """Say that somebody removed or renamed the open file."""
        assert self._folder is not None
        file, self._folder.taken = self._folder.taken, None
        if file is not None:
            _say.warning(
                "metric_log_file_taken",
                file=str(file),
                dropped_records=self.dropped_records,
                effect="somebody removed or renamed it while it was open: what was removed is lost and counted, what "
                "was renamed is finished by nobody; a new file is begun",
                remedy="move or remove only files that end in .gz",
            )

    def _fail(self, error: Exception) -> None:
        assert self._folder is not None
        if not self.failing:
            _say.warning(
                "metric_log_unavailable",
                folder=str(self._folder.path),
                why=str(error) if isinstance(error, OSError) else repr(error),
                effect="records wait, then are dropped and counted; data flows on",
                remedy=_remedy(error),
            )
            self._dropped_before = self.dropped_records
        self.failing = True

    def _unsaid_losses(self) -> bool:
        return self.dropped_records > self._said_records or self.dropped_files > self._said_files

    def _make_lines(self) -> None:
        if self._unsaid_losses():
            records, files = self.dropped_records, self.dropped_files
            drops = Drops(records=records - self._said_records, files=files - self._said_files)
            self._lines.append(_line(enveloped(drops, at_ms=int(self._wall() * 1000), instance=self._instance)))
            self._said_records, self._said_files = records, files
        while self._waiting and len(self._lines) < CHUNK_RECORDS:
            record = self._waiting[0]
            try:
                self._lines.append(_line(record))
            except (TypeError, ValueError) as error:
                if not self._unwritable:
                    _say.error("metric_record_refused", kind=record.get("kind"), why=f"it is not JSON: {error}")
                self._unwritable += 1
            self._waiting.popleft()


def _remedy(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in NO_SPACE:
        return "make room on this disk, or set metric_log.total_bytes below what it can take; it is tried again"
    return "see that this process can write into the folder; it is tried again every two seconds"


def _line(record: Mapping[str, Any]) -> bytes:
    return _as_json(record).encode() + b"\n"
