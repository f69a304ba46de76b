"""The error tree.

    TidegateError
    ├── SettingsError    a mistake of whoever wrote the settings; exit code 2
    ├── LogError         the log refused or could not be asked
    │   └── AssignmentLostError   the partition belongs to another replica now
    ├── BrokerError      the broker refused or could not be asked
    ├── RefusedLoginError   log or broker refused the credentials; exit code 2 at start
    ├── RateLawError     a rate law by that name can't be had
    └── SecretError      a certificate, password or token can't be had for now

Overload is no error: it is an `Outcome` (see `model`).
"""

import re
from collections.abc import Iterator

_OBJECT = re.compile(r" ssl:(?:<[^>]*>|\w+)")
_MOST_CAUSES = 16


class TidegateError(Exception):
    """What Tidegate itself raises; the message names the place and the remedy."""


class SettingsError(TidegateError):
    """The settings can't be used; every mistake is listed, one a line."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class LogError(TidegateError):
    """The log refused a request or did not answer in time."""


class AssignmentLostError(LogError):
    """A commit was fenced: the group gave the partitions to another replica."""


class BrokerError(TidegateError):
    """The broker refused a request or did not answer in time."""


class RefusedLoginError(TidegateError):
    """Log or broker refused the credentials; waiting will not help."""


class RateLawError(TidegateError):
    """There is no rate law of a name, or the package that brings it is broken."""


class NoticeError(TidegateError):
    """A notice could not be delivered; `is_final`: nor will it be."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


class SecretError(TidegateError):
    """A certificate, a password or a token can't be had for now; the message quotes none."""


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those behind it, 16 at most: some that clients raise are in the end their own cause."""
    one: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if one is None:
            return
        yield one
        one = one.__cause__ or one.__context__


def in_words(error: BaseException) -> str:
    """Return what an HTTP client says went wrong, never empty: aiohttp writes the address of an object into it."""
    return _OBJECT.sub("", str(error)) or type(error).__name__
