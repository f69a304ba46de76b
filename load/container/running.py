"""Containers that run: in the foreground of an engine's client, or in namespaces of our own."""

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

from load.stack.errors import StackError

START_SECONDS = 10.0
KILL_SECONDS = 10.0
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Mount:
    """A folder or file of the machine, seen at `target` inside."""

    source: Path
    target: str
    writable: bool = False


class Running:
    """One container that was started; as a context manager it is killed at the end if it still runs."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", output: BinaryIO, *, target: int, remove: Callable[[], object]
    ) -> None:
        self._process = process
        self._output = output
        self._target = target
        self._remove = remove

    def __enter__(self) -> Self:
        """Return itself: the block is as long as the container may live."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill it unless it has ended."""
        self._kill()
        self._output.close()

    @property
    def output(self) -> str:
        """What it has printed so far, both outputs in one text."""
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode(errors="replace")

    @property
    def is_running(self) -> bool:
        """Tell whether it has not ended."""
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the container's first process."""
        os.kill(self._target, number)

    def wait(self, seconds: float) -> int:
        """Return the exit code. Past the deadline, kills the container and raises StackError."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._kill()
            raise StackError(f"the container did not end within {seconds:.0f} s; it said:\n{self.output}") from None

    def _kill(self) -> None:
        if self.is_running:
            self._remove()
            self._process.kill()
            self._process.wait(KILL_SECONDS)


def attached(*command: str, remove: Callable[[], object]) -> Running:
    """Start an engine's client, which stays in the foreground as long as the container runs; `remove` ends that one."""
    process, output = _started(command, os.environ)
    return Running(process, output, target=process.pid, remove=remove)


def isolated(
    root: Path, command: Sequence[str], *, user: str, mounts: Sequence[Mount], environment: Mapping[str, str]
) -> Running:
    """Start a command as process 1 of new process and mount namespaces, as `user`, on a root that it can't write to.

    Needs root; where namespaces are refused all the same, the output says so.
    """
    script = "\n".join(_mounting(root, mounts))
    script += f'\nexec setpriv --no-new-privs chroot --userspec="$1" --groups= {shlex.quote(str(root))} "${{@:2}}"'
    namespaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private")
    process, output = _started([*namespaces, "bash", "-euc", script, "container", user, *command], environment)
    first = _first_process(process)
    return Running(process, output, target=first, remove=lambda: _kill(first))


def _mounting(root: Path, mounts: Sequence[Mount]) -> Iterator[str]:
    """Give the shell commands that make the root: the image read-only, /proc, the devices, and what is mounted."""
    network = [Mount(Path(path), path) for path in ("/etc/hosts", "/etc/resolv.conf") if Path(path).exists()]
    yield f"mount --bind {shlex.quote(str(root))} {shlex.quote(str(root))}"
    for mount in (Mount(Path("/dev"), "/dev"), *network, *mounts):
        inside = root / mount.target.lstrip("/")
        if mount.source.is_dir():
            inside.mkdir(parents=True, exist_ok=True)
        else:
            inside.parent.mkdir(parents=True, exist_ok=True)
            inside.touch()
        source, target = shlex.quote(str(mount.source.resolve())), shlex.quote(str(inside))
        yield f"mount --bind {source} {target}"
        if not mount.writable:
            yield f"mount -o remount,bind,ro {target}"
    yield f"mount -t proc proc {shlex.quote(str(root / 'proc'))}"
    yield f"mount -o remount,bind,ro {shlex.quote(str(root))}"


def _started(command: Sequence[str], environment: Mapping[str, str]) -> tuple["subprocess.Popen[bytes]", BinaryIO]:
    """Start a program that prints into a file without a name: a pipe that nobody reads would stop it in the end."""
    output = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - lives as long as the container
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    return process, output


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _first_process(process: "subprocess.Popen[bytes]") -> int:
    """Return the process that `unshare` forked, the container's first, which becomes the command in the end.

    A command may be done, or the namespaces refused, before it is seen: exit code and output then tell all.
    """
    deadline = time.monotonic() + START_SECONDS
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            if found := children.read_text().split():
                return int(found[0])
        time.sleep(POLL_SECONDS)
    return process.pid
