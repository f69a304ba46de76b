"""The processes of a stack: started, recognised and ended without ever touching anybody else's.

Two things tell a process of ours. Its identity: pid and start time, because a pid alone is given out again. And a mark
in its environment, the home folder of its stack: children inherit it (epmd, the port programs of Erlang), and it is
there from the very first instruction, so that even a script killed between starting a node and writing down its pid
leaves nothing unknown.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from load.stack.errors import StackError

MARK = "TIDEGATE_STACK_NODE"
"""Environment variable of every process of a stack: `HOME:ROLE`."""

POLL_SECONDS = 0.02
KILL_SECONDS = 10.0
SUSPEND_SECONDS = 10.0


@dataclass(frozen=True)
class Identity:
    """One process for as long as it lives: `started` is in clock ticks since boot."""

    pid: int
    started: int


def identity(pid: int) -> Identity | None:
    """Return who holds this pid now, a zombie included; None when nobody does."""
    stat = _stat(pid)
    return Identity(pid, int(stat[19])) if stat else None


def is_running(process: Identity) -> bool:
    """Tell whether this very process still runs; one that is merely not yet reaped does not."""
    stat = _stat(process.pid)
    if stat is None or int(stat[19]) != process.started:
        return False
    if stat[0] in "ZX":
        with contextlib.suppress(ChildProcessError):  # somebody else's child: theirs to reap
            os.waitpid(process.pid, os.WNOHANG)
        return False
    return True


def spawn(argv: Sequence[str], *, env: Mapping[str, str], output: Path) -> Identity:
    """Start a process in a session of its own, without input, both outputs appended to a file.

    Raises StackError when the program can't be executed.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        pid = os.posix_spawn(
            argv[0],
            list(argv),
            dict(env),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(output), flags, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=(),
        )
    except OSError as error:
        raise StackError(f"{argv[0]} can't be started: {error.strerror}") from error
    process = identity(pid)
    assert process is not None, "a child stays visible until it is reaped"
    return process


def marked(home: Path, role: str | None = None) -> list[Identity]:
    """Return every running process that carries this stack's mark (of one role, or of all)."""
    prefix = f"{MARK}={home}:{role or ''}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        process = identity(int(entry.name))
        if process is not None and _has_variable(process.pid, prefix, whole=role is not None) and is_running(process):
            found.append(process)
    return found


def roles(home: Path) -> dict[int, str]:
    """Return the role of every running process of this stack, by pid."""
    prefix = f"{MARK}={home}:".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (role := next(_variables(int(entry.name), prefix), None)) is not None:
            found[int(entry.name)] = role.decode()
    return found


def send(process: Identity, signum: int) -> None:
    """Signal this very process; nothing happens when it is gone, whoever holds its pid now."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if is_running(process):  # asked after the handle was taken: the handle can't change hands
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signum)
    finally:
        os.close(handle)


def suspend(process: Identity) -> None:
    """Let this very process stand still (SIGSTOP) and wait until each of its threads does.

    The signal alone is a wish: a thread on another processor may answer for some milliseconds more. Nothing happens
    when the process is gone. Raises StackError when a thread still runs after `SUSPEND_SECONDS`.
    """
    send(process, signal.SIGSTOP)
    deadline = time.monotonic() + SUSPEND_SECONDS
    while is_running(process) and any(state not in "tTZX" for state in _thread_states(process.pid)):
        if time.monotonic() > deadline:
            raise StackError(f"process {process.pid} does not stand still {SUSPEND_SECONDS:.0f} s after SIGSTOP")
        time.sleep(POLL_SECONDS)


def await_end(processes: Iterable[Identity], *, seconds: float) -> list[Identity]:
    """Wait until all have ended; return those that still run when the time is over."""
    left = list(processes)
    deadline = time.monotonic() + seconds
    while True:
        left = [process for process in left if is_running(process)]
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(POLL_SECONDS)


def kill_marked(home: Path, role: str | None = None, *, known: Iterable[Identity] = ()) -> None:
    """Kill everything of this stack, what its members may start meanwhile included.

    Raises StackError when something survives for 10 s.
    """
    deadline = time.monotonic() + KILL_SECONDS
    while targets := {*marked(home, role), *(process for process in known if is_running(process))}:
        if time.monotonic() >= deadline:
            pids = ", ".join(str(process.pid) for process in targets)
            raise StackError(f"processes {pids} of {home} outlive SIGKILL")
        for process in targets:
            send(process, signal.SIGKILL)
        await_end(targets, seconds=1)


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on; None when nobody holds this pid."""
    return _fields(Path(f"/proc/{pid}/stat"))


def _thread_states(pid: int) -> list[str]:
    """Return a letter of proc(5) for each thread of a process."""
    return [fields[0] for path in Path(f"/proc/{pid}/task").glob("*/stat") if (fields := _fields(path))]


def _fields(stat: Path) -> list[str] | None:
    """Return what a stat file says from the state on; the name before it may hold any character."""
    try:
        text = stat.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def _has_variable(pid: int, prefix: bytes, *, whole: bool) -> bool:
    return any(not rest if whole else True for rest in _variables(pid, prefix))


def _variables(pid: int, prefix: bytes) -> Iterator[bytes]:
    """Yield the rest of every variable of a process's environment that begins so."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return
    yield from (item.removeprefix(prefix) for item in variables if item.startswith(prefix))
