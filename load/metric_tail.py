"""Reads a metric log while it is being written, for the eyes of whoever watches a run."""

import json
from pathlib import Path
from typing import Any

OPEN_FILES = "*.jsonl.open"
READ_BYTES = 1 << 20
"""Read at one poll at most; the rest comes with the next."""


class MetricTail:
    """The records of a folder's open files, each once, as they appear."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def poll(self) -> list[dict[str, Any]]:
        """Return what was written since the last poll, whole lines only; a file that is finished meanwhile ends there."""
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
