"""Settings files -> frozen settings, or every mistake in them at once, each with its place and what is allowed.

    files ─► yaml_file (items that know their line) ─► event_types (inheritance) ─► words (pydantic, in our words)
                                                                                  ├► checks (across the parts)
                                                                                  └► access_checks (files, tokens)

The form of the files is described key by key in `config/tidegate.yaml`.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from proxy.config.access_checks import Inspection, check_access
from proxy.config.checks import check, check_topics
from proxy.config.difference import Difference, difference
from proxy.config.event_types import resolve
from proxy.config.files import gather
from proxy.config.in_force import InForce
from proxy.config.items import Item, Mistakes
from proxy.config.kinds import event_type_for
from proxy.config.logs import demand_board
from proxy.config.source import Source
from proxy.config.summary import as_json, describe, warnings
from proxy.config.words import allowed, allowed_in, known, unknown_key, validate
from proxy.errors import SettingsError
from proxy.settings import DEFAULT_CLASSES, Part, PriorityClass, Route, Settings
from proxy.settings.parts import Name

__all__ = [
    "Difference",
    "InForce",
    "Inspection",
    "Source",
    "as_json",
    "demand_board",
    "describe",
    "difference",
    "event_type_for",
    "load",
    "warnings",
]

P = TypeVar("P", bound=Part)

_NAMES: TypeAdapter[str] = TypeAdapter(Name)
_PARTS: dict[str, Any] = {
    name: field
    for name, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Part)
}
_KEYS = ("include", *(name for name in Settings.model_fields if name != "patterns"), "defaults")


def load(
    path: Path, environ: Mapping[str, str], inspection: Inspection | None = None, without: Collection[str] = ()
) -> Settings:
    """Return the settings that the file, and what it includes, describes.

    `environ` fills `${NAME}` in; certificates, keys and tokens are looked into only with an `inspection`. Blocks
    `without` which a command does are not read, so that it needs none of their variables and files: their defaults
    stand, and of a block that has none nothing is there. Raises `SettingsError` with every mistake, one line each, and
    nothing else, whatever the files hold.
    """
    mistakes = Mistakes()
    root = gather(path, environ, mistakes, without)
    if root is None:
        raise SettingsError(mistakes.listed())
    for key, entry in root.mapping.items():
        if key not in _KEYS:
            mistakes.add(entry, unknown_key(key, _KEYS))
    parts = _parts(root, mistakes, without)
    routes = _named(root, "routes", Route, mistakes)
    classes = _named(_with_default_classes(root), "classes", PriorityClass, mistakes)
    resolved = resolve(root, mistakes)
    check(root, parts, routes, classes, mistakes)
    check_topics(parts, resolved.topics, mistakes)
    if inspection is not None:
        check_access(root, inspection, mistakes)
    found = mistakes.listed()
    if found:
        raise SettingsError(found)
    given: dict[str, Any] = {**parts, "routes": routes, "classes": classes, "event_types": resolved.event_types}
    return Settings(**given, patterns=tuple(resolved.patterns))


def _parts(root: Item, mistakes: Mistakes, without: Collection[str]) -> dict[str, Part]:
    """Return the parts that every file has one of, as far as they are known; those left out with their defaults."""
    parts = {}
    for name, field in _PARTS.items():
        if name in without and field.is_required():
            parts[name] = known(field.annotation, root.at({}), Mistakes())
            continue
        if name not in root.mapping and field.is_required():
            mistakes.add(root, f"is missing; allowed: {allowed_in(field)}", name)
            continue
        item = root.mapping.get(name, root.at({}))
        parts[name] = validate(field.annotation, item, mistakes) or known(field.annotation, item, mistakes)
    return parts


def _named(root: Item, key: str, model: type[P], mistakes: Mistakes) -> dict[str, P]:
    """Return the parts of a mapping from names, as far as they are known."""
    given = root.mapping.get(key)
    if given is not None and given.value and not isinstance(given.value, dict):
        mistakes.add(given, f"must be a mapping; allowed: names, each {allowed(model)}")
        return {}
    if given is None or not given.mapping:
        mistakes.add(
            given or root, f"at least one is needed; allowed: names, each {allowed(model)}", *([] if given else [key])
        )
        return {}
    parts = {}
    for name, entry in given.mapping.items():
        try:
            _NAMES.validate_python(name)
        except ValidationError:
            mistakes.add(entry, f"can't be called so; allowed: {allowed(Name)}")
        parts[name] = validate(model, entry, mistakes) or known(model, entry, mistakes)
    return parts


def _with_default_classes(root: Item) -> Item:
    """Fill in what the file leaves out of P1 to P3, or of the classes altogether; leave `events` to the types."""
    given = root.mapping.get("classes", root.at({name: root.at({}) for name in DEFAULT_CLASSES}))
    if given.value and not isinstance(given.value, dict):
        return root.at({"classes": given})
    classes = {}
    for name, entry in given.mapping.items():
        default = DEFAULT_CLASSES.get(name)
        filled = (
            {key: entry.at(value) for key, value in default.model_dump(exclude_unset=True).items()} if default else {}
        )
        filled |= {key: value for key, value in entry.mapping.items() if key != "events"}
        classes[name] = entry.at(filled) if entry.value is None or isinstance(entry.value, dict) else entry
    return root.at({"classes": given.at(classes)})
