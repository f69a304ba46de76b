"""The result table on the terminal."""

from collections.abc import Sequence

from proxy.reports.figures import count, milliseconds
from proxy.reports.findings import Findings


def result_table(found: Findings) -> str:
    """Return a sentence for each target, then the counts and times of each class and run, as text."""
    names: tuple[str, ...]
    times: tuple[str, ...]
    if found.has_proof:
        names = ("produced", "delivered", "lost", "duplicated", "dead_lettered", "left_in_log")
        times = ("bridge", "consumed")
    else:
        names = ("received", "confirmed", "dead_lettered", "possible_duplicates", "overtaken")
        times = ("bridge",)
    head = ["class", "run", *(name.replace("_", " ") for name in names)]
    head += [f"{time} {figure}" for time in times for figure in ("P50", "P99", "P99.9", "max")]
    body = [
        [
            row["class"],
            row["run"],
            *(count(row[name]) for name in names),
            *(milliseconds(row[f"{time}_{figure}_ms"]) for time in times for figure in ("p50", "p99", "p999", "max")),
        ]
        for row in found.per_class
    ]
    lines = _aligned([head, *body])
    lines += ["", "bridge = bridge time (event timestamp → confirm)"]
    if found.has_proof:
        lines.append("consumed = consumed time (event timestamp → first consumption, by the consumers' own records)")
    lines += [f"note: {notice}" for notice in found.notices]
    return "\n".join(_harmless(line) for line in (*found.sentences, *([""] if found.sentences else []), *lines))


def _harmless(line: str) -> str:
    """Return a line without what would steer the terminal: names come from logs."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    left = 2
    return [
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
