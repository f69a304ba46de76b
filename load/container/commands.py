"""Short questions to other programs, within a deadline."""

import subprocess

from load.stack.errors import StackError

QUESTION_SECONDS = 60.0
LAST_LINES = 15


def ask(*command: str) -> str:
    """Return what a program prints. Raises StackError with its last words when it fails or takes longer than 60 s."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=QUESTION_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StackError(f"{command[0]} can't be asked: {error}") from error
    if done.returncode:
        last = "\n".join(done.stderr.rstrip().splitlines()[-LAST_LINES:])
        raise StackError(f"`{' '.join(command)}` failed:\n{last}")
    return done.stdout.strip()


def succeeds(*command: str, seconds: float = QUESTION_SECONDS) -> bool:
    """Tell whether a program ends with 0 within so many seconds."""
    try:
        return subprocess.run(command, check=False, capture_output=True, timeout=seconds).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
