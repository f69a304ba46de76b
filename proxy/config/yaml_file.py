"""Reads one YAML file into items: nothing is constructed but texts, numbers, true, false and null."""

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path as FilePath

import yaml

from proxy.access.files import read_plain
from proxy.config.items import Item, Mistakes, Path, Scalar

FILE_BYTES = 4 * 1024**2
DEPTH = 32
VALUES = 200_000
"""Most values of one file after its anchors are expanded."""

_TAG = "tag:yaml.org,2002:"
_REFERENCE = re.compile(r"(?P<escape>\$\$\{)|\$\{(?P<inside>[^}]*)\}|(?P<open>\$\{)")
_VARIABLE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_CONSTRUCTED: dict[str, Callable[[str], Scalar]] = {
    "null": lambda _: None,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "int": int,
    "float": float,
}
_COLLECTIONS: dict[type[yaml.Node], str] = {yaml.MappingNode: f"{_TAG}map", yaml.SequenceNode: f"{_TAG}seq"}
_NO_UNICODE = "are no Unicode; allowed: what UTF-8 can carry"


class UnreadableError(Exception):
    """Nothing of the file can be used; the words say why, without quoting it."""

    def __init__(self, words: str, line: int = 1) -> None:
        super().__init__(words)
        self.line = line


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the plain values of YAML 1.2.

    `no`, `on`, `1:30` and `2024-01-31` are texts here, as whoever writes them means.
    """

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.depth == DEPTH:
            mark = parent.start_mark if parent else None
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {DEPTH} levels", problem_mark=mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver(f"{_TAG}null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF"))
_Loader.add_implicit_resolver(f"{_TAG}int", re.compile(r"[-+]?[0-9]+\Z"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    f"{_TAG}float",
    re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?\Z"),
    list("-+.0123456789"),
)
_Loader.add_implicit_resolver(f"{_TAG}merge", re.compile(r"<<\Z"), ["<"])


def read(file: FilePath, environ: Mapping[str, str], mistakes: Mistakes, without: Collection[str] = ()) -> Item | None:
    """Return the whole file as one item, an empty mapping if it is empty; None if nothing in it can be read.

    What stands under the keys `without` is passed over, and with it what would be wrong there.
    """
    mistakes.begin(str(file))
    try:
        node = _compose(read_text(file))
        return _Expansion(str(file), environ, mistakes, without).item(node, node.start_mark.line + 1, ())
    except UnreadableError as error:
        mistakes.add_line(str(file), error.line, str(error))
        return None


def read_text(file: FilePath) -> str:
    """Return the text of a UTF-8 file of at most `FILE_BYTES`. Raises `UnreadableError`."""
    try:
        data = read_plain(str(file), FILE_BYTES)
    except OSError as error:
        raise UnreadableError(f"can't be read: {error.strerror}") from error
    except ValueError as error:  # a null character
        raise UnreadableError("can't be read: no file can be called so") from error
    if len(data) > FILE_BYTES:
        raise UnreadableError(f"is too large; at most {FILE_BYTES} bytes; `include` takes a folder of further files")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableError("is not UTF-8; save the file in that encoding", line) from error


def _compose(text: str) -> yaml.Node:
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
    except yaml.reader.ReaderError as error:
        line, words = text.count("\n", 0, error.position) + 1, "holds a control character"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, words = (mark.line + 1 if mark else 1), _syntax(error, text.splitlines())
    except (ValueError, OverflowError):  # an escape or a version beyond any character or number
        line, words = (loader.line + 1 if loader else 1), "a number in an escape or a directive is out of range"
    else:
        return node or yaml.MappingNode(f"{_TAG}map", [], yaml.Mark("", 0, 0, 0, None, 0))
    raise UnreadableError(f"not valid YAML: {words}", line)


def _syntax(error: yaml.MarkedYAMLError, lines: list[str]) -> str:
    """Return what is wrong without quoting the file: the place may be a secret's."""
    problem = f"{error.context or ''} {error.problem or ''}"
    if "alias" in problem or "anchor" in problem:
        return "`*` and `&` begin anchors, and this one is unknown or given twice; quote a text that begins so"
    if "tag" in problem:
        return "`!` begins a tag, and there are none here; quote a text that begins so"
    if "'\\t'" in problem:
        return "a tab, which can't indent; write spaces"
    words = str(error.problem or error.context)  # quotes single characters and the names of tokens
    mark = error.problem_mark
    if mark and mark.line < len(lines) and "${" in lines[mark.line]:
        return words + '; inside [ ] and { } write "${NAME}" in quotes'
    return words


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


class _Expansion:
    """Turns nodes into items: follows anchors and merge keys, fills in the environment."""

    def __init__(self, file: str, environ: Mapping[str, str], mistakes: Mistakes, without: Collection[str]) -> None:
        self._without = without
        self._file = file
        self._environ = environ
        self._mistakes = mistakes
        self._values = 0
        self._depth = 0

    def item(self, node: yaml.Node, line: int, path: Path) -> Item:
        """Return what a node holds, with all that is within it."""
        self._enter()
        if node.tag != _COLLECTIONS.get(type(node), node.tag):
            place = Item(None, self._file, line, path)
            self._mistakes.add(place, "has a tag; allowed: plain mappings and lists")
        value: Scalar | dict[str, Item] | list[Item] = None
        shown = ""
        if isinstance(node, yaml.MappingNode):
            value = self._mapping(node, path)
        elif isinstance(node, yaml.SequenceNode):
            value = [self.item(entry, entry.start_mark.line + 1, (*path, i)) for i, entry in enumerate(node.value)]
        elif isinstance(node, yaml.ScalarNode):
            shown = node.value
            value = self._scalar(node, Item(None, self._file, line, path))
        self._depth -= 1
        return Item(value, self._file, line, path, shown)

    def _enter(self) -> None:
        self._values += 1
        self._depth += 1
        if self._values > VALUES:
            raise UnreadableError(f"holds more than {VALUES} values once its anchors are expanded")
        if self._depth > DEPTH:
            raise UnreadableError(f"nests deeper than {DEPTH} levels once its anchors are expanded")

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Item]:
        given: dict[str, Item] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            line = key.start_mark.line + 1
            place = Item(None, self._file, line, path)
            if key.tag == f"{_TAG}merge":
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
            elif not isinstance(key, yaml.ScalarNode):
                self._mistakes.add(place, "has a key that is a list or a mapping; allowed: a plain name")
            elif not _is_unicode(key.value):
                self._mistakes.add(place, f"has a key of characters that {_NO_UNICODE}")
            elif not path and key.value in self._without:
                continue
            elif key.value in given:
                first = given[key.value].line
                self._mistakes.add(place, f"is given twice, first in line {first}; keep one", key.value)
            else:
                given[key.value] = self.item(value, line, (*path, key.value))
        for inherited in merged:
            if isinstance(inherited, yaml.MappingNode):
                self._enter()  # a mapping that merges itself ends here
                for name, entry in self._mapping(inherited, path).items():
                    given.setdefault(name, entry)
                self._depth -= 1
            else:
                place = Item(None, self._file, inherited.start_mark.line + 1, path)
                self._mistakes.add(place, "`<<` merges mappings; allowed: *anchor or a list of them")
        return given

    def _scalar(self, node: yaml.ScalarNode, place: Item) -> Scalar:
        text, kind = node.value, node.tag.removeprefix(_TAG)
        if kind in _CONSTRUCTED:
            try:
                return _CONSTRUCTED[kind](text)
            except (ValueError, KeyError):  # an explicit tag, or more digits than Python takes
                self._mistakes.add(place, f"can't be read as {kind}; quote a text, write a number with fewer digits")
                return None
        if kind not in {"str", "merge"}:
            self._mistakes.add(place, "has a tag; allowed: plain texts, numbers, true, false, null, quoted if need be")
            return None
        filled = self._filled(text, place)
        if not _is_unicode(filled):
            self._mistakes.add(place, f"holds characters that {_NO_UNICODE}")
            return None
        return None if filled == "" and text and node.style is None else filled

    def _filled(self, text: str, place: Item) -> str:
        """Fill `${NAME}` and `${NAME:-default}` in; `$${` stands for `${` itself."""

        def value(match: re.Match[str]) -> str:
            """Return what stands for one of them."""
            if match["escape"]:
                return "${"
            variable = _VARIABLE.fullmatch(match["inside"] or "")
            if variable is None:
                self._mistakes.add(place, "has a bad `${`; allowed: ${NAME}, ${NAME:-default}, and $${ for ${ itself")
                return ""
            found = self._environ.get(variable["name"])
            if variable["default"] is not None:
                return found or variable["default"]
            if found is None:
                self._mistakes.add(
                    place, f"environment variable {variable['name']} is not set; set it or write ${{NAME:-default}}"
                )
            return found or ""

        return _REFERENCE.sub(value, text)
