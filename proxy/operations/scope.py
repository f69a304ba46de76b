"""Which event types and classes a person means, checked against the settings."""

from collections.abc import Sequence
from typing import NamedTuple

from proxy import config
from proxy.config.items import listing, printable, quoted
from proxy.config.words import nearest
from proxy.errors import SettingsError
from proxy.settings import Settings


class Scope(NamedTuple):
    """Names of event types and of classes, or of routes; at least one, none twice."""

    types: tuple[str, ...]
    classes: tuple[str, ...]
    routes: tuple[str, ...] = ()


def class_of(settings: Settings, event_type: str) -> str | None:
    """Return the class of an event type, None if the settings make none of this name."""
    named = settings.event_types.get(event_type)
    if named is None and event_type not in settings.by_topic:
        named = config.event_type_for(settings, event_type)
    return None if named is None else named.priority


BY_OPTION = "say which event types are meant, by --type NAME or --class NAME; both may be repeated"


def checked(
    settings: Settings,
    types: Sequence[str],
    classes: Sequence[str],
    needed: str = BY_OPTION,
    routes: Sequence[str] = (),
) -> Scope:
    """Return the names given, none twice. Raises `SettingsError` with a line for each that the settings don't know.

    `needed` is what is said if none is given.
    """
    mistakes = []
    if not types and not classes and not routes:
        mistakes.append(needed)
    for name in types:
        if class_of(settings, name) is None:
            patterns = [pattern.pattern for pattern in settings.patterns]
            mistakes.append(_unknown("event type", name, list(settings.event_types), patterns))
    mistakes += [
        _unknown("class", name, list(settings.classes), []) for name in classes if name not in settings.classes
    ]
    mistakes += [_unknown("route", name, list(settings.routes), []) for name in routes if name not in settings.routes]
    if mistakes:
        raise SettingsError(mistakes)
    return Scope(*(tuple(dict.fromkeys(names)) for names in (types, classes, routes)))


def _unknown(kind: str, name: str, known: list[str], patterns: list[str]) -> str:
    matching = f", and what matches {listing(patterns)}" if patterns else ""
    return printable(f"{kind} {quoted(name)} does not exist{nearest(name, known)} allowed: {listing(known)}{matching}")
