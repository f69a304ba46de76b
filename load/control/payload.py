"""What an event of a scenario carries: from whom, which one it is, when it was due. Pure."""

import struct
from typing import NamedTuple

_HEAD = struct.Struct(">4sHHQd")
_MARK = b"tg4c"
LEAST = _HEAD.size
"""Bytes: a smaller event of a scenario is as large as this."""
FIRST = 2
"""Number of the first event of a partition; those before were written to open it, and are forgotten."""


class Mark(NamedTuple):
    """Which event this is."""

    topic: int
    """Its topic's place among all topics of the run."""
    partition: int
    number: int
    """Within its partition, from `FIRST`: its offset, in a topic that only this run writes."""
    due: float
    """Due instant in seconds of the monotonic clock; not a number where there is none (an endless stream)."""


def filler(size: int) -> bytes:
    """Return what follows the head in an event of `size` bytes."""
    return bytes(max(0, size - LEAST))


def encode(topic: int, partition: int, number: int, due: float, rest: bytes) -> bytes:
    """Return the value of an event."""
    return _HEAD.pack(_MARK, topic, partition, number, due) + rest


def decode(value: bytes) -> Mark | None:
    """Return what a value says; None for one that others published."""
    if len(value) < LEAST or not value.startswith(_MARK):
        return None
    _, topic, partition, number, due = _HEAD.unpack_from(value)
    return Mark(topic, partition, number, due)
