"""Tidegate's own log, on stderr: whoever reads it, or does not, neither ends nor holds up the data.

A thread of its own writes, for a pipe that nobody reads and a hung disk would else stop the event loop within a write.
What finds no room, and what can't be written, is lost, counted (`tidegate_log_lines_lost_total`) and said with the next
line that gets through.
"""

import logging
import os
import select
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import structlog
from prometheus_client.core import CounterMetricFamily

LINES = 1_000
"""Most lines that wait for the thread."""
BYTES = 1024**2
"""Most that they hold together."""
LAST_WORDS_SECONDS = 1.0
"""How long the end of the process waits for the lines that wait."""
_TRACE_CHARACTERS = 8_000
"""The most of a traceback that is kept: its end."""


class LogLines:
    """The lines on their way to a descriptor; what structlog calls a logger."""

    def __init__(self, descriptor: int, lost_line: Callable[[int], str]) -> None:
        """`lost_line` words how many lines were lost since that was said."""
        self._descriptor = descriptor
        self._lost_line = lost_line
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_writing = False
        self._is_torn = False
        """Whether what was written last ended within a line."""
        self._told = 0
        self.lost = 0
        """Lines that never arrived, since the start."""

    def msg(self, line: str) -> None:
        """Have a line written; return at once."""
        data = (line + "\n").encode(errors="backslashreplace")
        with self._changed:
            if len(self._waiting) >= LINES or self._bytes + len(data) > BYTES:
                self.lost += 1
            else:
                self._waiting.append(data)
                self._bytes += len(data)
            if self._thread is None:
                self._thread = self._begin()
            self._changed.notify_all()

    debug = info = warning = error = critical = exception = log = msg

    def close(self, seconds: float = LAST_WORDS_SECONDS) -> None:
        """Wait until all that waits is written, `seconds` at most."""
        with self._changed:
            if self._thread is None:
                self._thread = self._begin()
            self._changed.wait_for(lambda: not self._waiting and not self._is_writing, seconds)

    def families(self) -> Iterable[CounterMetricFamily]:
        """Yield what /metrics tells of it."""
        yield CounterMetricFamily("tidegate_log_lines_lost", "Lines of the log that could not be written.", self.lost)

    def _begin(self) -> threading.Thread | None:
        """Return the thread; None while the system has none to give, tried again with the next line."""
        thread = threading.Thread(target=self._live, name="log", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError):
            return None
        return thread

    def _live(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting)
                self._is_writing = True
                data = self._waiting.popleft()
                self._bytes -= len(data)
                lost = self.lost
            if not self._write(data):
                with self._changed:
                    self.lost += 1
            elif lost > self._told and self._write((self._lost_line(lost - self._told) + "\n").encode()):
                self._told = lost

    def _write(self, line: bytes) -> bool:
        left = b"\n" + line if self._is_torn else line
        whole = len(left)
        try:
            while left:
                try:
                    left = left[os.write(self._descriptor, left) :]
                except BlockingIOError:  # whoever shares the pipe has made it so
                    select.select([], [self._descriptor], [])
        except OSError:
            self._is_torn = self._is_torn or len(left) < whole
            return False
        self._is_torn = False
        return True


def log_to_stderr() -> LogLines:
    """Log for people on a terminal, JSON lines for machines elsewhere; what libraries log as well.

    Called again it replaces what it set up before: no line is said twice.
    """
    is_terminal = sys.stderr.isatty()
    renderer: Any = structlog.dev.ConsoleRenderer() if is_terminal else structlog.processors.JSONRenderer()
    processors = [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True), renderer]

    def lost_line(lines: int) -> str:
        line: Any = {"event": "log_lines_lost", "lines": lines, "effect": "data flows on"}
        for process in processors:
            line = process(None, "warning", line)
        return str(line)

    lines = LogLines(sys.stderr.fileno(), lost_line)
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda *_: lines,
    )
    root = logging.getLogger()
    root.handlers = [
        *(earlier for earlier in root.handlers if not isinstance(earlier, _FromLibraries)),
        _FromLibraries(),
    ]
    logging.captureWarnings(capture=True)
    return lines


class _FromLibraries(logging.Handler):
    """One line for each record: logging's own handler would write over many, and in the event loop's thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        trace = {"trace": traced(record.exc_info[1])} if record.exc_info and record.exc_info[1] else {}
        say = structlog.get_logger("tidegate")
        tell = say.error if record.levelno >= logging.ERROR else say.warning
        tell("library", of=record.name, why=record.getMessage(), **trace)


def traced(error: BaseException) -> str:
    """Return the end of an error's traceback, as one text."""
    return "".join(traceback.format_exception(error))[-_TRACE_CHARACTERS:]
