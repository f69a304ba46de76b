"""What the page is made from, as one document: assets/*.js read it, and nothing else."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from proxy.reports.findings import Findings
from proxy.reports.page_columns import Column, PageTable
from proxy.reports.page_pictures import Part, grid, heat, pictures, spectra
from proxy.reports.page_tables import EPISODE_VERDICTS, PER_CLASS, PROVEN, TABLES, UNPROVEN
from proxy.reports.tables import Row

ROW_LIMITS = (10_000, 5_000, 2_000, 1_000, 500, 200, 100, 50)
"""At most so many rows of a table stand on the page: the first of these with which it is small enough."""
_SHOWN_THOUGH_NOUGHT = {"lost", "duplicated", "dead_lettered", "difference", "partition", "first", "left", "right"}


def document(found: Findings, bytes_left: int) -> str:
    """Return the page's document as JSON in which no markup can begin, at most `bytes_left` long if that is possible.

    Rows of tables are left out until it is; the page says how many, and Parquet has them all.
    """
    points = grid(found)
    shares, drawn = spectra(found)
    rest = {
        "runs": [{"name": run["name"], "start_ms": _ms(run["started_at"])} for run in found.runs],
        "classes": found.classes,
        "width_s": points.width_s,
        "first": points.first,
        "points": points.points,
        "end_s": max(*(run["seconds"] for run in found.runs), (points.first + points.points) * points.width_s),
        "pictures": pictures(found, points),
        "shaded": [[[row["from_s"], row["to_s"]] for row in found.of("episodes", run=r["name"])] for r in found.runs],
        "heat": heat(found),
        "shares": shares,
        "spectra": drawn,
    }
    for limit in ROW_LIMITS:
        text = _as_text({**rest, "tables": _tables(found, limit), "verdicts": _verdicts(found, limit)})
        if len(text.encode()) <= bytes_left:
            break
    return text


def _as_text(value: Any) -> str:
    """Return JSON that may stand in a script element: whatever could end that, or begin another, is an escape in it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _ms(instant: str) -> int:
    return round(datetime.fromisoformat(instant).timestamp() * 1000)


def _tables(found: Findings, limit: int) -> list[Part]:
    episodes = [table for table in TABLES if table.name == "episodes"]
    others = [table for table in TABLES if table.name != "episodes"]
    per_class = PageTable(PER_CLASS, "per_class", PROVEN if found.has_proof else UNPROVEN, is_open=True)
    told = [
        _table(table, found.tables[table.name], found.totals[table.name], limit, len(found.runs))
        for table in (*episodes, *others)
        if found.tables.get(table.name)
    ]
    first = 1 if found.of("episodes") else 0
    told.insert(first, _table(per_class, found.per_class, len(found.per_class), limit, len(found.runs)))
    return told


def _table(table: PageTable, rows: Sequence[Row], total: int, limit: int, runs: int = 1) -> Part:
    nought = [column for column in table.columns if _says_nothing(column, rows)]
    columns = [column for column in table.columns if column not in nought and (runs > 1 or column[0] != "run")]
    titles = ", ".join(title.replace("|", " ") for _, title, kind in nought if kind != "text")
    return {
        "name": table.name,
        "title": table.title,
        "note": table.note,
        "open": table.is_open,
        "remark": f"0 or not known in every row: {titles}." if titles else "",
        "columns": [_column(column) for column in columns],
        "rows": [[row[field] for field, _, _ in columns] for row in rows[:limit]],
        "total": total,
    }


def _says_nothing(column: Column, rows: Sequence[Row]) -> bool:
    field, _, kind = column
    nothing = (None, "") if kind == "text" or field in _SHOWN_THOUGH_NOUGHT else (None, "", 0)
    return all(row[field] in nothing and row[field] is not False for row in rows)


def _column(column: Column) -> Part:
    field, title, kind = column
    group, _, heading = title.rpartition("|")
    alarm = field in {"lost", "difference"}
    return {"field": field, "title": heading, "group": group, "kind": kind, "alarm": alarm}


def _verdicts(found: Findings, limit: int) -> dict[str, Part]:
    """Return the verdicts of each episode, known by run, route and the instant it began."""
    episodes: dict[str, list[Row]] = {}
    for row in found.of("episode_verdicts")[: 2 * limit]:
        episodes.setdefault("\n".join((row["run"], row["route"], _number(row["from_s"]))), []).append(row)
    return {key: _table(EPISODE_VERDICTS, rows, rows[0]["of"], len(rows)) for key, rows in episodes.items()}


def _number(value: float) -> str:
    """Return a number as JavaScript writes it."""
    return str(int(value)) if value == int(value) else repr(value)
