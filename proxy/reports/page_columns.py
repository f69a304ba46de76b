"""What a table of report.html is: columns, their headings, and how their values are written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "count", "number", "bytes", "ms", "s"]
"""How assets/figures.js writes a value."""
Column = tuple[str, str, Kind]
"""Field, heading (`group|heading` under a common one), and how its value is written."""


@dataclass(frozen=True)
class PageTable:
    """One of the report's tables as the page shows it."""

    title: str
    name: str
    columns: Sequence[Column]
    note: str = ""
    is_open: bool = False
    """Whether it begins open; the others show their title and how many rows they have."""


def counts(*names: str) -> list[Column]:
    """Return columns of whole numbers, each under its own name."""
    return [(name, name.replace("_", " "), "count") for name in names]


def texts(*names: str) -> list[Column]:
    """Return columns of text, each under its own name."""
    return [(name, name, "text") for name in names]


def times(title: str, prefix: str = "") -> list[Column]:
    """Return the columns of a distribution under a common heading."""
    figures = (("p50_ms", "P50"), ("p99_ms", "P99"), ("p999_ms", "P99.9"), ("max_ms", "max"))
    return [(f"{prefix}{field}", f"{title}|{name}", "ms") for field, name in figures]
