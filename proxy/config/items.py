"""Values that know where in the files they stand, and the list of mistakes that names those places."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

Scalar = str | int | float | bool | None
Path = tuple[str | int, ...]

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_QUOTED_CHARACTERS = 80
SHOWN = 200
"""Most mistakes that are listed; of the others only their number."""


@dataclass(frozen=True, slots=True)
class Item:
    """One value of a settings file."""

    value: "Scalar | dict[str, Item] | list[Item]"
    file: str
    line: int
    """Counted from 1; the line of its key where it has one."""
    path: Path
    """Keys and list indices from the top of the file."""
    shown: str = ""
    """The text as the file writes it, before any `${...}` is filled in; empty if no message may quote it."""

    def at(self, value: "Scalar | dict[str, Item] | list[Item]") -> "Item":
        """Return another value that stands at the same place and is never quoted."""
        return replace(self, value=value, shown="")

    @property
    def mapping(self) -> "dict[str, Item]":
        """The entries; none if this is no mapping."""
        return self.value if isinstance(self.value, dict) else {}


def plain(item: Item) -> object:
    """Return the value without its places, as YAML alone would give it."""
    if isinstance(item.value, dict):
        return {key: plain(entry) for key, entry in item.value.items()}
    if isinstance(item.value, list):
        return [plain(entry) for entry in item.value]
    return item.value


def find(item: Item, path: Sequence[str | int]) -> tuple[Item, Sequence[str | int]]:
    """Follow the path as far as the file goes; return the last item found and what is left of the path."""
    for depth, key in enumerate(path):
        entries: dict[str | int, Item] = dict(enumerate(item.value) if isinstance(item.value, list) else ())
        entries.update(item.mapping.items())
        if key not in entries:
            return item, path[depth:]
        item = entries[key]
    return item, ()


def quoted(text: str) -> str:
    """Return a text of the file in quotes, on one line and of bounded length."""
    cut = text if len(text) <= _QUOTED_CHARACTERS else text[:_QUOTED_CHARACTERS] + "..."
    return json.dumps(cut)


def printable(text: str) -> str:
    """Return a line in which whatever a terminal would obey or hide is written as an escape."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def path_text(path: Iterable[str | int]) -> str:
    """Return `event_types.brand-alert.topics[2]`; names with other characters stand in quotes."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += ("." if text else "") + (key if _PLAIN_NAME.fullmatch(key) else quoted(key))
    return text


class Mistakes:
    """Everything that is wrong with the files, each place and reason once."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int, str], None] = {}
        self._files: dict[str, int] = {}
        self._places: set[tuple[str, int, Path]] = set()

    def begin(self, file: str) -> None:
        """Give the file its place in the list: mistakes are listed in the order in which files are begun."""
        self._files.setdefault(file, len(self._files))

    def add(self, place: Item, words: str, *keys: str | int) -> None:
        """Note a mistake at an item, or at a key that it lacks."""
        self._places.add((place.file, place.line, (*place.path, *keys)))
        path = path_text((*place.path, *keys))
        self.add_line(place.file, place.line, f"{path}: {words}" if path else words)

    def has(self, place: Item) -> bool:
        """Tell whether the item itself is known to be wrong, so that what follows from it need not be said."""
        return (place.file, place.line, place.path) in self._places

    def has_within(self, place: Item) -> bool:
        """Tell whether something in the item is known to be wrong: how much it holds can't be judged then."""
        depth = len(place.path)
        return any(
            file == place.file and len(path) > depth and path[:depth] == place.path for file, _, path in self._places
        )

    def add_line(self, file: str, line: int, words: str) -> None:
        """Note a mistake where there is no item."""
        self.begin(file)
        text = printable(" ".join(f"{file}:{line}: {words}".splitlines()))
        self._found[self._files[file], line, text] = None

    def listed(self) -> list[str]:
        """Return one line per mistake, in the order of the files and their lines; the first `SHOWN` of them."""
        found = sorted(self._found)
        lines = [text for _, _, text in found[:SHOWN]]
        if len(found) > SHOWN:
            number, line, _ = found[SHOWN]
            file = next(name for name, begun in self._files.items() if begun == number)
            lines.append(printable(f"{file}:{line}: and {len(found) - SHOWN} more mistakes from here on"))
        return lines


def complaint(error: Exception) -> str:
    """Return an error as a command tells it: a line for each of its own."""
    return "\n".join(printable(f"tidegate: {line}") for line in str(error).splitlines())


def listing(names: Iterable[str] | Mapping[str, object], limit: int = 20) -> str:
    """Return names separated by commas, the first `limit` of them."""
    every = list(names)
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more
