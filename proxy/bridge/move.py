"""One partition's cursor taken elsewhere by a person: a skip forward, a rewind back (docs/design/0045)."""

import re
from enum import StrEnum
from typing import NamedTuple

from proxy.model import Partition

_ID = re.compile(r"([0-9]{1,12})-[0-9a-f]{1,16}")
NEVER_MOVED = ""
"""Stands for the id of a move where there was none."""


class Direction(StrEnum):
    """Which way a cursor is moved."""

    SKIP = "skip"
    """Forward: what lies between is passed over, unsent."""
    REWIND = "rewind"
    """Back: what lies between is read and sent again."""


def is_id(text: str) -> bool:
    """Return whether a text is the id of a move: a number, a hyphen, and up to 16 hexadecimal digits."""
    return _ID.fullmatch(text) is not None


def number(move_id: str) -> int:
    """Return the number in a move's id; 0 if there was no move."""
    found = _ID.fullmatch(move_id)
    return int(found[1]) if found is not None else 0


def serial(move_id: str) -> tuple[int, str]:
    """Return by what ids are compared: of two moves of one partition the greater one is the later one."""
    return number(move_id), move_id


class Move(NamedTuple):
    """What a plan says of one partition; places are as the log counts them."""

    id: str
    """Of the plan, the same in all its partitions."""
    direction: Direction
    topic_id: str
    """Of the log that the places belong to; empty if it tells none."""
    first: int
    """Where the group was when the plan was made. A skip passes over nothing before it, whatever has happened since."""
    to: int
    """Where the cursor is to stand."""
    by: str
    """Who asked for it."""
    why: str | None

    def end(self, done: int) -> int:
        """Return where the cursor stands after the move if everything before `done` is done with; `done`: unmoved.

        A skip never goes back and drops nothing that the plan does not name; a rewind never goes forward.
        """
        if self.direction is Direction.REWIND:
            return min(done, self.to)
        return self.to if self.first <= done < self.to else done


class Moved(NamedTuple):
    """A move that was made: the log has it for good."""

    partition: Partition
    move: Move
    done: int
    """Everything before it was done with."""
    to: int
    """Where the cursor stood after it; the same: nothing was passed over, nothing comes again."""
