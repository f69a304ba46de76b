"""The page of all settings: what config/tidegate.yaml says of each key, of those left out in it, too."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLE = CHECKOUT / "config" / "tidegate.yaml"
NAMED = {"routes", "classes", "event_types"}
"""Blocks whose entries have names of one's own."""
KEY = re.compile(r"(?P<indent> *)(?P<left_out>#?)(?P<key>[A-Za-z_][A-Za-z0-9_-]*):(?: (?P<value>.*))?")

HEAD = """# Settings

Every key of the settings file, made from `config/tidegate.yaml` of the sources, which tests hold to the code:
meaning, range, default, and what larger and smaller values do. `tidegate check -c FILE` names every mistake of
a file at once, with its line.

Durations are written `250ms`, `5s`, `10m`, `2h`, `7d`; sizes `512B`, `64KiB`, `4MiB`; secrets as a text,
`${NAME}` from the environment, or `{file: PATH}`. `*` stands for a name of your own.
"""


def documented(text: str) -> dict[str, tuple[str, str]]:
    """Return path -> (comment, value shown) of each line that sets a key, also of those left out by a `#`."""
    found: dict[str, tuple[str, str]] = {}
    comment: list[str] = []
    stack: list[str] = []
    for line in text.splitlines():
        if match := KEY.fullmatch(line):
            del stack[len(match["indent"]) // 2 :]
            stack.append("*" if len(stack) == 1 and stack[0] in NAMED else match["key"])
            found.setdefault(".".join(stack), (" ".join(comment), match["value"] or ""))
        stripped = line.strip()
        comment = [*comment, stripped[2:]] if stripped.startswith("# ") else []
    return found


def page() -> str:
    """Return the page: a heading for each block, a row for each key."""
    lines = [HEAD]
    open_table = ""
    for path, (comment, value) in documented(EXAMPLE.read_text("utf-8")).items():
        block, _, key = path.partition(".")
        if block != open_table:
            lines += [f"\n## {block}\n", _plain(comment), "\n| key | shown | meaning |", "|---|---|---|"]
            open_table = block
        if key and comment:
            shown = f"`{value}`" if value else ""
            lines.append(f"| `{path}` | {shown.replace('|', chr(92) + '|')} | {_plain(comment)} |")
        elif not key and value:
            lines.append(f"| `{path}` | `{value}` | {_plain(comment)} |")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Return a comment as Markdown that means itself."""
    return re.sub(r"([*_<|\[\]{])", r"\\\1", text) if "`" not in text else re.sub(r"([<|\[\]])", r"\\\1", text)
