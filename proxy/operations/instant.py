"""A time as a person gives it to a command."""

import argparse
import contextlib
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from proxy.settings.parts import Seconds

_MS = 1000
_AGE: TypeAdapter[float] = TypeAdapter(Annotated[Seconds, Field(ge=1)])


def instant(given: str) -> int:
    """Return milliseconds since 1970: an ISO time, UTC unless it says otherwise, or so long ago.

    Raises `ArgumentTypeError`.
    """
    with contextlib.suppress(ValidationError):
        ago = timedelta(seconds=_AGE.validate_python(given))
        with contextlib.suppress(OverflowError):
            return _since_1970(round((datetime.now(UTC) - ago).timestamp() * _MS))
    try:
        told = datetime.fromisoformat(given)
        return _since_1970(round((told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp() * _MS))
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError("is no time like 2026-11-23T14:00:00Z, nor how long ago, like 2h") from error


def _since_1970(instant_ms: int) -> int:
    if instant_ms < 0:
        raise argparse.ArgumentTypeError("lies before 1970, where no log begins")
    return instant_ms
