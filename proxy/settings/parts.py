"""What all settings share: frozen, strict about unknown keys, durations and sizes written as people write them."""

import ipaddress
import re
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

_DURATION = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(ms|s|m|h|d)?\s*")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SIZE = re.compile(r"\s*([0-9]{1,15})\s*(B|KiB|MiB|GiB|TiB)?\s*")
_BYTES = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
_LABEL = r"[A-Za-z0-9_-]{1,63}"
"""Python's resolver raises what is no `OSError` on a longer one and on an empty one."""
_HOST = re.compile(
    rf"(?:\[(?P<address>[^\[\]]{{2,64}})\]|(?P<name>(?=[A-Za-z0-9][^:]{{0,252}}:){_LABEL}(?:\.{_LABEL})*\.?))"
    r":(?P<port>[0-9]{1,5})"
)
_PORTS = 65_535
_SHORT_BYTES = 255

HOST_FORM = "host:port with a port from 1 to 65535, an IPv6 address in brackets: kafka-1:9092, [2001:db8::1]:9092"
LISTEN_FORM = "host:port, an IPv6 address in brackets: 127.0.0.1:8080; port 0 takes a free one"


class Part(BaseModel):
    """One block of the settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Unit(Enum):
    """What a number counts; stands in an annotation, so that messages write bounds in the unit of the file."""

    SECONDS = "duration"
    BYTES = "size"


@dataclass(frozen=True, slots=True)
class Allowed:
    """Says in an annotation, in words, what a text may be where only a pattern or a function knows."""

    words: str


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("true and false are no numbers")  # pydantic would take them for 1 and 0
    return value


def _switch(value: object) -> object:
    is_text = isinstance(value, str) and value in {"true", "false"}  # where it comes from the environment
    if not (is_text or isinstance(value, bool)):
        raise ValueError("is neither true nor false")  # pydantic would take yes, on, t and 1
    return value


def _seconds(value: object) -> object:
    if isinstance(value, str):
        match = _DURATION.fullmatch(value)
        if match is None:
            raise ValueError("is no duration")
        number, unit = float(match[1]), match[2] or "s"
        return number / 1000 if unit == "ms" else number * _SECONDS[unit]
    return _no_bool(value)


def _bytes(value: object) -> object:
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match is None:
            raise ValueError("is no size")
        return int(match[1]) * _BYTES[match[2] or "B"]
    return _no_bool(value)


def duration_text(seconds: float) -> str:
    """Return a duration as the file writes it, in the largest unit that divides it: `6s`, `250ms`, `2h`."""
    for unit in ("d", "h", "m", "s"):
        if seconds >= _SECONDS[unit] and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.0f}{unit}"
    return "0s" if seconds == 0 else f"{seconds * 1000:g}ms" if seconds < 1 else f"{seconds:g}s"


def size_text(size: int) -> str:
    """Return a size as the file writes it, in the largest unit that divides it: `4MiB`, `1000B`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size >= _BYTES[unit] and size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}"
    return f"{size}B"


def split_host(text: str) -> tuple[str, int]:
    """Take `host:port` apart, an IPv6 address out of its brackets. Raises `ValueError` if it has another form."""
    match = _HOST.fullmatch(text)
    if match is None or int(match["port"]) > _PORTS:
        raise ValueError("is no host:port")
    if match["address"] is not None:
        ipaddress.IPv6Address(match["address"])
    return match["address"] or match["name"], int(match["port"])


def _host(text: str) -> str:
    if split_host(text)[1] == 0:
        raise ValueError("port 0 can't be connected to")
    return text


def web_host(text: str) -> str:
    """Return an http address if what stands between `//` and the path is a host, perhaps with a port."""
    where = re.split(r"[/?#]", text.split("//", 1)[1], maxsplit=1)[0]
    _host(where if re.search(r":[0-9]*$", where) and not where.endswith("]") else f"{where}:80")
    return text


def _short(text: str) -> str:
    if len(text.encode()) > _SHORT_BYTES:
        raise ValueError("is longer than 255 bytes in UTF-8")
    return text


def _file_path(text: str) -> str:
    if "\x00" in text:
        raise ValueError("holds a null character")
    return text


def _listen(text: str) -> str:
    split_host(text)
    return text


Seconds = Annotated[float, BeforeValidator(_seconds), Unit.SECONDS]
"""A duration in seconds; in the file `250ms`, `5s`, `10m`, `2h`, `7d`, or a number of seconds."""
Bytes = Annotated[int, BeforeValidator(_bytes), Unit.BYTES]
"""A size in bytes; in the file `512B`, `64KiB`, `4MiB`, `2GiB`, `1TiB`, or a number of bytes."""
Switch = Annotated[bool, BeforeValidator(_switch)]
"""True or false."""
Number = Annotated[float, BeforeValidator(_no_bool)]
"""A number without a unit."""
Whole = Annotated[int, BeforeValidator(_no_bool)]
"""A whole number without a unit."""
Count = Annotated[Whole, Field(ge=1)]
"""A whole number of at least 1."""
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
Name = Annotated[
    str,
    Field(pattern=NAME_PATTERN),
    Allowed("1 to 128 of the characters A-Z a-z 0-9 . _ -, a letter or digit first"),
]
"""What a route or class may be called."""
Host = Annotated[str, AfterValidator(_host), Allowed(HOST_FORM)]
"""Whom to connect to."""
WebAddress = Annotated[
    str,
    Field(pattern=r"^https?://[^\s/?#@]+(/[^\s?#@]*)?$", max_length=1024),
    AfterValidator(web_host),
    Allowed("http://host:port or https://host:port, perhaps with a path"),
]
"""Whom to ask by HTTP."""
WebTarget = Annotated[
    str,
    Field(pattern=r"^https?://[^\s/?#@]+(/[^\s#@]*)?$", max_length=1024),
    AfterValidator(web_host),
    Allowed("http://host:port or https://host:port, perhaps with a path and a query"),
]
"""Whom to tell by HTTP; the query may hold a secret."""
Listen = Annotated[str, AfterValidator(_listen), Allowed(LISTEN_FORM)]
"""Where to accept connections."""
Text = Annotated[str, Field(min_length=1, max_length=1024)]
"""Any text but none."""
FilePath = Annotated[Text, AfterValidator(_file_path)]
"""Where a file or folder is; Python raises what is no `OSError` on a null character."""
ShortText = Annotated[str, Field(min_length=1, max_length=_SHORT_BYTES), AfterValidator(_short)]
"""A name that AMQP must carry in one short string."""
