"""Reads the files that settings and secrets are in: small ones, on a local disk, whole each time.

Kubernetes swaps a symbolic link, others rename a file or write into it: what is in it now is all that counts, so it is
read and compared, and no date of any file is trusted.
"""

import contextlib
import errno
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from proxy.errors import SecretError

FILE_BYTES = 1024**2
"""No certificate, key, password or token is longer."""

_PART = 64 * 1024

_NO_PLAIN = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

Read = Callable[[str], bytes]
"""Returns what is in a file. Raises `OSError`, `ValueError` for a name no file can have, `SecretError` if too long."""


def read_plain(path: str, most: int) -> bytes:
    """Return the first `most` bytes of a plain file, and one more if it is longer.

    Raises `OSError`, for what is no plain file, too: a pipe that nobody writes to would never be open, a device never
    at its end. Raises `ValueError` for a name that no file can have.
    """
    kind = stat.S_IFMT(Path(path).stat().st_mode)
    if kind != stat.S_IFREG:
        raise OSError(errno.EINVAL, f"it is {_NO_PLAIN.get(kind, 'no file')}; give a plain file", path)
    parts, left = list[bytes](), most + 1
    with Path(path).open("rb") as stream:
        while part := stream.read(min(left, _PART)):  # whatever is asked for at once takes so much memory for a moment
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


def read_file(path: str) -> bytes:
    """Return what is in a file of at most `FILE_BYTES`; see `Read`."""
    data = read_plain(path, FILE_BYTES)
    if len(data) > FILE_BYTES:
        raise SecretError(f"is longer than {FILE_BYTES} bytes")
    return data


def read_or_say(read: Read, path: str) -> bytes:
    """Return what is in the file. Raises `SecretError` with its path and the reason in a few words."""
    with naming(path):
        try:
            return read(path)
        except OSError as error:
            raise SecretError(f"can't be read: {error.strerror or type(error).__name__}") from error
        except ValueError as error:
            raise SecretError("can't be read: no file can be called so") from error


def password_in(read: Read, path: str) -> str:
    """Return the password that a file holds: its text without one line's end.

    Raises `SecretError` with the path, and never with what is in the file, if there is none.
    """
    data = read_or_say(read, path)
    with naming(path):
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise SecretError("is not UTF-8; save it in that encoding") from None  # the cause would quote it
        secret = text.removesuffix("\n").removesuffix("\r")
        if not secret:
            raise SecretError("is empty")
    return secret


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Put the path of a file before what is wrong with it: several settings may name files."""
    try:
        yield
    except SecretError as error:
        raise SecretError(f"{path} {error}") from error
