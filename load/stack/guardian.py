"""The guardian of a stack: `python -m load.stack.guardian HOME PID STARTED`, a process that outlives the script.

It waits for the end of the script that owns the stack, however that ends, `kill -9` included, and takes down what the
script has left. Until a stack is up, the script that starts it is its owner; one that is to stay has none afterwards.
"""

import os
import select
import sys
from pathlib import Path

from load.stack.errors import StackError
from load.stack.leftovers import clear
from load.stack.processes import Identity, is_running, spawn
from load.stack.state import FILE_NAME, GUARDIAN, PROJECT, State, locked


def start(home: Path, owner: Identity) -> Identity:
    """Start the guardian of a stack."""
    command = [sys.executable, "-m", "load.stack.guardian", str(home), str(owner.pid), str(owner.started)]
    return spawn(command, env={"PYTHONPATH": str(PROJECT), "PYTHONSAFEPATH": "1"}, output=Path(os.devnull))


def await_owner(owner: Identity) -> None:
    """Wait for the owner's end, however long that takes."""
    try:
        handle = os.pidfd_open(owner.pid)
    except ProcessLookupError:
        return
    if is_running(owner):
        select.select([handle], [], [])


def watch(home: Path, owner: Identity) -> None:
    """Wait for the owner's end, then clear what it has left, if it is still the owner."""
    await_owner(owner)
    if not home.exists():
        return
    with locked(home):
        try:
            state = State.load(home / FILE_NAME)
        except StackError:
            return  # taken down meanwhile
        if state.owner == owner:
            state.with_process(GUARDIAN, None).save()  # else it would end itself before all others
            clear(home)


if __name__ == "__main__":
    watch(Path(sys.argv[1]), Identity(int(sys.argv[2]), int(sys.argv[3])))
