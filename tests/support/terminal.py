"""A command in a terminal of its own, and what stands on its screen: as much of a VT100 as curses makes use of."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

_ESCAPE = re.compile(r"\x1b\[(?P<numbers>[0-9;?]*)(?P<what>[A-Za-z])|\x1b[()=>][AB0]?|\x1b[78M]")


class Screen:
    """Lines of text, written to as a terminal is."""

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        self._rows, self._columns = rows, columns
        self._cells = [[" "] * columns for _ in range(rows)]
        self._row = self._column = 0
        self._rest = ""

    @property
    def text(self) -> str:
        """What stands on it."""
        return "\n".join("".join(row).rstrip() for row in self._cells)

    def write(self, data: bytes) -> None:
        """Take what a command writes; what is cut off in the middle waits for its rest."""
        text, at = self._rest + data.decode(errors="replace"), 0
        while at < len(text):
            if text[at] == "\x1b":
                found = _ESCAPE.match(text, at)
                if found is None:
                    break
                if found["what"]:
                    self._do(found["what"], [int(one or 0) for one in found["numbers"].strip("?").split(";")])
                at = found.end()
            else:
                self._put(text[at])
                at += 1
        self._rest = text[at:]

    def _put(self, sign: str) -> None:
        if sign == "\r":
            self._column = 0
        elif sign == "\n":
            self._row = min(self._row + 1, self._rows - 1)
        elif sign == "\b":
            self._column = max(0, self._column - 1)
        elif sign == "\t":
            self._column = min(self._column // 8 * 8 + 8, self._columns - 1)
        elif sign >= " ":
            self._cells[self._row][min(self._column, self._columns - 1)] = sign
            self._column += 1

    def _do(self, what: str, numbers: list[int]) -> None:
        count = max(1, numbers[0])
        moves = {"A": (-count, 0), "B": (count, 0), "C": (0, count), "D": (0, -count)}
        if what in moves:
            down, right = moves[what]
            self._row = min(max(0, self._row + down), self._rows - 1)
            self._column = min(max(0, self._column + right), self._columns - 1)
        elif what == "H":
            self._row, self._column = count - 1, (numbers[1] if len(numbers) > 1 else 1) - 1
        elif what in "JK":
            whole, cells = numbers[0] == 2, self._cells[self._row]
            first = 0 if whole or numbers[0] == 1 else self._column
            end = self._column + 1 if numbers[0] == 1 else self._columns
            cells[first:end] = [" "] * (end - first)
            if what == "J":
                for row in range(self._rows) if whole else range(self._row + 1, self._rows):
                    self._cells[row] = [" "] * self._columns


class Terminal:
    """A running command, its screen and its keys."""

    def __init__(self, process: asyncio.subprocess.Process, descriptor: int) -> None:
        self._process = process
        self._descriptor = descriptor
        self.screen = Screen()

    async def shows(self, is_shown: Callable[[str], bool]) -> str:
        """Wait until that stands on the screen; return the screen."""
        try:
            async with asyncio.timeout(30):
                while not is_shown(self.screen.text):
                    self._read()
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise AssertionError(self.screen.text) from None
        return self.screen.text

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._descriptor, keys.encode())

    async def ends(self) -> int:
        """Return the exit code."""
        async with asyncio.timeout(30):
            while self._process.returncode is None:
                self._read()
                await asyncio.sleep(0.005)
        return self._process.returncode

    def _read(self) -> None:
        with suppress(OSError):  # nothing there, or it has ended
            self.screen.write(os.read(self._descriptor, 65_536))


@asynccontextmanager
async def terminal(*arguments: str) -> AsyncIterator[Terminal]:
    """Run `tidegate` with these arguments in a terminal of 24 lines and 80 columns; it is ended with the block."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.set_blocking(ours, False)
    environment = {name: value for name, value in os.environ.items() if name not in {"LINES", "COLUMNS"}}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "proxy", *arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "vt100"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        os.close(ours)
