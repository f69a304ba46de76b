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
    """The records of a folder's open files, each once, as they appear."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def poll(self) -> list[dict[str, Any]]:
        """Return what was written since the last poll, whole lines only; a file finished meanwhile ends there."""
        records = []
        for file in sorted(self._folder.glob(OPEN_FILES)):
            at = self._read.get(file, 0)
            try:
                with file.open("rb") as opened:
                    opened.seek(at)
                    text = opened.read(READ_BYTES)
            except FileNotFoundError:
                continue
            whole, newline, _ = text.rpartition(b"\n")
            self._read[file] = at + len(whole) + len(newline)
            records += [json.loads(line) for line in whole.splitlines()]
        return records


def records(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield every record of a folder that nobody writes into any more; a line torn by a kill is passed over."""
    for file in sorted(folder.glob(FINISHED_FILES)) + sorted(folder.glob(OPEN_FILES)):
        data = file.read_bytes()
        for line in (gzip.decompress(data) if file.suffix == ".gz" else data).splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue
