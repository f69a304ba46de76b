"""Puts each record into its envelope and hands it on to the metric log: the one place where a record becomes data."""

from collections.abc import Callable, Mapping
from typing import Any

from proxy.records import Record, enveloped


class Writer:
    """Writes the records of one process; `wall` gives seconds since 1970, `write` neither blocks nor raises."""

    def __init__(self, write: Callable[[Mapping[str, Any]], None], wall: Callable[[], float], instance: str) -> None:
        self.wall = wall
        self._write = write
        self._instance = instance

    def write(self, record: Record) -> None:
        """Write a record of now; what it holds must not be altered afterwards."""
        self._write(enveloped(record, at_ms=int(self.wall() * 1000), instance=self._instance))
