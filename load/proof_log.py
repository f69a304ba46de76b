"""What generators and consumers write down for the report: a line an event, in the schema of design note 0004."""

import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from load.events import Kind

BUFFER = 1 << 20
"""Bytes held back before the disk gets them."""


class ProofLog:
    """`produced` and `consumed` lines in one file beside the bridge's metric log; a context manager."""

    def __init__(self, folder: Path) -> None:
        instance = f"{socket.gethostname()}-{os.getpid()}-{int(time.time() * 1000)}"
        self._tail = f',"instance":"proof-{instance}"}}\n'
        self._file = (folder / f"proof-{instance}.jsonl").open("w", buffering=BUFFER, encoding="utf-8")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._file.close()

    def produced(self, kind: Kind, event_id: str, due_ms: int) -> None:
        """Write that an event is in the log; `due_ms` is its due instant, ms since 1970."""
        self._file.write(
            f'{{"v":1,"kind":"produced","at_ms":{due_ms},"type":"{kind.name}","class":"{kind.priority}","id":"{event_id}"'
            + self._tail
        )

    def consumed(self, kind: Kind, event_id: str, event_ms: int, at_ms: int) -> None:
        """Write that a downstream service has done its work on an event at `at_ms`."""
        self._file.write(
            f'{{"v":1,"kind":"consumed","at_ms":{at_ms},"type":"{kind.name}","class":"{kind.priority}","id":"{event_id}",'
            f'"event_ms":{event_ms}' + self._tail
        )
