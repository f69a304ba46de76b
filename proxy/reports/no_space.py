"""A full disk: whoever runs into it has words of its own; a report says it once, with the place and the remedy."""

import shutil
import tempfile
from collections.abc import Sequence
from errno import EDQUOT, ENOSPC
from os import strerror
from pathlib import Path

from proxy.reports.places import is_address

_WORDS = tuple(map(strerror, (ENOSPC, EDQUOT)))
"""As Java says it, too. A used up quota is a full disk."""
MB = 1024**2


def is_no_space(error: BaseException | None) -> bool:
    """Return whether an error, or one that it came from, is a disk without room."""
    while error is not None:
        if any(words in _text(error) for words in _WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False


def said(error: BaseException, written_to: Sequence[str]) -> str:
    """Return the message: which of the places written to has no room (of several the one with least), and the remedy.

    Spark's own scratch is among them.
    """
    folders = [_nearest(Path(place)) for place in written_to if not is_address(place)]
    free = {folder: shutil.disk_usage(folder).free for folder in [*folders, Path(tempfile.gettempdir())]}
    while error.__cause__ is not None:
        error = error.__cause__  # what was made of it names Spark's log, too
    named = [folder for folder in folders if str(folder) in _text(error)]
    full = min(named or free, key=lambda folder: free[folder])
    return (
        f"no space left on the disk of {full} ({free[full] / MB:,.1f} MB free);"
        " make room there and make the report again: a store goes on from what is whole in it"
    )


def _text(error: BaseException) -> str:
    """Return what an error says; of what Spark raises, the cause may stand in Java's trace only."""
    return f"{error} {getattr(error, '_stackTrace', '')}"


def _nearest(place: Path) -> Path:
    """Return the folder that exists: the place, or the first above it."""
    return next(folder for folder in (place, *place.parents) if folder.is_dir())
