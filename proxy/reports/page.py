"""report.html: one page that needs nothing else, no network either."""

import base64
import json
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Any

from proxy.reports.charts import Charts, Graph
from proxy.reports.figures import count, plain, seconds
from proxy.reports.findings import Findings
from proxy.reports.page_style import STYLE
from proxy.reports.page_tables import PROVEN, TABLES, UNPROVEN, Column
from proxy.reports.tables import Row

ROWS_SHOWN = 100
"""So many rows of a table stand on the page; report.json and the Parquet files have more."""

_TERMS = (
    ("Bridge time", "event timestamp → confirm by RabbitMQ. Recorded by Tidegate."),
    ("Publish latency", "write → confirm. Recorded by Tidegate; blind to what waits behind the broker."),
    (
        "Time in queue",
        "what a message waits in RabbitMQ. Only to be estimated (queue delay: depth ÷ drain rate); not judged here.",
    ),
    ("Consumed time", "event timestamp → first consumption. From the consumers' own records only, never estimated."),
)


def page(found: Findings, charts: Charts) -> str:
    """Return the whole page as HTML."""
    runs = " · ".join(run["name"] for run in found.runs)
    parts = [
        f"<header><h1>Tidegate report</h1><p class=runs>{escape(runs)}</p>{_runs(found)}</header>",
        _sentences(found),
        _notices(found),
        _section(
            "Per class",
            _table(PROVEN if found.has_proof else UNPROVEN, found.per_class, groups="class"),
            "Each class side by side in every run.",
        ),
        _section("Over time", "".join(_graph(charts, graph) for graph in charts.graphs), _graph_note(found)),
        _section("What the times mean", _terms()),
        *_tables(found),
        f"<footer>Made {escape(found.made_at)} by <code>tidegate report</code>. All instants are UTC.</footer>",
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Tidegate report: {escape(runs)}</title><style>{STYLE}</style></head>\n<body><main>\n{body}\n"
        "</main></body></html>\n"
    )


def _section(title: str, content: str, note: str = "") -> str:
    lead = f"<p class=note>{escape(note)}</p>" if note else ""
    return f"<section><h2>{escape(title)}</h2>{lead}{content}</section>"


def _runs(found: Findings) -> str:
    cards = []
    for run in found.runs:
        policies = {route: told["policy"] for route, told in json.loads(run["routes"] or "{}").items()}
        facts = [
            f"{run['started_at'][:19].replace('T', ' ')} UTC, {seconds(run['seconds'])}",
            f"{count(sum(run['records'].values()))} records of {run['processes']} process(es)"
            + (f", Tidegate {', '.join(run['versions'])}" if run["versions"] else ""),
            ", ".join(f"route {route}: {policy}" for route, policy in policies.items()),
        ]
        lines = "".join(f"<li>{escape(fact)}</li>" for fact in facts if fact)
        cards.append(f"<div class=card><h3>{escape(run['name'])}</h3><ul>{lines}</ul></div>")
    return f"<div class=cards>{''.join(cards)}</div>"


def _sentences(found: Findings) -> str:
    if not found.sentences:
        return ""
    return _section("Targets", f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in found.sentences)}</ul>")


def _notices(found: Findings) -> str:
    if not found.notices:
        return ""
    items = "".join(f"<li>{escape(notice)}</li>" for notice in found.notices)
    return f"<aside><strong>Before you believe the figures</strong><ul>{items}</ul></aside>"


def _graph_note(found: Findings) -> str:
    return (
        f"One point stands for {found.width_s} s. Depth is the most seen in it, bridge time the percentiles of what "
        "was confirmed in it, backlog the last known. Runs share their axes; shaded: the route was judged congested."
    )


def _graph(charts: Charts, graph: Graph) -> str:
    picture = base64.b64encode(charts.svg(graph)).decode()
    title = escape(graph.title)
    image = f'<img alt="{title}" src="data:image/svg+xml;base64,{picture}">'
    return f"<figure><figcaption>{title}</figcaption>{image}</figure>"


def _terms() -> str:
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{escape(meaning)}</dd>" for name, meaning in _TERMS) + "</dl>"


def _tables(found: Findings) -> Iterable[str]:
    for table in TABLES:
        if rows := found.tables.get(table.name):
            more = found.totals[table.name] - ROWS_SHOWN
            tail = f"<p class=note>{more:,} more rows in tables/{table.name}.</p>" if more > 0 else ""
            yield _section(table.title, _table(table.columns, rows[:ROWS_SHOWN]) + tail, table.note)


def _table(columns: Sequence[Column], rows: Sequence[Row], groups: str | None = None) -> str:
    numeric = {field for field, _, write in columns if write is not plain}
    head = "".join(
        f"<th{_number(field in numeric)}>{escape(title.rpartition('|')[2])}</th>" for field, title, _ in columns
    )
    body = []
    before = None
    for row in rows:
        first = groups and row[groups] != before
        before = row[groups] if groups else None
        cells = "".join(
            f"<td{_number(field in numeric)}{_alarm(field, row[field])}>{escape(write(row[field]))}</td>"
            for field, _, write in columns
        )
        body.append(f"<tr{' class=first' if first else ''}>{cells}</tr>")
    header = f"<thead>{_groups(columns)}<tr>{head}</tr></thead>"
    return f"<div class=scroll><table>{header}<tbody>{''.join(body)}</tbody></table></div>"


def _groups(columns: Sequence[Column]) -> str:
    """Return a row of common headings above those that have one."""
    groups = [(group, len(list(same))) for group, same in groupby(title.rpartition("|")[0] for _, title, _ in columns)]
    if not any(group for group, _ in groups):
        return ""
    return "<tr>" + "".join(f"<th class=g colspan={size}>{escape(group)}</th>" for group, size in groups) + "</tr>"


def _number(numeric: bool) -> str:
    return " class=n" if numeric else ""


def _alarm(field: str, value: Any) -> str:
    return ' data-alarm=""' if field in {"lost", "difference"} and value else ""
