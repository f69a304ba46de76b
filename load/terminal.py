"""What all commands here share of the terminal: progress on stderr, signals that end in an orderly way."""

import signal
import sys
from types import FrameType
from typing import NoReturn


def say(line: str) -> None:
    """Print progress; results alone go to stdout."""
    print(line, file=sys.stderr, flush=True)


def interrupted_by_signals() -> None:
    """Let SIGTERM end the command as Ctrl-C does: by KeyboardInterrupt, so that everything is taken down."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(signum: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(signum)
