"""One report at a time has a store at an address, where nothing can be locked: who has it says so every few seconds.

```
STORE/locks/00000007    the highest number has the store: `process 12 on host since ...`, or `free`
STORE/locks/now         written to learn what time it is there
```

A number is taken by making its file, which only one can (`Places.create_text`), and never used again. The file is
written anew every `RENEWAL_S`; if it was not for `LEASE_S`, by the clock of the store, its process is taken for dead
and anybody may take the next number. A process that was stopped meanwhile finds a higher number than its own, and ends.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator

from proxy.reports.files import ReportError
from proxy.reports.places import Entry, Places, join

LOCKS = "locks"
"""The folder in a store."""
RENEWAL_S = 15.0
LEASE_S = 120.0
"""Longer than a Java on a busy machine or a store stands still."""
_FREE = "free"
_NOW = "now"


class Lease:
    """The number of one process."""

    def __init__(self, places: Places, store: str) -> None:
        self._places, self._store, self._number, self._text = places, store, 0, ""
        self.is_lost = False
        """Whether another process was seen to have the store."""

    def take(self, holder: str) -> None:
        """Take the next number in the name of `holder`. Raises `ReportError` naming who has the store."""
        before = self._numbers()
        if before:
            self._check_free(before[-1])
        self._number, self._text = _number(before[-1]) + 1 if before else 1, f"{holder}\n"
        if not self._places.create_text(self._place, self._text) or not self._is_ours():
            raise ReportError(f"{self._store}: another report took this store just now; try again when it has ended")
        for entry in before:
            self._places.delete(entry.place)

    def renew(self) -> None:
        """Say that this process lives, if it still has the store."""
        if self._is_ours():
            self._places.write_text(self._place, self._text)

    def check(self) -> None:
        """Raise `ReportError` if another process has taken the store over."""
        if not self._is_ours():
            raise ReportError(
                f"{self._store}: another report has taken this store over, as nothing was heard of this one for"
                f" {LEASE_S:.0f} s; make the report again"
            )

    def release(self) -> None:
        """Let others take the store."""
        if self._is_ours():
            self._places.write_text(self._place, f"{_FREE}\n")

    @property
    def _place(self) -> str:
        return join(self._store, LOCKS, f"{self._number:08d}")

    def _is_ours(self) -> bool:
        numbers = self._numbers()
        self.is_lost = not numbers or _number(numbers[-1]) != self._number
        return not self.is_lost

    def _numbers(self) -> list[Entry]:
        found = self._places.entries(join(self._store, LOCKS))
        return [entry for entry in found if entry.place.rpartition("/")[2].isdecimal()]

    def _check_free(self, last: Entry) -> None:
        holder = self._places.read_text(last.place).strip() or "its process is not known"
        if holder == _FREE:
            return
        left = LEASE_S - (self._now_ms() - last.changed_ms) / 1000
        if left > 0:
            raise ReportError(
                f"{self._store}: another report has this store ({holder}); try again when it has ended,"
                f" or in {left:.0f} s if it was killed"
            )

    def _now_ms(self) -> int:
        """Return what time it is where the store is."""
        place = join(self._store, LOCKS, _NOW)
        self._places.write_text(place, "")
        return self._places.entries(place)[0].changed_ms


@contextlib.contextmanager
def leased(places: Places, store: str, holder: str, on_lost: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Have the store to oneself; give a function that raises `ReportError` if that is no longer so.

    `on_lost` is called, in another thread, when another process has taken over: it ends what writes.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    lease, ended = Lease(places, store), threading.Event()
    lease.take(holder)

    def keep() -> None:
        while not ended.wait(RENEWAL_S):
            with contextlib.suppress(ReportError, Py4JError):  # a store that is away fails the report elsewhere
                lease.renew()
            if lease.is_lost:
                on_lost()
                return

    keeper = threading.Thread(target=keep, name="lease", daemon=True)
    keeper.start()
    try:
        yield lease.check
    except Exception:
        if lease.is_lost:
            lease.check()
        raise
    finally:
        ended.set()
        keeper.join()
        with contextlib.suppress(ReportError, Py4JError):  # it is free by itself in `LEASE_S`
            lease.release()


def _number(entry: Entry) -> int:
    return int(entry.place.rpartition("/")[2])
