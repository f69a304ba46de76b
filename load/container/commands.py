"""Programs that are run to their end, within a deadline, their output kept for whoever wants to know why."""

import os
import subprocess
from pathlib import Path

from load.stack.errors import StackError

CHECKOUT = Path(__file__).resolve().parents[2]
LOGS = CHECKOUT / ".build" / "container"
QUESTION_SECONDS = 60.0
LAST_LINES = 15


def ask(*command: str) -> str:
    """Return what a program prints. Raises StackError with its last words when it fails or takes longer than 60 s."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=QUESTION_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StackError(f"{command[0]} can't be asked: {error}") from error
    if done.returncode:
        raise StackError(f"`{' '.join(command)}` failed:\n{_last(done.stderr)}")
    return done.stdout.strip()


def succeeds(*command: str, seconds: float = QUESTION_SECONDS) -> bool:
    """Tell whether a program ends with 0 within so many seconds."""
    try:
        return subprocess.run(command, check=False, capture_output=True, timeout=seconds).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def do(name: str, *command: str, seconds: float) -> None:
    """Run a program with its output in `.build/container/NAME.log`. Raises StackError with its last words."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    with log.open("w") as output:
        try:
            done = subprocess.run(
                command, check=False, timeout=seconds, cwd=CHECKOUT, env=os.environ,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise StackError(f"{name}: not done after {seconds:.0f} s ({log})") from error
    if done.returncode:
        raise StackError(f"{name} failed ({log}):\n{_last(log.read_text(errors='replace'))}")


def _last(text: str) -> str:
    return "\n".join(text.rstrip().splitlines()[-LAST_LINES:])
