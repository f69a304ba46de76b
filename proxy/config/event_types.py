"""Resolves inheritance: what `defaults` say, then the class, then the event type itself."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from proxy.config.items import Item, Mistakes, listing, quoted
from proxy.config.words import FILE_KEYS, nearest, unknown_key, validate
from proxy.settings import DEFAULT_CLASSES, EventType, Traits, TypePattern

TRAITS = tuple(FILE_KEYS.get(name, name) for name in Traits.model_fields)
"""What `defaults`, a class's `events` and an event type may say; a class can't name a class."""
SOURCES = ("topic", "topics", "pattern")
"""Which topics an event type reads; its name says it if none of them is given."""

_FIELDS = {name: field for field, name in FILE_KEYS.items()}


@dataclass
class Resolved:
    """Every event type and pattern of the files, with the places that defined them."""

    event_types: dict[str, EventType] = field(default_factory=dict)
    patterns: list[TypePattern] = field(default_factory=list)
    names: dict[str, Item] = field(default_factory=dict)
    topics: dict[str, Item] = field(default_factory=dict)


def resolve(root: Item, mistakes: Mistakes) -> Resolved:
    """Return the event types of the settings, all traits resolved."""
    inheritance = _Inheritance(root, mistakes)
    found = Resolved()
    given = root.mapping.get("event_types")
    if given is not None and not isinstance(given.value, dict):
        mistakes.add(given, "must be a mapping from the names of event types")
    elif given is None or not given.mapping:
        mistakes.add(given or root, "at least one event type is needed", *([] if given else ["event_types"]))
    for name, item in given.mapping.items() if given else ():
        if item.value is not None and not isinstance(item.value, dict):
            mistakes.add(item, f"must be a mapping; allowed keys: {listing((*TRAITS, *SOURCES))}")
        else:
            _define(name, item, inheritance.traits(item), found, mistakes)
    for name, event_type in found.event_types.items():
        place = found.names[name]
        if event_type.topic != name and any(pattern.matches(name) for pattern in found.patterns):
            mistakes.add(place, "a pattern matches its name; call it like its topic, or narrow the pattern")
    return found


def _define(name: str, item: Item, traits: dict[str, Item], found: Resolved, mistakes: Mistakes) -> None:
    sources = [key for key in SOURCES if key in item.mapping]
    if len(sources) > 1:
        mistakes.add(item, f"gives {listing(sources)}; allowed: one of them, or none if it is called like its topic")
    elif sources == ["pattern"]:
        pattern = validate(TypePattern, item.at(traits | {"pattern": item.mapping["pattern"]}), mistakes)
        found.patterns += [pattern] if pattern else []
    elif sources == ["topics"]:
        topics = item.mapping["topics"]
        if not isinstance(topics.value, list) or not topics.value:
            mistakes.add(topics, "must be a list of topics, each of which makes an event type called like it")
            return
        for topic in topics.value:
            _add(item, topic, traits | {"name": topic, "topic": topic}, found, mistakes)
    else:
        own = item.at(name)
        _add(item, item, traits | {"name": own, "topic": item.mapping.get("topic", own)}, found, mistakes)


def _add(item: Item, place: Item, parts: dict[str, Item], found: Resolved, mistakes: Mistakes) -> None:
    is_new = True
    for key, seen in (("name", found.names), ("topic", found.topics)):
        value = parts[key].value
        if isinstance(value, str) and (first := seen.setdefault(value, place)) is not place:
            mistakes.add(place, f"its {key} is given already at {first.file}:{first.line}; keep one")
            is_new = False
            break
    event_type = validate(EventType, item.at(parts), mistakes)
    if event_type is not None and is_new:
        found.event_types[event_type.name] = event_type


class _Inheritance:
    """Knows what an event type says that says nothing itself."""

    def __init__(self, root: Item, mistakes: Mistakes) -> None:
        self._mistakes = mistakes
        self._routes = tuple(root.mapping["routes"].mapping) if "routes" in root.mapping else ()
        classes = root.mapping.get("classes")
        self._classes = tuple(classes.mapping) if classes else tuple(DEFAULT_CLASSES)
        self._defaults = self._checked(root.mapping.get("defaults"), TRAITS)
        self._by_class = {
            name: self._checked(entry.mapping.get("events"), [trait for trait in TRAITS if trait != "class"])
            for name, entry in (classes.mapping.items() if classes else ())
        }

    def traits(self, item: Item) -> dict[str, Item]:
        """Return the traits of an event type under their names in the model."""
        own = self._known(item, (*TRAITS, *SOURCES))
        priority = own.get("class", self._defaults.get("class"))
        name = priority.value if priority else None
        inherited = self._by_class.get(name, {}) if isinstance(name, str) else {}
        return {
            _FIELDS.get(key, key): entry
            for key, entry in (self._defaults | inherited | own).items()
            if key not in SOURCES
        }

    def _checked(self, item: Item | None, keys: Iterable[str]) -> dict[str, Item]:
        """Return a block of inherited traits, checked even if every event type overrides them."""
        if item is None or item.value is None:
            return {}
        if not isinstance(item.value, dict):
            self._mistakes.add(item, f"must be a mapping; allowed keys: {listing(keys)}")
            return {}
        given = self._known(item, keys)
        any_name = item.at("any")
        needed = {"priority": any_name, "route": any_name, "routing_key": any_name}
        validate(
            Traits, item.at(needed | {_FIELDS.get(key, key): entry for key, entry in given.items()}), self._mistakes
        )
        return given

    def _known(self, item: Item, keys: Iterable[str]) -> dict[str, Item]:
        """Return the entries that mean something and name what exists; note the others."""
        keys = tuple(keys)
        for key, entry in item.mapping.items():
            if key not in keys:
                self._mistakes.add(entry, unknown_key(key, keys))
        known = {key: entry for key, entry in item.mapping.items() if key in keys}
        self._exists(known.get("class"), "class", self._classes)
        self._exists(known.get("route"), "route", self._routes)
        return known

    def _exists(self, item: Item | None, kind: str, names: tuple[str, ...]) -> None:
        if item is None or not isinstance(item.value, str) or item.value in names:
            return
        if not names or self._mistakes.has(item):
            return  # said already: there is no class or route at all, or the name could not be read
        which = f"{kind} {quoted(item.shown)}" if item.shown else f"this {kind}"
        self._mistakes.add(item, f"{which} does not exist{nearest(item.value, names)} allowed: {listing(names)}")
