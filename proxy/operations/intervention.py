"""What is pinned to the board: what a person asked of the group, and what a replica answered.

Pure: JSON to frozen values and back. A value that can't be meant is a `ValueError` of one sentence. Fields that are not
known are passed over: a newer version's notes must not stop an older replica.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from proxy.json_text import read_json
from proxy.model import Mode, Note
from proxy.settings import POLICIES

LONGEST_MS = 7 * 86_400_000
"""What an intervention may last at most; the board keeps its notes for twice as long."""
MOST_NAMES = 1_000
"""Event types and classes in one intervention."""
LEAST_RATE, HIGHEST_RATE = 0.1, 1e9
"""Of a cap, in events a second: less is a pause."""
MOST_CHARACTERS = 1_000
"""Of a text in a note."""

_INTERVENTION = "intervention/"
_ANSWER = "answer/"
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LATEST_MS = 253_402_300_799_999
"""The end of the year 9999."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """One act of a person: what becomes of the events of some types, until when."""

    id: str
    """1 to 64 of the characters A-Z a-z 0-9 . _ -"""
    mode: Mode
    types: tuple[str, ...]
    """Event types by name, whether a replica knows them or not."""
    classes: tuple[str, ...]
    """At least one type or class, `MOST_NAMES` at most."""
    by: str
    why: str | None
    at_ms: int
    """Milliseconds since 1970, by the clock of who asked."""
    until_ms: int
    """From then on it is over; later than `at_ms`, by `LONGEST_MS` at most."""
    ended_by: str | None = None
    """Who ended it before its time; it is pinned again with this under the same key. None: nobody has."""
    ended_why: str | None = None
    rate: float | None = None
    """Of a `cap`: events a second in the whole group, all that it names together; above 0. None: it is no cap."""
    routes: tuple[str, ...] = ()
    """Of a `policy`, and of a `run` that takes one back: routes, in place of types and classes."""
    policy: str | None = None
    """Of a `policy`: by which the routes are held back. None: it is none."""

    def __post_init__(self) -> None:
        """Raise `ValueError` if it is out of bounds."""
        _check_id(self.id)
        for name in (
            *self.types,
            *self.classes,
            *self.routes,
            self.by,
            self.why or "",
            self.ended_by or "",
            self.ended_why or "",
        ):
            _check_length(name)
        if not 1 <= len(self.types) + len(self.classes) + len(self.routes) <= MOST_NAMES:
            raise ValueError(f"an intervention names 1 to {MOST_NAMES} event types and classes, or routes")
        if (self.policy is None) is (self.mode is Mode.POLICY):
            raise ValueError("what sets a policy names one, and nothing else does")
        if self.policy is not None and self.policy not in POLICIES:
            raise ValueError(f"the policy is none of {', '.join(POLICIES)}")
        if self.policy is not None and (self.types or self.classes):
            raise ValueError("a policy is set for routes, not for event types or classes")
        if self.routes and self.mode not in {Mode.POLICY, Mode.RUN}:
            raise ValueError("only a policy is set for routes")
        if (self.rate is None) is (self.mode is Mode.CAP):
            raise ValueError("a cap has a rate, and nothing else has one")
        if self.rate is not None and not LEAST_RATE <= self.rate <= HIGHEST_RATE:
            raise ValueError(f"rate is not {LEAST_RATE:g} to {HIGHEST_RATE:g} events a second")
        _check_time("at_ms", self.at_ms)
        _check_time("until_ms", self.until_ms)
        if not 0 < self.until_ms - self.at_ms <= LONGEST_MS:
            raise ValueError("an intervention ends after it began, within 7 days")

    @property
    def key(self) -> str:
        """Under which it is pinned."""
        return _INTERVENTION + self.id

    def names(self, event_type: str, priority: str, route: str) -> bool:
        """Return whether it means an event type of this name, class and route."""
        return event_type in self.types or priority in self.classes or route in self.routes

    def holds(self, now_ms: int) -> bool:
        """Return whether it has not ended; one whose asker's clock is ahead holds at once."""
        return self.ended_by is None and not self.is_past(now_ms)

    def is_past(self, now_ms: int) -> bool:
        """Return whether its time is over, so that nobody need know of it any more."""
        return now_ms >= self.until_ms

    def as_json(self) -> bytes:
        """Return what is pinned, in ASCII."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, value: bytes) -> "Intervention":
        """Read what `as_json` wrote. Raises `ValueError`."""
        fields = _fields(value)
        mode = _text(fields, "mode")
        if mode not in set(Mode):
            raise ValueError(f"the mode {json.dumps(mode[:MOST_CHARACTERS])} is none of {', '.join(Mode)}")
        return cls(
            id=_text(fields, "id"),
            mode=Mode(mode),
            types=_texts(fields, "types"),
            classes=_texts(fields, "classes"),
            by=_text(fields, "by"),
            why=_text_or_none(fields, "why"),
            at_ms=_whole(fields, "at_ms"),
            until_ms=_whole(fields, "until_ms"),
            ended_by=_text_or_none(fields, "ended_by"),
            ended_why=_text_or_none(fields, "ended_why"),
            rate=None if fields.get("rate") is None else _number(fields, "rate"),
            routes=_texts(fields, "routes") if "routes" in fields else (),
            policy=_text_or_none(fields, "policy"),
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a replica says: it does what the intervention asks, or does so no more."""

    id: str
    """Of the intervention."""
    instance: str
    """The process, as in the metric log."""
    member: str
    """The replica's member id of the group; empty while it has none."""
    types: int
    """How many of this replica's event types the intervention names; 0 or more."""
    at_ms: int
    """Milliseconds since 1970, by the replica's clock."""
    has_ended: bool = False
    """It was ended before its time, and this replica has done that."""

    def __post_init__(self) -> None:
        """Raise `ValueError` if it is out of bounds."""
        _check_id(self.id)
        _check_length(self.instance)
        _check_length(self.member)
        _check_time("at_ms", self.at_ms)
        if self.types < 0:
            raise ValueError("types is less than 0")

    @property
    def key(self) -> str:
        """Under which it is pinned: one answer of each process to each intervention."""
        return f"{_ANSWER}{self.id}/{self.instance}"

    def as_json(self) -> bytes:
        """Return what is pinned, in ASCII."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, value: bytes) -> "Answer":
        """Read what `as_json` wrote. Raises `ValueError`."""
        fields = _fields(value)
        return cls(
            id=_text(fields, "id"),
            instance=_text(fields, "instance"),
            member=_text(fields, "member"),
            types=_whole(fields, "types"),
            at_ms=_whole(fields, "at_ms"),
            has_ended=fields.get("has_ended") is True,
        )


def read(note: Note) -> Intervention | Answer | None:
    """Return what a note says; None if it was taken back, or is of a kind that only a newer version knows.

    Raises `ValueError` if it can't be meant, or stands under another's key.
    """
    said: Intervention | Answer
    if note.value is None:
        return None
    if note.key.startswith(_INTERVENTION):
        said = Intervention.from_json(note.value)
    elif note.key.startswith(_ANSWER):
        said = Answer.from_json(note.value)
    else:
        return None
    if said.key != note.key:
        raise ValueError("the note stands under a key that is not its own")
    return said


def _fields(value: bytes) -> Mapping[str, Any]:
    try:
        fields = read_json(value)
    except ValueError as error:
        raise ValueError("the note is no JSON") from error
    if not isinstance(fields, dict):
        raise ValueError("the note is no JSON object")  # noqa: TRY004  # one kind of error for whatever is wrong
    return fields


def _text(fields: Mapping[str, Any], name: str) -> str:
    if not isinstance(value := fields.get(name), str):
        raise ValueError(f"{name} is no text")  # noqa: TRY004  # likewise
    return value


def _text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name)


def _texts(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = fields.get(name)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{name} is no list of texts")
    return tuple(value)


def _whole(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} is no whole number")  # noqa: TRY004  # likewise
    return value


def _number(fields: Mapping[str, Any], name: str) -> float:
    value = fields.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{name} is no number")  # noqa: TRY004  # likewise
    return value


def _check_id(name: str) -> None:
    if not _ID.fullmatch(name):
        raise ValueError("id is not 1 to 64 of the characters A-Z a-z 0-9 . _ -")


def _check_length(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"a text is longer than {MOST_CHARACTERS} characters")


def _check_time(name: str, at_ms: int) -> None:
    if not 0 <= at_ms <= _LATEST_MS:
        raise ValueError(f"{name} is no time between 1970 and 9999")
