"""Which files a report reads, and the error that says why there can be none."""

import gzip
import re
import zlib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from proxy.errors import TidegateError

PATTERNS = ("*.jsonl", "*.jsonl.gz", "*.jsonl.open")
"""What a metric log's folder is searched for, at any depth."""

_OURS = re.compile(r"\d{8}T\d{6}Z-.+-\d{6,}\.jsonl(\.gz|\.open)?")
"""What Tidegate calls its files: the name is one process's own, so two with it are copies of one."""

COMPRESSION = 7
"""A metric log shrinks to about a seventh."""
UNKNOWN_BYTES = 1024**3
"""What only Spark can reach counts as large."""


class ReportError(TidegateError):
    """The report can't be made; the message says what to change. Exit code 2."""


class SparkError(ReportError):
    """Spark failed at something that is not known; its own log says more."""


def log_files(paths: Sequence[str]) -> list[str]:
    """Return the files to read for the paths, each a file, a folder or an address that Spark knows (`s3a://...`).

    An open file whose finished copy exists as well was left by a crash between the two; it is passed over. Addresses
    are left to `places.looked_up`, which needs Spark. Raises `ReportError` for a path that does not exist, and if no
    file is found at all.
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
    return finished(found, paths)


def is_log(place: str) -> bool:
    """Return whether a file is called as a metric log is."""
    return any(fnmatchcase(place.rpartition("/")[2], pattern) for pattern in PATTERNS)


def finished(found: set[str], paths: Iterable[str]) -> list[str]:
    """Return files in order, one of copies, none that is open where its finished copy is there.

    Raises `ReportError` if there are none.
    """
    left: dict[str, str] = {}
    for place in sorted(found, key=lambda place: (place.endswith(".open"), place)):
        left.setdefault(_identity(place), place)
    if not left:
        raise ReportError(f"{', '.join(paths)}: no metric log here ({', '.join(PATTERNS)})")
    return sorted(left.values())


def _identity(place: str) -> str:
    """Return what is the same of copies."""
    name = place.rpartition("/")[2]
    if _OURS.fullmatch(name):
        return name.removesuffix(".open").removesuffix(".gz")
    return f"{place.removesuffix('.open')}.gz" if name.endswith(".open") else place


def text_bytes(path: str) -> int:
    """Return about how many bytes of text a file holds; of an address, that it may be many."""
    if "://" in path:
        return UNKNOWN_BYTES
    return Path(path).stat().st_size * (COMPRESSION if path.endswith(".gz") else 1)


def is_readable(path: str) -> bool:
    """Return whether a local file can be read to its end: it still exists, and what is compressed is whole.

    One with a colon in its name never: Hadoop takes what stands before it for a scheme.
    """
    if ":" in path.rpartition("/")[2]:
        return False
    try:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb") as file:
            while file.read(1024 * 1024):
                pass
    except (OSError, EOFError, zlib.error):
        return False
    return True


def as_spark_path(path: str) -> str:
    """Return a path as a cluster too must take it: a file, and no wildcards in its name."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path if "://" in path else f"file://{path}")
