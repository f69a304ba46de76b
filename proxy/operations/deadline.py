"""A deadline for a whole answer: a socket's own counts anew with every byte, and one byte may come now and then."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class LateError(TimeoutError):
    """The answer was not whole in time."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `LateError` in what is done here once so many seconds are over. In the main thread alone, for commands."""

    def end(*_: object) -> None:
        raise LateError(f"no whole answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
