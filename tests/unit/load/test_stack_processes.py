"""Whose process is whose: what must be ended is, and nothing else ever is."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from load.stack import processes
from load.stack.errors import StackError
from load.stack.processes import (
    MARK,
    Identity,
    await_end,
    identity,
    is_running,
    kill_marked,
    marked,
    send,
    spawn,
    suspend,
)

SLEEP = ["/usr/bin/env", "sleep", "60"]

Start = Callable[[dict[str, str]], Identity]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that sleep, with more in their environment; end them after the test."""
    with ExitStack() as started:

        def start_one(more: dict[str, str]) -> Identity:
            process = started.enter_context(subprocess.Popen(["sleep", "60"], env={**os.environ, **more}))
            started.callback(process.kill)
            found = identity(process.pid)
            assert found is not None
            return found

        yield start_one


def test_a_stale_pid_is_not_signalled_when_its_start_time_differs(start: Start) -> None:
    foreign = start({})
    stale = replace(foreign, started=foreign.started - 1)

    send(stale, signal.SIGKILL)
    kill_marked(Path("/nowhere"), known=[stale])

    assert not is_running(stale)
    assert is_running(foreign)


def test_a_process_is_ended_when_pid_and_start_time_agree(start: Start) -> None:
    process = start({})

    send(process, signal.SIGKILL)

    assert await_end([process], seconds=5) == []


def test_an_error_says_so_when_a_process_does_not_stand_still(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start({})
    monkeypatch.setattr(processes, "send", lambda _process, _signum: None)
    monkeypatch.setattr(processes, "SUSPEND_SECONDS", 0.1)

    with pytest.raises(StackError, match="does not stand still"):
        suspend(process)


def test_only_marked_processes_are_ended_when_nothing_is_known_of_them(start: Start, tmp_path: Path) -> None:
    ours = start({MARK: f"{tmp_path}:kafka"})
    neighbour = start({MARK: f"{tmp_path}-2:kafka"})
    foreign = start({"OTHER": f"{tmp_path}:kafka"})

    kill_marked(tmp_path)

    assert [is_running(process) for process in (ours, neighbour, foreign)] == [False, True, True]


def test_the_other_role_survives_when_one_is_killed(start: Start, tmp_path: Path) -> None:
    kafka, rabbitmq = (start({MARK: f"{tmp_path}:{role}"}) for role in ("kafka", "rabbitmq"))

    kill_marked(tmp_path, "kafka")

    assert [is_running(kafka), is_running(rabbitmq)] == [False, True]
    assert marked(tmp_path) == [rabbitmq]


def test_a_zombie_counts_as_ended_when_its_parent_has_not_reaped_it() -> None:
    process = subprocess.Popen(["true"])
    found = identity(process.pid)
    assert found is not None

    assert await_end([found], seconds=5) == []
    process.wait()


def test_a_process_is_recognised_when_its_name_holds_brackets_and_spaces(tmp_path: Path) -> None:
    odd = tmp_path / "a) S 1 (b"
    odd.symlink_to(sys.executable)
    process = subprocess.Popen([odd, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        found = identity(process.pid)
        assert found is not None
        assert is_running(found)
    finally:
        process.communicate(b"\n")
    assert not is_running(found)


def test_a_spawned_process_outlives_its_session_and_writes_its_log_when_started(tmp_path: Path) -> None:
    log = tmp_path / "output"
    process = spawn(["/bin/sh", "-c", "ps -o sid= -p $$; echo error >&2"], env={"PATH": os.environ["PATH"]}, output=log)

    assert await_end([process], seconds=5) == []
    assert log.read_text().split() == [str(process.pid), "error"]


def test_a_spawned_process_takes_signals_when_its_parent_blocks_them(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        process = spawn(SLEEP, env={"PATH": os.environ["PATH"]}, output=tmp_path / "output")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    send(process, signal.SIGTERM)

    assert await_end([process], seconds=5) == []


def test_a_missing_program_is_named_when_it_is_spawned(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="/no/such/program can't be started: No such file"):
        spawn(["/no/such/program"], env={}, output=tmp_path / "output")


def test_surviving_processes_are_named_when_killing_takes_too_long(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start({MARK: f"{tmp_path}:kafka"})
    monkeypatch.setattr(processes, "send", lambda *_: None)
    monkeypatch.setattr(processes, "KILL_SECONDS", 0.0)

    with pytest.raises(StackError, match=f"processes {process.pid} .* outlive SIGKILL"):
        kill_marked(tmp_path)
