"""The files that settings are in: read as a whole, told apart by what is in them."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from proxy.access.files import read_plain
from proxy.config.files import INCLUDED_FILES, included_folder, is_included

FILE_BYTES = 16 * 1024**2
"""Of a longer file only so much is compared."""


class Source:
    """One settings file and what it includes. Secrets are not part of it: they are read anew wherever they are used."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self.path = path
        self._environ = environ
        self._main = b""
        self._folder: Path | None = None

    def fingerprint(self) -> bytes:
        """Return what is another one if anything in the files has changed. Blocks on the disk.

        A file that can't be read has a fingerprint, too: it may be readable again.
        """
        main = _content(self.path)
        if main != self._main:
            self._main, self._folder = main, included_folder(self.path, self._environ)
        digest = hashlib.sha256(main)
        for part in _parts(self._folder):
            digest.update(part.name.encode("utf-8", "surrogateescape") + b"\0" + _content(part) + b"\0")
        return digest.digest()


def _parts(folder: Path | None) -> list[Path]:
    if folder is None:
        return []
    try:
        return sorted(part for part in folder.iterdir() if is_included(part))[:INCLUDED_FILES]
    except OSError:
        return []


def _content(path: Path) -> bytes:
    try:
        return hashlib.sha256(read_plain(str(path), FILE_BYTES)).digest()
    except (OSError, ValueError):
        return b""
