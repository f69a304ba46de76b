"""Which files a report reads, and the error that says why there can be none."""

import gzip
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from proxy.errors import TidegateError

PATTERNS = ("*.jsonl", "*.jsonl.gz", "*.jsonl.open")
"""What a metric log's folder is searched for, at any depth."""

COMPRESSION = 7
"""A metric log shrinks to about a seventh."""


class ReportError(TidegateError):
    """The report can't be made; the message says what to change. Exit code 2."""


def log_files(paths: Sequence[str]) -> list[str]:
    """Return the files to read for the paths, each a file, a folder or an address that Spark knows (`hdfs://...`).

    An open file whose finished copy exists as well was left by a crash between the two; it is passed over. Raises
    `ReportError` for a path that does not exist, and if no file is found at all.
    """
    found: set[str] = set()
    for path in paths:
        if "://" in path:
            found.add(path)
        elif Path(path).is_dir():
            matches = (match for pattern in PATTERNS for match in Path(path).rglob(pattern))
            found.update(str(match.absolute()) for match in matches if match.is_file())
        elif Path(path).is_file():
            found.add(str(Path(path).absolute()))
        else:
            raise ReportError(f"{path}: no such file or folder")
    found -= {name for name in found if name.removesuffix(".open") + ".gz" in found}
    if not found:
        raise ReportError(f"{', '.join(paths)}: no metric log here ({', '.join(PATTERNS)})")
    return sorted(found)


def text_bytes(path: str) -> int:
    """Return about how many bytes of text a file holds; 0 for what only Spark can reach."""
    if "://" in path:
        return 0
    return Path(path).stat().st_size * (COMPRESSION if path.endswith(".gz") else 1)


def is_readable(path: str) -> bool:
    """Return whether a local file can be read to its end: it still exists, and what is compressed is whole."""
    if "://" in path:
        return True
    try:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            while file.read(1024 * 1024):
                pass
    except (OSError, EOFError, zlib.error):
        return False
    return True


def as_spark_path(path: str) -> str:
    """Return a local path as a cluster too must take it: a file, and no wildcards in its name."""
    return path if "://" in path else "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
