"""What is generated from the declaration of the records."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from proxy.records import KINDS, Buckets, Envelope, Field, Part, fields_of

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENT = CHECKOUT / "docs" / "metric-log.md"
SNAPSHOT = Path(__file__).with_name("version_2.json")
_WORDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "whole number",
    float: "number",
    Buckets: "buckets",
    list[str]: "texts",
    dict[str, int]: "whole numbers by name",
    dict[str, int | None]: "whole numbers by name",
    dict[str, float]: "numbers by name",
}
_TABLE = re.compile(r"(<!-- fields of (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def parts() -> dict[str, type[Part]]:
    """Return everything that has fields and a name in the document."""
    return {"envelope": Envelope, **KINDS}


def flat(part: type[Part], prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield each field with its path, those of nested parts behind the one that holds them."""
    for field in fields_of(part):
        yield prefix + field.name, field
        inner, step = field.type, "."
        if get_origin(inner) is list:
            inner, step = get_args(inner)[0], "[]."
        elif get_origin(inner) is dict:
            inner, step = get_args(inner)[1], ".*."
        if isinstance(inner, type) and issubclass(inner, Part):
            yield from flat(inner, f"{prefix}{field.name}{step}")


def document(text: str) -> str:
    """Return the document with every table as it should be."""
    return _TABLE.sub(lambda found: found[1] + "\n".join(_rows(parts()[found[2]])) + "\n" + found[3], text)


def documented(text: str) -> list[str]:
    """Return the names of the parts that the document has a table of."""
    return [found[2] for found in _TABLE.finditer(text)]


def fields() -> dict[str, dict[str, str]]:
    """Return every field of every kind with its type."""
    return {name: {path: _word(field.type) for path, field in flat(part)} for name, part in parts().items()}


def write() -> None:
    """Write the tables, and into the snapshot what is new; what is gone from the declaration stays in it."""
    DOCUMENT.write_text(document(DOCUMENT.read_text()))
    kept = json.loads(SNAPSHOT.read_text()) if SNAPSHOT.exists() else {}
    for name, told in fields().items():
        kept[name] = told | kept.get(name, {})
    SNAPSHOT.write_text(json.dumps(kept, indent=1) + "\n")


def _rows(part: type[Part]) -> Iterator[str]:
    yield "| field | type | |"
    yield "|---|---|---|"
    for path, field in flat(part):
        mark = "*?*" * field.is_optional + " *since 2*" * field.is_added
        yield f"| `{path}`{mark} | {_word(field.type)} | {field.meaning} |"


def _word(kind: Any) -> str:
    if kind in _WORDS:
        return _WORDS[kind]
    return {list: "list", dict: "by name"}.get(get_origin(kind), "object")
