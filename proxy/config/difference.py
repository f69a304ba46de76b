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
_NAMED_PARTS = frozenset({"routes", _RANKED})
"""Mappings from names to parts."""
_LIVE = frozenset({"class_budget", "throttling", "statistics", "detector", "retention"})
"""Parts that can change while events are moved, as routes do and what is said of the classes."""
LIVE_LIMITS = frozenset({"inbox_events", "inbox_bytes", "inbox_low", "inboxes_bytes", "uncommitted_events"})
"""Of `limits`, what bounds the bridge alone; the others are what connections and the group were made with."""
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
    parts: tuple[str, ...]
    """What else changes while events are moved, like `routes.mail.policy: static -> class_budget`."""
    fixed: tuple[str, ...]
    """Paths of all else that differs, like `broker.hosts`; never with a value: secrets may be among them."""

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(self.added or self.removed or self.changed or self.patterns or self.parts or self.fixed)

    def told(self) -> dict[str, Any]:
        """Return it as the log and the API tell it, bounded."""
        changed = {name: list(self.changed[name]) for name in sorted(self.changed)[:_NAMED]}
        return {
            "added": listing(self.added, _NAMED),
            "removed": listing(self.removed, _NAMED),
            "changed": changed,
            "changed_types": len(self.changed),
            "patterns": self.patterns,
            "parts": [*self.parts[:_NAMED]],
            "changed_parts": len(self.parts),
        }


def difference(now: Settings, then: Settings) -> Difference:
    """Return what changes from `now` to `then`."""
    before, after = now.event_types, then.event_types
    others = [(is_live, change) for key in Settings.model_fields for is_live, change in _others(key, now, then)]
    return Difference(
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed={
            name: changes
            for name in sorted(before.keys() & after.keys())
            if (changes := tuple(_changes(before[name], after[name])))
        },
        patterns=now.patterns != then.patterns,
        parts=tuple(change.told for is_live, change in others if is_live),
        fixed=tuple(change.path for is_live, change in others if not is_live),
    )


@dataclass(frozen=True, slots=True)
class _Change:
    path: str
    before: object = None
    after: object = None

    @property
    def told(self) -> str:
        first, second = (_plain(one) for one in (self.before, self.after))
        return f"{self.path}: {_short(first)} -> {_short(second)}"


def _others(key: str, now: Settings, then: Settings) -> Iterator[tuple[bool, _Change]]:
    """Yield what differs of one part, and whether it can change while events are moved."""
    if key in _STREAMS:
        return
    first, second = getattr(now, key), getattr(then, key)
    if key not in _NAMED_PARTS:
        live_limits = {f"limits.{name}" for name in LIVE_LIMITS}
        yield from ((key in _LIVE or one.path in live_limits, one) for one in _between(key, first, second))
        return
    if key == _RANKED and list(first) != list(second) and first.keys() == second.keys():
        yield False, _Change(f"{key} (their order)")
    for name in dict.fromkeys([*first, *second]):
        if name not in first or name not in second:
            yield key != _RANKED, _Change(f"{key}.{name}", *(("there", "gone") if name in first else ("none", "new")))
            continue
        yield from ((True, change) for change in _between(f"{key}.{name}", first[name], second[name]))


def _changes(before: EventType, after: EventType) -> Iterator[str]:
    first, second = before.model_dump(mode="json"), after.model_dump(mode="json")
    for key in type(before).model_fields:
        if getattr(before, key) != getattr(after, key):
            yield f"{_WRITTEN.get(key, key)}: {_short(first[key])} -> {_short(second[key])}"


def _plain(value: object) -> object:
    """Return a value as its words in JSON are."""
    if isinstance(value, Part):
        return value.model_dump(mode="json")
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _short(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_short(one)}" for key, one in value.items() if one is not None) + "}"
    if isinstance(value, list):
        return listing([_short(one) for one in value], _NAMED)
    return "none" if value is None else str(value)


def _between(path: str, first: object, second: object) -> Iterator[_Change]:
    """Yield where two values differ, as deep as both have the same parts."""
    if isinstance(first, Part) and type(first) is type(second):
        for key in type(first).model_fields:
            yield from _between(f"{path}.{key}", getattr(first, key), getattr(second, key))
    elif first != second:
        yield _Change(path, first, second)
