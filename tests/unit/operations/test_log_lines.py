"""Whoever reads the log, or does not, neither ends nor holds up the data."""

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from proxy.operations import log_lines
from proxy.operations.log_lines import BYTES, LINES, LogLines, log_to_stderr

DEADLINE = 10.0


def lost_line(lines: int) -> str:
    return f"{lines} lost"


def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.002)


class Piped:
    """A log that leads into a pipe."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        self.lines = LogLines(self._writer, lost_line)

    def read(self) -> bytes:
        """Return what there is, when all has been written."""
        self.lines.close(DEADLINE)
        return os.read(self.reader, 1000)

    def leave(self) -> None:
        """Have nobody read any more."""
        if self.reader >= 0:
            os.close(self.reader)
            self.reader = -1

    def close(self) -> None:
        """Let the thread finish, for the pipe's number will be another's."""
        self.leave()
        self.lines.close(DEADLINE)
        os.close(self._writer)


@pytest.fixture
def log() -> Iterator[Piped]:
    piped = Piped()
    yield piped
    piped.close()


def test_lines_arrive_whole_and_in_order_when_they_are_read(log: Piped) -> None:
    for number in range(3):
        log.lines.info(f"line {number}")
    assert log.read() == b"line 0\nline 1\nline 2\n"
    assert log.lines.lost == 0


def test_nobody_waits_and_what_finds_no_room_is_told_later_when_a_pipe_is_not_read(log: Piped) -> None:
    for _ in range(LINES):
        log.lines.info("x" * 500)
    until(lambda: log.lines.lost or len(log.lines._waiting) < LINES)
    for _ in range(LINES):
        log.lines.info("x" * 500)
    log.lines.close(0.0)
    lost = log.lines.lost
    assert lost > 0
    told = arrived = 0
    with os.fdopen(log.reader, "rb", closefd=False) as text:
        while told < lost or arrived < 2 * LINES - lost:
            words = next(text).decode().split()
            if words[-1] == "lost":
                told += int(words[0])
            else:
                arrived += 1
    assert (told, arrived) == (lost, 2 * LINES - lost)


def test_what_waits_is_bounded_in_bytes_when_lines_are_long(log: Piped) -> None:
    for _ in range(40):
        log.lines.info("x" * (BYTES // 10))
    assert sum(len(line) for line in log.lines._waiting) <= BYTES
    assert log.lines.lost >= 40 - 12


def test_lines_are_lost_and_counted_when_the_reader_has_gone(log: Piped) -> None:
    log.leave()
    log.lines.info("nobody")
    log.lines.info("reads")
    log.lines.close(DEADLINE)
    (family,) = log.lines.families()
    assert (log.lines.lost, family.samples[0].value) == (2, 2)


def test_loss_is_said_behind_the_next_line_when_the_disk_has_room_again(
    log: Piped, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    room = iter([3, None])  # the disk takes three bytes, then nothing, then all

    def write_to_full_disk(descriptor: int, data: bytes) -> int:
        size = next(room, len(data))
        if size is None:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:size])

    monkeypatch.setattr(log_lines.os, "write", write_to_full_disk)
    log.lines.info("torn line")
    log.lines.info("whole line")
    assert log.read() == b"tor\nwhole line\n1 lost\n"


def test_lines_wait_for_a_thread_when_the_system_has_none(log: Piped, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as limited:

        def refuse(_: object) -> None:
            raise RuntimeError("can't start new thread")

        limited.setattr(log_lines.threading.Thread, "start", refuse)
        log.lines.info("first")
    log.lines.info("second")
    assert log.read() == b"first\nsecond\n"


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[dict[str, str]]]]:
    """What is said to a file in place of stderr, by a process that has set its log up."""
    handlers = list(logging.getLogger().handlers)
    log_to_stderr()  # as a command does that ran in this process before
    with (tmp_path / "log").open("w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        lines = log_to_stderr()

        def read() -> list[dict[str, str]]:
            lines.close(DEADLINE)
            return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]

        yield read
    logging.getLogger().handlers = handlers
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def test_libraries_say_one_line_when_they_log_a_traceback(said: Callable[[], list[dict[str, str]]]) -> None:
    try:
        raise ValueError("of a library")
    except ValueError:
        logging.getLogger("library").exception("went wrong with %s", "it")
    logging.getLogger("library").warning("odd")
    logging.getLogger("library").info("usual")
    # What another test left open speaks up whenever it is collected; one line each though the log was set up twice.
    failed, odd = (line for line in said() if line["of"] == "library")
    assert {name: failed[name] for name in ("event", "level", "of", "why")} == {
        "event": "library",
        "level": "error",
        "of": "library",
        "why": "went wrong with it",
    }
    assert failed["trace"].endswith("ValueError: of a library\n")
    assert (odd["level"], odd["why"]) == ("warning", "odd")


async def test_event_loop_turns_on_when_nobody_reads_the_log(log: Piped) -> None:
    async with asyncio.timeout(DEADLINE):
        for _ in range(3 * LINES):
            log.lines.info("x" * 500)
            await asyncio.sleep(0)
    assert log.lines.lost > 0
