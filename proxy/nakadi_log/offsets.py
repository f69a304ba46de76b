"""Where an offset stands, as a number: the bridge, its records and its letters count positions. Pure.

An offset is a text: `001-0002-000000000000000042` is the number 42 of the second timeline; older servers say `42`. A
timeline's numbers begin at 0. So that numbers rise from one timeline to the next each has a range of its own; the first
one's numbers are the places themselves.
"""

import re
from typing import Any

_FORM = re.compile(r"(?:(?P<version>[0-9]{3})-(?P<timeline>[0-9a-f]{4})-)?(?P<number>-?[0-9]{1,18})")
_SPAN = 2**36
"""Numbers of a timeline: more than a partition ever had, and 65,536 of them fit into what JSON's readers count in."""
BEGIN = "BEGIN"
"""The offset before every event."""


def place(offset: str) -> int:
    """Return where the event of an offset stands; -1 is before the first. Raises `ValueError` if it tells no place."""
    if offset == BEGIN:
        return -1
    match = _FORM.fullmatch(offset)
    if match is None or int(match["number"]) < -1:
        raise ValueError(f"{offset[:100]!r} is no offset whose place is known")
    return span(offset) * _SPAN + int(match["number"])


def span(offset: str) -> int:
    """Return which timeline an offset is of, 0 the first; 0 if it names none."""
    match = _FORM.fullmatch(offset)
    named = match["timeline"] if match is not None else None
    return max(0, int(named, 16) - 1) if named else 0


def same_timeline(first: int, second: int) -> bool:
    """Return whether two places are of one timeline."""
    return first // _SPAN == second // _SPAN


def offset_at(place: int, like: str) -> str:
    """Return the offset of a place, written as another offset of the same partition is.

    Raises `ValueError` if no offset of that form stands for it.
    """
    match = _FORM.fullmatch(like)
    if place < 0:
        return BEGIN
    timeline, number = divmod(place, _SPAN)
    if match is None or (match["timeline"] is None and timeline):
        raise ValueError(f"no offset like {like[:100]!r} stands for the place {place}")
    if match["timeline"] is None:
        return str(number)
    first = 1 if timeline or int(match["timeline"], 16) else 0
    return f"{match['version']}-{timeline + first:04x}-{number:018d}"


def cursors_in(told: Any) -> dict[int, int]:
    """Return before which place all is done with, by partition, as an answer with cursors says."""
    items = told.get("items") if isinstance(told, dict) else None
    found = dict[int, int]()
    for item in items if isinstance(items, list) else []:
        try:
            found[int(item["partition"])] = place(item["offset"]) + 1
        except (KeyError, TypeError, ValueError):
            continue
    return found
