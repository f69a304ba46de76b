"""Whether two reports say the same: what a change of speed must leave as it was.

    python -m load.same_report BEFORE AFTER

Both are folders that `tidegate report --out` wrote. Compared are the names of the tables, each table's columns with
their types, its rows in whatever order, and report.json but for the instant at which it was made. Numbers that are not
whole may differ by a millionth: sums of them depend on the order of adding.
"""

import json
import math
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from load.terminal import command_line, say

EXAMPLES = """\
example:
  tidegate report LOGS --out out/before        by the code before
  tidegate report LOGS --out out/after         by the code after
  python -m load.same_report out/before out/after

exit codes: 0 the same; 1 they differ, and in what; 2 one of them is no report
"""
CLOSE = 1e-6
SHOWN = 3
"""So many rows of a table that differ are shown."""


def is_close(one: Any, other: Any) -> bool:
    """Return whether two values, lists and objects among them, are the same but for the last digits of numbers."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_close(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_close, one, other))
    return type(one) is type(other) and bool(one == other)


def differences(before: Path, after: Path) -> Iterator[str]:
    """Yield in what two reports differ, one thing a line."""
    names = [{folder.name for folder in (out / "tables").iterdir()} for out in (before, after)]
    yield from (f"{name}: only before" for name in sorted(names[0] - names[1]))
    yield from (f"{name}: only after" for name in sorted(names[1] - names[0]))
    for name in sorted(names[0] & names[1]):
        yield from _of_table(name, before / "tables" / name, after / "tables" / name)
    told = [json.loads((out / "report.json").read_text("utf-8")) | {"made_at": ""} for out in (before, after)]
    yield from (f"report.json: {key}" for key in sorted(told[0].keys() ^ told[1].keys()))
    yield from (
        f"report.json: {key}"
        for key in sorted(told[0].keys() & told[1].keys())
        if not is_close(told[0][key], told[1][key])
    )


def _of_table(name: str, before: Path, after: Path) -> Iterator[str]:
    from pyarrow import dataset

    one, other = (dataset.dataset(folder, format="parquet").to_table() for folder in (before, after))
    columns = [[(field.name, str(field.type)) for field in table.schema] for table in (one, other)]
    if columns[0] != columns[1]:
        yield f"{name}: columns {columns[0]} became {columns[1]}"
        return
    pairs = zip_longest(*(sorted(table.to_pylist(), key=_place) for table in (one, other)))
    apart = [(row, changed) for row, changed in pairs if not is_close(row, changed)]
    if apart:
        yield f"{name}: {len(apart)} rows of {one.num_rows} differ ({other.num_rows} after)"
        yield from (f"  {row}\n  {changed}" for row, changed in apart[:SHOWN])


def _place(row: dict[str, Any]) -> list[tuple[str, str]]:
    """Return where a row stands among others: first by what is no fraction, as that is the same before and after."""
    whole = [(name, repr(value)) for name, value in row.items() if not isinstance(value, float)]
    return whole + [(name, f"{value:.9g}") for name, value in row.items() if isinstance(value, float)]


def main(argv: Sequence[str] | None = None) -> int:
    """Compare and print; return 0 if the reports say the same, 1 if they differ, 2 if one is none."""
    options = _parser().parse_args(argv)
    for folder in (options.before, options.after):
        if not (folder / "report.json").is_file():
            say(f"same_report: {folder}: no whole report is here; tidegate report writes one by --out {folder}")
            return 2
    found = list(differences(options.before, options.after))
    print("\n".join(found) or "the same")
    return 1 if found else 0


def _parser() -> ArgumentParser:
    parser = command_line("load.same_report", (__doc__ or "").splitlines()[0], EXAMPLES)
    for name in ("before", "after"):
        parser.add_argument(name, type=Path, metavar=name.upper(), help="a folder with a report")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
