"""Reads metric logs for whoever watches a run or sums it up; the reports read masses of them with Spark."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OPEN_FILES, FINISHED_FILES = "*.jsonl.open", "*.jsonl.gz"
READ_BYTES = 1 << 20
"""Read at one poll at most; the rest comes with the next."""


class MetricTail:
    """The records of a folder's files, each once, as they appear; but not of files finished before they were seen."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        """Bytes read of each file that was open at the last poll."""

    def poll(self) -> list[dict[str, Any]]:
        """Return what was written since the last poll, whole lines only."""
        records: list[dict[str, Any]] = []
        for file in sorted({*self._folder.glob(OPEN_FILES), *self._read}):
            at = self._read.pop(file, 0)
            try:
                with file.open("rb") as opened:
                    opened.seek(at)
                    text = opened.read(READ_BYTES)
            except FileNotFoundError:
                records += _lines(_rest(file, at))[0]
            else:
                found, size = _lines(text)
                records += found
                self._read[file] = at + size
        return records


def _rest(file: Path, at: int) -> bytes:
    """Return what stands behind `at` in a file that was finished meanwhile; nothing if it has been deleted, too."""
    try:
        return gzip.decompress(file.with_suffix(".gz").read_bytes())[at:]
    except FileNotFoundError:
        return b""


def _lines(text: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the records of all whole lines, and how many bytes these are."""
    whole, newline, _ = text.rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()], len(whole) + len(newline)


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield every record of a folder that nobody writes into any more; a line torn by a kill is passed over."""
    for file in sorted(folder.glob(FINISHED_FILES)) + sorted(folder.glob(OPEN_FILES)):
        data = file.read_bytes()
        for line in (gzip.decompress(data) if file.suffix == ".gz" else data).splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue
