"""The way in: standard streams and first signals seen to, before anything heavy is loaded; then the command line.

Loading takes up to a second. As the first process of a container a signal without a handler is ignored for good, so
`run` has its handlers before; the signals of the loaded process are `command_line`'s.
"""

import contextlib
import io
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType

EXIT_UNEXPECTED = 1
_SIGNALLED = 128
_STANDARD_STREAMS = (0, 1, 2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    is_run = arguments[:1] == ["run"]
    _open_standard_streams()
    if is_run:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _end_before_start)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup` has it
            signal.signal(signal.SIGHUP, _wait_for_start)
    elif sys.stdout is None:
        return _refuse_to_answer("it is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr is: a name that can't be shown ends no command
    try:
        return _answer(arguments)
    except OSError as error:
        if _answers_arrive():
            raise
        # Else Python complains when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # `tidegate ... | head`: whoever reads has enough
            return _SIGNALLED + signal.SIGPIPE
        return _refuse_to_answer(error.strerror or str(error))
    except KeyboardInterrupt:
        return _SIGNALLED + signal.SIGINT


def _answer(arguments: Sequence[str]) -> int:
    from proxy import command_line

    try:
        code = command_line.command(arguments)
    except SystemExit as ended:  # the parser's, after --help or a mistake
        code = ended.code if isinstance(ended.code, int) else 0
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _open_standard_streams() -> None:
    """Lead what is closed of them to nowhere: else a socket gets its number, and the event loop ends the process."""
    for descriptor in _STANDARD_STREAMS:
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    if sys.stderr is None:  # `print` would take stdout for it
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def _answers_arrive() -> bool:
    """Try it with an empty line: the stream does not tell what a write before has come to."""
    try:
        print(flush=True)
    except OSError:
        return False
    return True


def _refuse_to_answer(why: str) -> int:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"tidegate: can't write to standard output: {why}\n")
    return EXIT_UNEXPECTED


def _end_before_start(number: int, _frame: FrameType | None) -> None:
    """End at once and in order: nothing is connected, read or sent yet."""
    wall = time.time()
    stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(wall))}.{int(wall % 1 * 1e6):06d}Z"
    words = {"number": number, "effect": "ends before its start", "event": "signal", "level": "info"}
    line = (json.dumps(words | {"timestamp": stamp}) + "\n").encode()
    with contextlib.suppress(OSError):
        room = select.poll()
        room.register(2, select.POLLOUT)
        if room.poll(0):  # there is room for a short line: nobody who does not read keeps it from ending
            os.write(2, line)
    os._exit(0)


def _wait_for_start(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the settings are about to be read, and looked at again before long."""


if __name__ == "__main__":
    sys.exit(main())
