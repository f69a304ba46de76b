"""What a person wants of cursors, as it is pinned to the board: all moves of one command (docs/design/0045).

Pure: JSON to frozen values and back. What can't be meant is a `ValueError`; fields that are not known are passed over.
"""

import json
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from proxy.bridge.move import Direction, Move, is_id
from proxy.model import Note, Partition

LIFE_MS = 10 * 60_000
"""A plan that is not carried out by then is dead: what it says was settled for a group as it was then."""
MOST_MOVES = 10_000
"""Partitions in one plan: some 200 kB."""
MOST_CHARACTERS = 1_000
"""Of a text in a note."""

_PLAN = "move/"
_Place = Annotated[int, Field(ge=0, lt=2**62, strict=True)]
_Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
_Ms = Annotated[int, Field(ge=0, le=253_402_300_799_999, strict=True)]


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """The partitions of one topic; no move is of a topic that was made anew under the name."""

    topic: _Text
    topic_id: _Text
    """Empty if Kafka tells none."""
    partitions: tuple[tuple[_Place, _Place, _Place], ...]
    """Number, where the group was, where the cursor is to stand."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All moves of one command."""

    id: Annotated[str, Field(max_length=32)]
    direction: Direction
    by: _Text
    why: _Text | None
    at_ms: _Ms
    """Milliseconds since 1970, by the clock of who asked."""
    until_ms: _Ms
    """From then on nothing more is moved."""
    topics: tuple[PlannedTopic, ...]

    def __post_init__(self) -> None:
        """Raise `ValueError` if it is out of bounds."""
        if not is_id(self.id):
            raise ValueError("id is no number with a hyphen and hexadecimal digits behind it")
        if not 0 < self.until_ms - self.at_ms <= LIFE_MS:
            raise ValueError("a plan ends after it began, within 10 minutes")
        if not 1 <= sum(len(topic.partitions) for topic in self.topics) <= MOST_MOVES:
            raise ValueError(f"a plan moves 1 to {MOST_MOVES} partitions")

    @property
    def key(self) -> str:
        """Under which it is pinned."""
        return _PLAN + self.id

    def is_past(self, now_ms: int) -> bool:
        """Return whether its time is over."""
        return now_ms >= self.until_ms

    def moves(self) -> dict[Partition, Move]:
        """Return what it says of each partition."""
        return {
            Partition(one.topic, number): Move(self.id, self.direction, one.topic_id, first, to, self.by, self.why)
            for one in self.topics
            for number, first, to in one.partitions
        }

    def as_json(self) -> bytes:
        """Return what is pinned, in ASCII."""
        return json.dumps(asdict(self), separators=(",", ":")).encode()


_PLANS: TypeAdapter[Plan] = TypeAdapter(Plan)


def read_plan(note: Note) -> Plan | None:
    """Return the plan in a note; None if it is another one, or was taken back. Raises `ValueError`."""
    if note.value is None or not note.key.startswith(_PLAN):
        return None
    try:
        plan = _PLANS.validate_json(note.value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'the plan'}: {first['msg']}") from error
    if plan.key != note.key:
        raise ValueError("the note stands under a key that is not its own")
    return plan
