"""Puts the settings together from their files: the main one, the included ones, the secrets."""

from collections.abc import Collection, Mapping
from pathlib import Path as FilePath

from proxy.access.files import password_in, read_file
from proxy.config.items import Item, Mistakes, find, listing
from proxy.config.yaml_file import read
from proxy.errors import SecretError

INCLUDED_KEYS = ("routes", "classes", "event_types")
"""What an included file may add to."""
INCLUDED_FILES = 1_000
SECRETS = (
    ("broker", "password"),
    ("broker", "management", "password"),
    ("log", "security", "password"),
    ("admin", "token"),
    ("notices", "webhook", "key"),
)
"""Settings that may be given as `{file: PATH}` and are never quoted."""
TOKENS = (("broker", "token"), ("log", "security", "token"), ("log", "nakadi", "token"))
"""Settings with a `file` that is relative to the settings file, as those of the secrets are."""


def gather(
    file: FilePath, environ: Mapping[str, str], mistakes: Mistakes, without: Collection[str] = ()
) -> Item | None:
    """Return what all files say together but under the keys `without`; None if the main file can't be read."""
    root = read(file, environ, mistakes, without)
    if root is None:
        return None
    if root.value is None or root.value == {}:
        mistakes.add(root, "is empty; log, broker, routes and event_types are needed: begin with config/minimal.yaml")
        return None
    if not isinstance(root.value, dict):
        mistakes.add(root, "the file must be a mapping, like `log: {...}`")
        return None
    given = {key: entry for key, entry in root.mapping.items() if entry.value is not None}
    include = given.pop("include", None)
    for secret in SECRETS:
        _fill_secret(root.at(given), secret, file.parent, mistakes)
    for token in TOKENS:
        _place_file(root.at(given), token, file.parent)
    if include is not None:
        for part in _included(include, file.parent, mistakes):
            addition = read(part, environ, mistakes)
            if addition is not None:
                _merge(given, addition, mistakes)
    return root.at(given)


def included_folder(file: FilePath, environ: Mapping[str, str]) -> FilePath | None:
    """Return the folder whose files a settings file includes, if it names one and can be read."""
    root = read(file, environ, Mistakes())
    include = root.mapping.get("include") if root is not None else None
    named = include.value if include is not None else None
    return file.parent / named if isinstance(named, str) and named else None


def is_included(file: FilePath) -> bool:
    """Return whether a file of the folder counts: not one that is hidden, as editors leave them."""
    return file.suffix in {".yaml", ".yml"} and not file.name.startswith(".")


def _included(include: Item, folder: FilePath, mistakes: Mistakes) -> list[FilePath]:
    if not isinstance(include.value, str) or not include.value:
        mistakes.add(include, "is no folder; allowed: the path of one, relative to this file")
        return []
    try:
        found = sorted(part for part in (folder / include.value).iterdir() if is_included(part))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no folder can be called so"
        mistakes.add(include, f"can't be read: {reason}; allowed: a folder, relative to this file")
        return []
    if len(found) > INCLUDED_FILES:
        mistakes.add(include, f"holds {len(found)} files; allowed: at most {INCLUDED_FILES}")
    return found[:INCLUDED_FILES]


def _merge(given: dict[str, Item], addition: Item, mistakes: Mistakes) -> None:
    if not isinstance(addition.value, dict):
        mistakes.add(addition, f"the file must be a mapping; allowed keys: {listing(INCLUDED_KEYS)}")
    for key, entry in addition.mapping.items():
        if key not in INCLUDED_KEYS:
            mistakes.add(entry, f"belongs into the main file; allowed in an included one: {listing(INCLUDED_KEYS)}")
        elif entry.value is None:
            continue
        elif not isinstance(entry.value, dict):
            mistakes.add(entry, "must be a mapping from names")
        elif key not in given:
            given[key] = entry
        elif isinstance(given[key].value, dict):
            given[key] = given[key].at(_joined(given[key].mapping, entry.mapping, mistakes))


def _joined(first: dict[str, Item], second: dict[str, Item], mistakes: Mistakes) -> dict[str, Item]:
    joined = dict(first)
    for name, entry in second.items():
        before = joined.setdefault(name, entry)
        if before is not entry:
            mistakes.add(entry, f"is already defined at {before.file}:{before.line}; keep one")
    return joined


def _fill_secret(root: Item, secret: tuple[str, ...], folder: FilePath, mistakes: Mistakes) -> None:
    holder, left = find(root, secret[:-1])
    entry = holder.mapping.get(secret[-1])
    if left or entry is None or entry.value is None:
        return
    value = entry.value
    if isinstance(value, dict) and set(value) == {"file"}:
        _check_secret(entry, value["file"].value, folder, mistakes)
        _place_file(root, secret, folder)
    elif isinstance(value, str):
        holder.mapping[secret[-1]] = entry.at(value)
    else:
        mistakes.add(entry, "must be a text (a number in quotes), ${NAME} or {file: PATH}")
        holder.mapping[secret[-1]] = entry.at("")


def _check_secret(entry: Item, name: object, folder: FilePath, mistakes: Mistakes) -> None:
    if not isinstance(name, str) or not name:
        mistakes.add(entry, "has no file; allowed: {file: PATH}, the path relative to this file")
        return
    try:
        password_in(read_file, str(folder / name))
    except SecretError as error:
        mistakes.add(entry, f"the secret's file {error}")


def _place_file(root: Item, path: tuple[str, ...], folder: FilePath) -> None:
    """Make the path of a secret's file independent of where this process runs; a bad one is left for the models."""
    holder, left = find(root, (*path, "file"))
    if not left and isinstance(holder.value, str) and holder.value:
        entry, _ = find(root, path)
        entry.mapping["file"] = holder.at(str(folder / holder.value))
