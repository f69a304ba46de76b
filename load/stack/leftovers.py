"""Taking a stack down, in whatever condition its last script left it."""

import contextlib
from pathlib import Path

from load.stack import containers
from load.stack.errors import StackError
from load.stack.processes import is_running, kill_marked
from load.stack.state import FILE_NAME, KINDS, State, homes, locked, remove


def clear(home: Path) -> None:
    """End whatever runs and delete whatever lies there for the stack of this folder.

    Raises StackError when something can't be ended or deleted.
    """
    try:
        state = State.load(home / FILE_NAME)
    except StackError:
        state = None  # never written, or lost: the mark on the processes still tells them
    kill_marked(home, known=state.processes.values() if state else ())
    if state and state.software is None:
        containers.remove(state)
    remove(home, state)


def clear_abandoned() -> None:
    """Take down the stacks of this project whose script ended without doing so, as one does that is killed."""
    for home in homes():
        # Busy, half removed or not to be removed: none of this is the business of the stack that comes up now.
        with contextlib.suppress(StackError, BlockingIOError), locked(home, wait=False):
            if State.load(home / FILE_NAME).is_abandoned():
                clear(home)


def is_up(home: Path) -> bool:
    """Tell whether the stack of this folder was started to the end and all its nodes still run."""
    try:
        state = State.load(home / FILE_NAME)
    except StackError:
        return False
    if state.software is None:
        return containers.are_running(state)
    return state.versions.keys() >= {*KINDS} and all(
        role in state.processes and is_running(state.processes[role]) for role in state.roles
    )
