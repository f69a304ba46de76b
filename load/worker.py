"""A process under test: started, watched, stopped, and never left behind."""

import asyncio
import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

STOP_SECONDS = 30.0
CONDITION_POLL_SECONDS = 0.05
PR_SET_PDEATHSIG = 1

_LIBC = ctypes.CDLL(None)


class WorkerError(Exception):
    """A process under test ended when it should not have, or did not end when it should; with its last words."""


class Worker:
    """One Python module run as a process; ends with this one, whatever ends this one. A context manager."""

    def __init__(
        self, module: str, *arguments: str, output: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._output = output
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=_die_with_parent,  # noqa: PLW1509 - started before any thread is
            )  # fmt: skip
        self._view = psutil.Process(self._process.pid)
        self._cpu_seconds, self._peak_rss = 0.0, 0

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill it, if it still runs."""
        self.kill()

    @property
    def code(self) -> int | None:
        """Exit code; None while it runs."""
        return self._process.poll()

    @property
    def process(self) -> psutil.Process:
        """The process, to look at."""
        return self._view

    def suspend(self) -> None:
        """Let it stand still (SIGSTOP) until `resume`."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on (SIGCONT)."""
        self._process.send_signal(signal.SIGCONT)

    def cpu_seconds(self) -> float:
        """Return the processor time used since its start, user and system; once it has ended, what was known last."""
        with suppress(psutil.NoSuchProcess):
            times = self._view.cpu_times()
            self._cpu_seconds = float(times.user + times.system)
        return self._cpu_seconds

    def peak_rss(self) -> int:
        """Return the most memory it ever had resident, in bytes; once it has ended, what was known last."""
        with suppress(OSError):
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii", errors="replace")
            told = (int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))
            self._peak_rss = next(told, self._peak_rss)
        return self._peak_rss

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ask it to end (SIGTERM) and wait. Raises WorkerError if it does not, or not with exit code 0."""
        if self.code is None:
            self._process.send_signal(signal.SIGTERM)
        self.join(seconds)

    def join(self, seconds: float) -> None:
        """Wait until it ends by itself. Raises WorkerError if it does not, or not with exit code 0."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise WorkerError(f"still running after {seconds:.0f} s\n{self.last_words()}") from None
        if code:
            raise WorkerError(f"ended with exit code {code}\n{self.last_words()}")

    def check(self) -> None:
        """Raise WorkerError if it has ended with anything but exit code 0."""
        if self.code:
            self.join(0)

    async def until(self, condition: Callable[[], Awaitable[bool]], seconds: float) -> None:
        """Wait until something is so that it does. Raises WorkerError if it ends before, or time does."""
        deadline = time.monotonic() + seconds
        while not await condition():
            self.check()
            if time.monotonic() > deadline:
                raise WorkerError(f"not so after {seconds:g} s\n{self.last_words()}")
            await asyncio.sleep(CONDITION_POLL_SECONDS)

    def kill(self) -> None:
        """End it at once (SIGKILL), if it still runs."""
        if self.code is None:
            self._process.kill()
        self._process.wait()

    def last_words(self, lines: int = 12) -> str:
        """Return the end of what it printed."""
        return "\n".join(self._output.read_text(errors="replace").splitlines()[-lines:])


def await_workers(workers: Sequence[Worker], seconds: float) -> None:
    """Wait until all have ended by themselves. Raises WorkerError as `join` does."""
    deadline = time.monotonic() + seconds
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))


def _die_with_parent() -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
