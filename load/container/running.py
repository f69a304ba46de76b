"""Containers that run: in the foreground of an engine's client, or in namespaces of our own."""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from load.stack.errors import StackError

START_SECONDS = 10.0
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Mount:
    """A folder or file of the machine, seen at `target` inside."""

    source: Path
    target: str
    writable: bool = False


class Running:
    """One container that was started; both its outputs are in one text."""

    def __init__(self, process: "subprocess.Popen[str]", *, target: int) -> None:
        self._process = process
        self._target = target

    @property
    def pid(self) -> int:
        """The process that signals go to, as the machine numbers it."""
        return self._target

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the container's first process."""
        os.kill(self._target, number)

    def wait(self, seconds: float) -> tuple[int, str]:
        """Return the exit code and all that was printed. Past the deadline, kills it and raises StackError."""
        try:
            output, _ = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            output, _ = self._process.communicate()
            raise StackError(f"the container did not end within {seconds:.0f} s; it said:\n{output}") from None
        return self._process.returncode, output

    def kill(self) -> None:
        """End it at once, if it still runs."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._target, signal.SIGKILL)
            self._process.kill()


def attached(*command: str) -> Running:
    """Start an engine's client, which stays in the foreground as long as the container runs."""
    process = _popen(command, os.environ)
    return Running(process, target=process.pid)


def isolated(
    root: Path, command: Sequence[str], *, user: str, mounts: Sequence[Mount], environment: Mapping[str, str]
) -> Running:
    """Start a command as process 1 of new process and mount namespaces, as `user`, on a root that it can't write to.

    Needs root. Raises StackError when the namespaces are refused.
    """
    script = "\n".join(_mounting(root, mounts))
    script += f'\nexec setpriv --no-new-privs chroot --userspec="$1" --groups= {shlex.quote(str(root))} "${{@:2}}"'
    namespaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private")
    process = _popen([*namespaces, "bash", "-euc", script, "container", user, *command], environment)
    return Running(process, target=_only_child(process))


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


def _popen(command: Sequence[str], environment: Mapping[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command, env=environment, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def _only_child(process: "subprocess.Popen[str]") -> int:
    """Return the process that `unshare` forked: the container's first, which becomes the command in the end."""
    deadline = time.monotonic() + START_SECONDS
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if found := children.read_text().split():
                return int(found[0])
        if process.poll() is not None:
            break
        time.sleep(POLL_SECONDS)
    process.kill()
    raise StackError(f"no namespaces for the container:\n{process.communicate()[0]}")
