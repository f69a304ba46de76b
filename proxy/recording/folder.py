"""The files of the metric log: where its lines rest until they are compressed, and until they are dropped.

`NAME.jsonl.open` becomes `NAME.jsonl.gz` by compression and a rename, so that a finished name always holds whole files.
The owner of an open file holds a lock on it. The kernel lets go of the lock when the process dies, however it dies;
therefore an open file that can be locked is a dead process's, and whoever finds it finishes it.
"""

import contextlib
import errno
import fcntl
import gzip
import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from proxy.settings import MetricLogSettings

_OPEN = ".jsonl.open"
_FINISHED = ".jsonl.gz"
_OURS = re.compile(r"\d{8}T\d{6}Z-.+-\d{6}\.jsonl\.(open|gz)")
_GZIP_LEVEL = 4
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""What a full disk, and a used up quota, answer."""
FINISH_AGAIN = 60.0
"""Seconds between two tries to compress on a disk that is full and shows no more room than before (a quota may not)."""


class MetricFolder:
    """The files of one process in a folder that others may share. Every call may block and may raise `OSError`."""

    def __init__(self, path: Path, settings: MetricLogSettings, wall: Callable[[], float], instance: str) -> None:
        self.path = path
        self.dropped = 0
        self.lost_records = 0
        """Written, and gone with their file since somebody removed it while it was open."""
        self.taken: Path | None = None
        """An open file that was removed or renamed, until somebody speaks of it and sets this back."""
        self._wall = wall
        self._instance = re.sub(r"[^A-Za-z0-9._-]", "_", instance)[:100]
        self._total_bytes = settings.total_bytes
        self._file_bytes = min(settings.file_bytes, settings.total_bytes // 4)
        self._file_age = settings.file_age
        self._number = 0
        self._fd: int | None = None
        self._file = path
        self._size = 0
        self._records = 0
        """In the open file."""
        self._opened_at = 0.0
        self._leftovers_due = True
        self._short: OSError | None = None
        """What the disk answered for want of space when a file was to be compressed, until all are."""
        self._short_free = 0
        """Bytes that were free then."""
        self._short_at = 0.0

    def append(self, lines: deque[bytes], now: float) -> None:
        """Write the lines and take each off the front once it is written whole, so that a retry repeats none.

        Returns early when the file is full, so that it is compressed before the next one takes its room. For the same
        reason nothing is written while the disk has no room to compress what is ended.
        """
        if self._short is not None:
            self.finish_leftovers(now)
        while lines:
            fd = self._open(now) if self._fd is None else self._fd
            data = b"".join(_fitting(lines, self._file_bytes - self._size))
            written = 0
            try:
                while written < len(data):
                    written += os.write(fd, data[written:])
            finally:
                self._take_off(lines, written)
            if self._size >= self._file_bytes:
                self.rotate()
                return

    def rotate_if_old(self, now: float) -> None:
        """End the open file if it is old enough."""
        if self._fd is not None and now - self._opened_at >= self._file_age:
            self.rotate()

    def rotate(self) -> None:
        """End the open file, if there is one; `finish_leftovers` does the rest."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            self._size = 0
            self._leftovers_due = True

    def finish_leftovers(self, now: float) -> None:
        """Compress every ended file, of this process or of a dead one, and keep within the bytes allowed.

        On a full disk it goes on raising until there is room for that; it tries again only when there is more room than
        before, as compressing costs CPU.
        """
        if not self._leftovers_due:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        free = _free_bytes(self.path)
        if self._short is not None and free <= self._short_free and now - self._short_at < FINISH_AGAIN:
            raise self._short
        self._leftovers_due, self._short = False, None
        errors: list[OSError] = []
        for path in sorted(self.path.glob("*" + _OPEN)):
            try:
                with _locked(path) as source:
                    if source is not None:
                        self._make_room(os.fstat(source).st_size)
                        _compress(source, path)
            except OSError as error:
                errors.append(error)  # one that can't be read must not keep the others from being finished
                if error.errno in NO_SPACE:
                    self._leftovers_due, self._short = True, error
                    self._short_free, self._short_at = _free_bytes(self.path), now
        if errors:
            raise self._short or errors[0]

    def _take_off(self, lines: deque[bytes], written: int) -> None:
        while lines and written >= len(lines[0]):
            written -= len(lines[0])
            self._size += len(lines.popleft())
            self._records += 1
        if written and self._fd is not None:
            try:
                os.ftruncate(self._fd, self._size)
            except OSError:
                self.rotate()  # the torn line stays at the end of its file, where the report counts it

    def abandon_if_taken(self) -> None:
        """Leave the open file if it was removed or renamed: without its name it would take the records with it."""
        if self._fd is None:
            return
        try:
            same = os.path.samestat(self._file.stat(), os.fstat(self._fd))
        except (FileNotFoundError, NotADirectoryError):
            same = False
        if not same:
            self.taken = self._file
            if not os.fstat(self._fd).st_nlink:
                self.lost_records += self._records
            self.rotate()

    def _open(self, now: float) -> int:
        self.path.mkdir(parents=True, exist_ok=True)
        self._make_room(0)
        while True:
            self._number += 1
            stamp = datetime.fromtimestamp(self._wall(), UTC).strftime("%Y%m%dT%H%M%SZ")
            path = self.path / f"{stamp}-{self._instance}-{self._number:06d}{_OPEN}"
            try:
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
            except FileExistsError:
                continue
            # without the lock, another process took the new file for a dead one's; a finished one of that name would
            # pass for this one's compressed copy
            if _lock(fd, path) and not _finished(path).exists():
                self._fd, self._file, self._size, self._records, self._opened_at = fd, path, 0, 0, now
                return fd
            os.close(fd)

    def _make_room(self, extra: int) -> None:
        """Remove the oldest files until `extra` bytes and the rest of the open file fit in; locked ones stay."""
        files: list[tuple[Path, int]] = []
        for path in sorted(self.path.iterdir()):
            if _OURS.fullmatch(path.name):
                with contextlib.suppress(FileNotFoundError):
                    files.append((path, path.stat().st_size))
        excess = sum(size for _, size in files) + extra + self._file_bytes - self._size - self._total_bytes
        for path, size in files:
            if excess <= 0:
                return
            if path.name.endswith(_FINISHED):
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
                    self.dropped += 1
                    excess -= size


def _fitting(lines: deque[bytes], room: int) -> Iterator[bytes]:
    for line in lines:
        yield line
        room -= len(line)
        if room <= 0:
            return


def _lock(fd: int, path: Path) -> bool:
    """Lock the file if nobody else has, and only if the path still names it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(fd), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int | None]:
    """Open and lock a file that nobody writes any more; None if somebody does, or it is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield fd if _lock(fd, path) else None
    finally:
        os.close(fd)


def _free_bytes(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _finished(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(_OPEN) + _FINISHED)


def _compress(source: int, path: Path) -> None:
    """Make `NAME.jsonl.gz` of the open `NAME.jsonl.open`, then remove that; a crash between leaves both, alike."""
    finished = _finished(path)
    part = path.with_name(f".{finished.name}.part")
    try:
        if os.fstat(source).st_size:
            with part.open("wb") as target:
                packed = gzip.GzipFile("", "wb", _GZIP_LEVEL, target, mtime=0)
                with packed, os.fdopen(os.dup(source), "rb") as lines:
                    shutil.copyfileobj(lines, packed, 1024 * 1024)
                target.flush()
                os.fsync(target.fileno())
            part.replace(finished)
    finally:
        part.unlink(missing_ok=True)
    path.unlink()
