"""One report at a time has a store: two would take the same files, and merge and remove under each other's hands."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from errno import EROFS
from pathlib import Path

from proxy.reports.files import ReportError
from proxy.reports.places import Places, is_address
from proxy.reports.store.lease import leased

LOCK = "store.lock"
"""Its text names the process that has the store, or had it last; what counts is the kernel's lock on it."""


@contextlib.contextmanager
def held(places: Places, store: str, on_lost: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Have a store's folder, which is made, to oneself; `kill -9` lets go of it, too, of an address after a while.

    Give a function that raises `ReportError` if another process has taken the store over; that, and that `on_lost` is
    called, comes to pass at an address only (`lease`). On a disk that nobody can write to nothing is held. Raises
    `ReportError` naming who has it.
    """
    since = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
    holder = f"process {os.getpid()} on {socket.gethostname()} since {since}"
    folder = store.removeprefix("file://")  # a disk's, however it is spelled
    if is_address(folder):
        with leased(places, store, holder, on_lost) as check:
            yield check
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    try:
        # Java, which is started by us, does not inherit it.
        fd = os.open(Path(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno != EROFS:
            raise
        yield _always_ours
        return
    try:
        _lock(fd, store, holder)
        yield _always_ours
    finally:
        os.close(fd)


def _always_ours() -> None:
    """Nobody takes over what the kernel has locked."""


def _lock(fd: int, store: str, holder: str) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        other = os.pread(fd, 1000, 0).decode(errors="replace").strip() or "its process is not known"
        raise ReportError(f"{store}: another report has this store ({other}); try again when it has ended") from error
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{holder}\n".encode(), 0)
