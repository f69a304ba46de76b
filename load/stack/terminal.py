"""What is said to the person at the terminal."""

import sys
from pathlib import Path


def say(text: str) -> None:
    """Print a line beside the results: standard output belongs to those, and to the command of `run`."""
    print(text, file=sys.stderr, flush=True)


def tail(path: Path, lines: int = 15) -> str:
    """Return the last lines of a log, or a remark that it says nothing."""
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) or f"({path.name} is empty)"
    except FileNotFoundError:
        return f"(no {path.name})"
