"""What all commands here share of the terminal: progress on stderr, signals that end in an orderly way."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Coroutine
from types import FrameType
from typing import Any, NoReturn, TypeVar

import uvloop

_Result = TypeVar("_Result")


def say(line: str) -> None:
    """Print progress; results alone go to stdout."""
    print(line, file=sys.stderr, flush=True)


def command_line(name: str, description: str, examples: str) -> argparse.ArgumentParser:
    """Return a parser of `python -m NAME`; the examples stay as they are written."""
    return argparse.ArgumentParser(
        prog=f"python -m {name}",
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def interrupted_by_signals() -> None:
    """Let SIGTERM end the command as Ctrl-C does: by KeyboardInterrupt, so that everything is taken down."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(signum: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(signum)


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run it in a loop of its own. A signal cancels it and is raised as KeyboardInterrupt when it has cleaned up.

    Raised wherever the loop stands, the exception would hit any task of it, and each would tell of it at length.
    """
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_until_signal(work))
    finally:
        interrupted_by_signals()  # the loop has set it back


async def _until_signal(work: Coroutine[Any, Any, _Result]) -> _Result:
    loop, own, told = asyncio.get_running_loop(), asyncio.current_task(), list[int]()
    assert own is not None

    def end(signum: int) -> None:
        told.append(signum)
        own.cancel()

    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, end, signum)
    try:
        return await work
    except asyncio.CancelledError:
        if told:
            raise KeyboardInterrupt(told[0]) from None
        raise
    finally:
        for signum in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(signum)
