"""What a record is: a class of fields with a type and a meaning, and the envelope that every record has."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from types import UnionType
from typing import Annotated, Any, ClassVar, NewType, dataclass_transform, get_args, get_origin, get_type_hints

VERSION = 2
"""Of the records that are written."""
READABLE = (1, 2)
"""Versions that are understood; of version 1 what is `ADDED` is absent."""

Buckets = NewType("Buckets", dict[str, int])
"""A distribution: index of the bucket (as text, as JSON has it) and count, empty ones left out."""


class Mark(Enum):
    """What is said of a field beside its meaning."""

    ADDED = "added"
    """It came later than its kind, so that a record may lack it; it is written always."""


ADDED = Mark.ADDED


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind, as readers see it."""

    name: str
    type: Any
    """int, float, str, bool, `Buckets`, a `list[...]` or `dict[str, ...]` of these, or a class of fields."""
    meaning: str
    is_optional: bool
    """It may be null or absent."""
    is_added: bool

    @property
    def is_required(self) -> bool:
        """Whether a record without it is none."""
        return not (self.is_optional or self.is_added)


def _holds_parts(kind: Any) -> bool:
    return (isinstance(kind, type) and issubclass(kind, Part)) or any(_holds_parts(one) for one in get_args(kind))


@dataclass_transform(kw_only_default=True)
class Part:
    """A group of fields: a record, or what stands inside of one. Subclasses are dataclasses."""

    NAMES: ClassVar[Sequence[tuple[str, str, bool]]] = ()
    """Each field's name in Python (a keyword has an underscore behind it) and in JSON, and whether parts are in it."""

    def __init_subclass__(cls) -> None:
        """Make it a dataclass."""
        dataclass(kw_only=True)(cls)
        hints = get_type_hints(cls)
        own = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # it is one by now
        cls.NAMES = tuple((name, name.removesuffix("_"), _holds_parts(hints[name])) for name in own)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON knows them; what they hold is not copied."""
        return {
            name: _plain(getattr(self, attribute)) if is_nested else getattr(self, attribute)
            for attribute, name, is_nested in self.NAMES
        }


KINDS: "dict[str, type[Record]]" = {}
"""Every kind by name, in the order of its declaration."""


class Record(Part):
    """One record. A subclass with `KIND` is a kind of its own; its docstring says when it is written."""

    KIND: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """Make the kind known."""
        super().__init_subclass__()
        if "KIND" in cls.__dict__:
            KINDS[cls.KIND] = cls


class Envelope(Part):
    """What every record begins with."""

    v: Annotated[int, "version of the record"]
    kind: Annotated[str, "which of the kinds below"]
    at_ms: Annotated[int, "milliseconds since 1970, at the end of its interval"]
    instance: Annotated[str | None, "one process: host, process id, start"] = None


def enveloped(record: Record, *, at_ms: int, instance: str) -> dict[str, Any]:
    """Return a record as it is written."""
    envelope = Envelope(v=VERSION, kind=record.KIND, at_ms=at_ms, instance=instance)
    return envelope.as_json() | record.as_json()


def fields_of(part: type[Part]) -> Iterator[Field]:
    """Yield the fields of a kind, or of a part of one, in their order."""
    hints = get_type_hints(part, include_extras=True)
    for attribute, name, _ in part.NAMES:
        kind, meaning, *marks = get_args(hints[attribute])
        is_optional = get_origin(kind) is UnionType and type(None) in get_args(kind)
        bare = next(one for one in get_args(kind) if one is not type(None)) if is_optional else kind
        yield Field(name, bare, meaning, is_optional, ADDED in marks)


def _plain(value: Any) -> Any:
    match value:
        case Part():
            return value.as_json()
        case list():
            return [_plain(one) for one in value]
        case dict():
            return {key: _plain(one) for key, one in value.items()}
        case _:
            return value
