"""A command with all processes that it starts, and a signal that must end every one of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 60.0
"""A busy machine takes long to import."""


class ProcessGroup:
    """A Python command in a group of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    @property
    def living(self) -> list[int]:
        """The processes of the group that run, by their ids."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _parent, group = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[:3]
            except (FileNotFoundError, ProcessLookupError):  # it has just ended
                continue
            if int(group) == self.process.pid and state != "Z":
                found.append(int(stat.parent.name))
        return found

    def until(self, condition: Callable[[], bool], *, deadline: float) -> None:
        """Wait for a state, so many seconds. Raises TimeoutError."""
        end = time.monotonic() + deadline
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"{len(self.living)} processes run")
            time.sleep(0.02)


@contextmanager
def process_group(*arguments: str, cwd: Path, **environment: str) -> Iterator[ProcessGroup]:
    """Run `python *arguments`; whatever is left of it at the end is killed."""
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=cwd,
        env=os.environ | environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        group = ProcessGroup(process)
        try:
            yield group
        finally:
            _kill(group.living)


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # it has just ended
            continue
