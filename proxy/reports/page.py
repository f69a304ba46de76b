"""report.html: one page that needs nothing else, no network either.

What is found stands in it as JSON; assets/*.js draw it, with uPlot (assets/uplot) for the pictures. The policy in its
head lets the browser run and style just these and load nothing, whatever a log holds.
"""

import base64
import hashlib
from html import escape
from importlib.resources import files

from proxy.reports.figures import count, seconds
from proxy.reports.findings import Findings
from proxy.reports.page_document import document
from proxy.reports.summary import summary
from proxy.reports.tables import Row

PAGE_BYTES = 2_000_000
"""The page is not larger: rows of tables are left out first."""
_STYLES = ("uplot/uPlot.min.css", "page.css")
_SCRIPTS = ("figures.js", "dom.js", "pictures.js", "spectra.js", "heat.js", "tables.js", "episodes.js", "page.js")
_TERMS = (
    ("Bridge time", "event timestamp → confirm by RabbitMQ. Recorded by Tidegate."),
    ("Publish latency", "write → confirm. Recorded by Tidegate; blind to what waits behind the broker."),
    (
        "Time in queue",
        "what a message waits in RabbitMQ. Only to be estimated (queue delay: depth ÷ drain rate); not judged here.",
    ),
    ("Consumed time", "event timestamp → first consumption. From the consumers' own records only, never estimated."),
)


def page(found: Findings) -> str:
    """Return the whole page as HTML."""
    style = "\n".join(_asset(name) for name in _STYLES)
    library, script = (
        _asset("uplot/uPlot.iife.min.js"),
        "'use strict';\n" + "\n".join(_asset(name) for name in _SCRIPTS),
    )
    names = " · ".join(run["name"] for run in found.runs)
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(library)} {_hash(script)}"
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>Tidegate report: {escape(names)}</title><style>{style}</style></head>\n"
    )
    body = (
        f"<body><main><header><h1>Tidegate report</h1>{_targets(found)}{_runs(found)}</header>\n{_notices(found)}"
        '<nav id="contents" aria-label="Contents"></nav><noscript><p>Pictures and tables take JavaScript; '
        "the same figures are in report.json, report.png and tables/.</p></noscript>\n"
        f'<div id="report"></div>\n{_terms()}'
        f"<footer>Made {escape(found.made_at)} by <code>tidegate report</code>. All instants are UTC.</footer></main>\n"
    )
    code = f"<script>{library}</script>\n<script>{script}</script></body></html>\n"
    left = PAGE_BYTES - len((head + body + code).encode()) - 100
    data = f'<script type="application/json" id="data">{document(found, left)}</script>\n'
    return head + body + data + code


def _asset(name: str) -> str:
    return files("proxy.reports").joinpath("assets", *name.split("/")).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _targets(found: Findings) -> str:
    """Return whether each class kept what is promised of it, where something is."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in found.sentences)
    return f'<section id="targets"><h2>Targets</h2><ul>{items}</ul></section>' if items else ""


def _runs(found: Findings) -> str:
    """Return a card for each run: what it was, and what there is to say first."""
    cards = []
    for run in found.runs:
        said = "".join(f"<li>{_named(name)}{escape(text)}</li>" for name, text in summary(found, run["name"]))
        facts = " · ".join(_facts(run))
        cards.append(
            f'<article class="run"><h2>{escape(run["name"])}</h2><p class="note">{escape(facts)}</p><ul>{said}</ul>'
            "</article>"
        )
    return f'<div class="runs">{"".join(cards)}</div>'


def _named(name: str) -> str:
    return f"<b>{escape(name)}</b>: " if name else ""


def _facts(run: Row) -> list[str]:
    policies: dict[str, list[str]] = {}
    for route, had in run["policies"].items():
        policies.setdefault(", then ".join(had), []).append(route)
    processes = "1 process" if run["processes"] == 1 else f"{run['processes']} processes"
    told = [
        f"{run['started_at'][:19].replace('T', ' ')} UTC, {seconds(run['seconds'])}",
        f"{count(sum(run['records'].values()))} records of {processes}",
        f"Tidegate {', '.join(run['versions'])}" if run["versions"] else "",
        *(f"{', '.join(of)} under {policy}" for policy, of in policies.items()),
    ]
    return [fact for fact in told if fact]


def _notices(found: Findings) -> str:
    said = {f"{run['name']}: {name}: {text}" for run in found.runs for name, text in summary(found, run["name"])}
    told = [notice for notice in found.notices if notice not in said]
    if len(found.runs) == 1:
        told = [notice.removeprefix(f"{found.runs[0]['name']}: ") for notice in told]
    items = "".join(f"<li>{escape(notice)}</li>" for notice in told)
    if not items:
        return ""
    return f"<aside><strong>Before you believe the figures</strong><ul>{items}</ul></aside>\n"


def _terms() -> str:
    told = "".join(f"<dt>{name}</dt><dd>{escape(meaning)}</dd>" for name, meaning in _TERMS)
    return f'<section id="terms"><h2>What the times mean</h2><dl>{told}</dl></section>\n'
