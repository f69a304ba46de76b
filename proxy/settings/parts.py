"""What all settings share: frozen, strict about unknown keys, durations written as people write them."""

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"\s*(\d+)\s*(B|KiB|MiB|GiB)\s*")
_BYTES = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


class Part(BaseModel):
    """One block of the settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _seconds(value: object) -> object:
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        return float(match[1]) * _SECONDS[match[2]]
    if isinstance(value, str):
        raise ValueError("write a duration as a number with a unit: 250ms, 5s, 10m, 2h or 7d")
    return value


def _bytes(value: object) -> object:
    if isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        return int(match[1]) * _BYTES[match[2]]
    if isinstance(value, str):
        raise ValueError("write a size as a number with a unit: 512B, 64KiB, 4MiB or 2GiB")
    return value


Seconds = Annotated[float, BeforeValidator(_seconds)]
"""A duration in seconds; in the file `250ms`, `5s`, `10m`, `2h`, `7d`, or a number of seconds."""
Bytes = Annotated[int, BeforeValidator(_bytes)]
"""A size in bytes; in the file `512B`, `64KiB`, `4MiB`, `2GiB`, or a number of bytes."""
Count = Annotated[int, Field(ge=1)]
"""A whole number of at least 1."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
"""What a route, class or event type may be called."""
