"""One report at a time has a store: two would take the same files, and merge and remove under each other's hands."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from errno import EROFS
from pathlib import Path

from proxy.reports.files import ReportError
from proxy.reports.places import is_address

LOCK = "store.lock"
"""Its text names the process that has the store, or had it last; what counts is the kernel's lock on it."""


@contextlib.contextmanager
def held(store: str) -> Iterator[None]:
    """Have a store's folder, which is made, to oneself; `kill -9` lets go of it, too.

    Not of an address, where nothing can be locked, nor on a disk that nobody can write to. Raises `ReportError` naming
    who has it.
    """
    if is_address(store):
        yield
        return
    Path(store).mkdir(parents=True, exist_ok=True)
    try:
        # Java, which is started by us, does not inherit it.
        fd = os.open(Path(store, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno != EROFS:
            raise
        yield
        return
    try:
        _lock(fd, store)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, store: str) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(fd, 1000, 0).decode(errors="replace").strip() or "its process is not known"
        raise ReportError(f"{store}: another report has this store ({holder}); try again when it has ended") from error
    os.ftruncate(fd, 0)
    since = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
    os.pwrite(fd, f"process {os.getpid()} on {socket.gethostname()} since {since}\n".encode(), 0)
