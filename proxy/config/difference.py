"""What two settings do not share: event types and patterns one by one, all else by the path of its key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proxy.config.items import listing
from proxy.settings import EventType, Part, Route, Settings

_STREAMS = frozenset({"event_types", "patterns"})
_RANKED = "classes"
"""A mapping whose order says something."""
_NAMED_PARTS = frozenset({"routes", _RANKED})
"""Mappings from names to parts."""
_STEERED = frozenset({"class_budget", "throttling", "statistics", "detector", "retention"})
"""Parts that hold events back, or say something of it: none of them is in the way of what is sent."""
DESTINATION = frozenset({"exchange", "message_priority", "origin", "key", "declare"})
"""What of a route says where its events go, and how; all else says what holds them back."""
_NAMED = 20
"""Of each kind that are told; of more their number."""


@dataclass(frozen=True, slots=True)
class Difference:
    """From the settings in force to new ones."""

    added: tuple[str, ...]
    """Names of event types."""
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]
    """By event type, what of it changed, like `priority: P2 -> P1`."""
    patterns: bool
    """The patterns differ, or their order."""
    steered: tuple[str, ...]
    """What else changed of what holds events back, like `routes.mail.policy: static -> class_budget`."""
    fixed: tuple[str, ...]
    """Paths of all else that differs, like `broker.hosts`; never with a value: secrets may be among them."""

    def __bool__(self) -> bool:
        """Return whether anything differs."""
        return bool(self.added or self.removed or self.changed or self.patterns or self.steered or self.fixed)

    def told(self) -> dict[str, Any]:
        """Return it as the log and the API tell it, bounded."""
        changed = {name: list(self.changed[name]) for name in sorted(self.changed)[:_NAMED]}
        return {
            "added": listing(self.added, _NAMED),
            "removed": listing(self.removed, _NAMED),
            "changed": changed,
            "changed_types": len(self.changed),
            "patterns": self.patterns,
            "steered": [*self.steered[:_NAMED]],
            "steered_values": len(self.steered),
        }


def difference(now: Settings, then: Settings) -> Difference:
    """Return what changes from `now` to `then`."""
    before, after = now.event_types, then.event_types
    others = [(is_steered, change) for key in Settings.model_fields for is_steered, change in _others(key, now, then)]
    return Difference(
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed={
            name: changes
            for name in sorted(before.keys() & after.keys())
            if (changes := tuple(_changes(before[name], after[name])))
        },
        patterns=now.patterns != then.patterns,
        steered=tuple(change.told for is_steered, change in others if is_steered),
        fixed=tuple(change.path for is_steered, change in others if not is_steered),
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
        yield from ((key in _STEERED, change) for change in _between(key, first, second))
        return
    if key == _RANKED and list(first) != list(second) and first.keys() == second.keys():
        yield False, _Change(f"{key} (their order)")
    for name in dict.fromkeys([*first, *second]):
        if name not in first or name not in second:
            yield False, _Change(f"{key}.{name}")
            continue
        for one in type(first[name]).model_fields:
            values = getattr(first[name], one), getattr(second[name], one)
            is_steered = key == _RANKED or one not in _destination(first[name], second[name])
            yield from ((is_steered, change) for change in _between(f"{key}.{name}.{one}", *values))


def _changes(before: EventType, after: EventType) -> Iterator[str]:
    first, second = before.model_dump(mode="json"), after.model_dump(mode="json")
    for key in type(before).model_fields:
        if getattr(before, key) != getattr(after, key):
            yield f"{key}: {_short(first[key])} -> {_short(second[key])}"


def _destination(first: Route, second: Route) -> frozenset[str]:
    """Return what of a route says where its events go; its queues, too, where they are declared."""
    return DESTINATION | {"queues"} if first.declare or second.declare else DESTINATION


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
