"""The guardian of a stack: what a killed script leaves is taken down, what is to stay stays."""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from load.stack import guardian
from load.stack.packages import Software
from load.stack.processes import MARK, Identity, identity, is_running, kill_marked, marked, spawn
from load.stack.state import GUARDIAN, State

SECONDS = 20.0


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def left(home: Path, owner: Identity | None) -> State:
    """Write the state of a stack with one process, as a script leaves it."""
    software = Software(Path("/java"), Path("/jars"), Path("/sbin"))
    state = State(home.name, home, home / "data", {}, software, owner=owner)
    state.save()
    process = spawn(["/bin/sleep", "60"], env={MARK: f"{home}:kafka"}, output=home / "output")
    return state.with_process("kafka", process)


def of(process: subprocess.Popen[bytes]) -> Identity:
    found = identity(process.pid)
    assert found is not None
    return found


def await_end(process: Identity) -> None:
    waited, deadline = threading.Event(), time.monotonic() + SECONDS
    while is_running(process) and time.monotonic() < deadline:
        waited.wait(0.02)
    assert not is_running(process)


def test_everything_is_taken_down_when_the_owner_is_killed(tmp_path: Path, owner: subprocess.Popen[bytes]) -> None:
    home = tmp_path / "one"
    state = left(home, of(owner))
    watching = guardian.start(home, of(owner))
    state.with_process(GUARDIAN, watching).save()

    owner.kill()
    owner.wait()
    await_end(watching)

    assert marked(home) == []
    assert not home.exists()


def test_everything_stays_when_the_stack_has_no_owner_any_more(tmp_path: Path, owner: subprocess.Popen[bytes]) -> None:
    home = tmp_path / "one"
    state = left(home, of(owner))
    was_owner = of(owner)
    replace(state, owner=None).save()
    owner.kill()
    owner.wait()

    guardian.watch(home, was_owner)

    assert len(marked(home)) == 1
    kill_marked(home)


def test_nothing_is_missed_when_the_owner_had_ended_before(tmp_path: Path) -> None:
    home = tmp_path / "one"
    this = identity(os.getpid())
    assert this is not None
    gone = replace(this, started=this.started - 1)
    left(home, gone).save()

    guardian.watch(home, gone)

    assert not home.exists()
