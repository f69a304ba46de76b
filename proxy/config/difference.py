"""What two settings do not share: event types and patterns one by one, all else by the path of its key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.config.items import listing
from proxy.settings import EventType, Part, Settings

_STREAMS = frozenset({"event_types", "patterns"})
_RANKED = "classes"
"""A mapping whose order says something."""
_WRITTEN = {"priority": "class"}
"""Keys that files write otherwise than we do: `class` is a word of Python's."""
_NAMED = 20
"""Of each kind that are told; of more their number."""


@dataclass(frozen=True, slots=True)
class Difference:
    """From the settings in force to new ones."""

    added: tuple[str, ...]
    """Names of event types."""
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]
    """By event type, what of it changed, like `class: P2 -> P1`."""
    patterns: bool
    """The patterns differ, or their order."""
    fixed: tuple[str, ...]
    """Paths of all else that differs, like `routes.mail.cap`; never with a value: secrets may be among them."""

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(self.added or self.removed or self.changed or self.patterns or self.fixed)

    def told(self) -> dict[str, Any]:
        """Return it as the log and the API tell it, bounded."""
        changed = {name: list(self.changed[name]) for name in sorted(self.changed)[:_NAMED]}
        return {
            "added": listing(self.added, _NAMED),
            "removed": listing(self.removed, _NAMED),
            "changed": changed,
            "changed_types": len(self.changed),
            "patterns": self.patterns,
        }


def difference(now: Settings, then: Settings) -> Difference:
    """Return what changes from `now` to `then`."""
    before, after = now.event_types, then.event_types
    return Difference(
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed={
            name: changes
            for name in sorted(before.keys() & after.keys())
            if (changes := tuple(_changes(before[name], after[name])))
        },
        patterns=now.patterns != then.patterns,
        fixed=tuple(path for key in Settings.model_fields if key not in _STREAMS for path in _paths(key, now, then)),
    )


def _changes(before: EventType, after: EventType) -> Iterator[str]:
    first, second = before.model_dump(mode="json"), after.model_dump(mode="json")
    for key in type(before).model_fields:
        if getattr(before, key) != getattr(after, key):
            yield f"{_WRITTEN.get(key, key)}: {_short(first[key])} -> {_short(second[key])}"


def _short(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_short(one)}" for key, one in value.items() if one is not None) + "}"
    return "none" if value is None else str(value)


def _paths(key: str, now: Part, then: Part) -> Iterator[str]:
    yield from _between(key, getattr(now, key), getattr(then, key))


def _between(path: str, first: object, second: object) -> Iterator[str]:
    """Yield the paths at which two values differ, as deep as both have the same parts."""
    if isinstance(first, Part) and type(first) is type(second):
        for key in type(first).model_fields:
            yield from _between(f"{path}.{key}", getattr(first, key), getattr(second, key))
    elif isinstance(first, dict) and isinstance(second, dict):
        if path == _RANKED and list(first) != list(second) and first.keys() == second.keys():
            yield f"{path} (their order)"
        for key in dict.fromkeys([*first, *second]):
            if key not in first or key not in second:
                yield f"{path}.{key}"
            else:
                yield from _between(f"{path}.{key}", first[key], second[key])
    elif first != second:
        yield path
