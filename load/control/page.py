"""The page of a comparison: every scenario with its table and its curves."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from load.control.comparison import Compared
from load.control.results import remarks, rows

STYLE = """
body { margin: 0 auto; max-width: 1240px; padding: 2rem 1.25rem; color: #22303c; background: #f4f6f8;
  font: 15px/1.5 system-ui, sans-serif; }
section { margin-top: 1.1rem; padding: 1.1rem 1.25rem; background: #fff; border: 1px solid #dfe5ea;
  border-radius: 8px; }
h2 { margin: 0; font-size: 1.15rem; }
p { margin: 0.3rem 0 0.7rem; color: #5b6b79; }
table { border-collapse: collapse; width: 100%; font-size: 0.88rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.55rem; text-align: right; border-bottom: 1px solid #dfe5ea; }
th:first-child, td:first-child { text-align: left; }
.missed { color: #b3400a; font-weight: 600; }
.met { color: #00694d; font-weight: 600; }
img { width: 100%; margin-top: 0.8rem; }
"""


def page(about: Mapping[str, Any], every: Sequence[Compared], pictures: Mapping[str, Path]) -> str:
    """Return the page; `pictures` by scenario, named as seen from it."""
    machine = about["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    where = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB. {versions}."
    shared = "Brokers, Tidegate, producer and consumers share this machine."
    sections = [_section(compared, pictures.get(compared.scenario.name)) for compared in every]
    body = f"<h1>Control on real brokers</h1><p>{escape(where)} {shared}</p>{''.join(sections)}"
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Control on real brokers</title>'
        f"<style>{STYLE}</style>\n<body>{body}</body></html>\n"
    )


def _section(compared: Compared, picture: Path | None) -> str:
    scenario = compared.scenario
    begin = f"<section><h2>{escape(scenario.name)}</h2><p>{escape(scenario.why)}</p>"
    if compared.skipped is not None:
        return f"{begin}<p>Skipped: {escape(compared.skipped)}</p></section>"
    heading, *body = rows(compared)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    lines = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in body)
    notes = "".join(f"<p>{escape(note)}</p>" for note in [*remarks(compared), *compared.faults()])
    seen = "" if picture is None else f'<img src="{escape(str(picture))}" alt="curves of {escape(scenario.name)}">'
    return f"{begin}<table><tr>{head}</tr>{lines}</table>{notes}{seen}</section>"


def _cell(text: str) -> str:
    mark = {"met": ' class="met"', "MISSED": ' class="missed"'}.get(text, "")
    return f"<td{mark}>{escape(text)}</td>"
