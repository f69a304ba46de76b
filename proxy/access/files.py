"""Reads the files that secrets are in: small ones, on a local disk, whole each time.

Kubernetes swaps a symbolic link, others rename a file or write into it: what is in it now is all that counts, so it is
read and compared, and no date of any file is trusted.
"""

from collections.abc import Callable
from pathlib import Path

from proxy.errors import SecretError

FILE_BYTES = 1024**2
"""No certificate, key, password or token is longer."""

Read = Callable[[str], bytes]
"""Returns what is in a file. Raises `OSError`, `ValueError` for a name no file can have, `SecretError` if too long."""


def read_file(path: str) -> bytes:
    """Return what is in a file of at most `FILE_BYTES`; see `Read`."""
    with Path(path).open("rb") as stream:
        data = stream.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise SecretError(f"is longer than {FILE_BYTES} bytes")
    return data


def read_or_say(read: Read, path: str) -> bytes:
    """Return what is in the file. Raises `SecretError` with the reason in a few words."""
    try:
        return read(path)
    except OSError as error:
        raise SecretError(f"can't be read: {error.strerror or type(error).__name__}") from error
    except ValueError as error:
        raise SecretError("can't be read: no file can be called so") from error


def password_in(data: bytes) -> str:
    """Return the password that a file holds: its text without one line's end. Raises `SecretError` if there is none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SecretError("is not UTF-8") from None  # the cause would quote it
    secret = text.removesuffix("\n").removesuffix("\r")
    if not secret:
        raise SecretError("is empty")
    return secret
