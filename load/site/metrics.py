"""The page of all metrics, read from the calls in `proxy` that make them: name, kind, labels, what it tells."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import proxy

KINDS = {"CounterMetricFamily": "counter", "GaugeMetricFamily": "gauge", "HistogramMetricFamily": "histogram"}
SOURCES = Path(proxy.__file__).parent

HEAD = """# Metrics

What `GET /metrics` of the admin address can tell, made from the code that tells it. [The admin
API](../admin-api.md#metrics) says which event types have series of their own, [What each alert
means](../alerts.md) which of these to act upon.

| metric | kind | labels | tells |
|---|---|---|---|
"""


@dataclass(frozen=True, order=True)
class Told:
    """One metric as /metrics has it; a counter's name ends with `_total`."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str


def metrics() -> list[Told]:
    """Return every metric by name."""
    return sorted(
        told for path in sorted(SOURCES.rglob("*.py")) for told in made_in(ast.parse(path.read_text("utf-8")))
    )


def made_in(tree: ast.AST) -> Iterator[Told]:
    """Yield what a module makes. Labels that stand in a variable are those of its last assignment in the module."""
    lists = {
        target.id: _texts(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (kind := KINDS.get(getattr(node.func, "id", ""))):
            name, text = (_texts(part)[0] if _texts(part) else "" for part in (*node.args[:2], ast.Constant(""))[:2])
            labels = next((word.value for word in node.keywords if word.arg == "labels"), None)
            found = lists.get(labels.id, ()) if isinstance(labels, ast.Name) else _texts(labels)
            yield Told(f"{name}_total" if kind == "counter" else name, kind, found, text)


def page() -> str:
    """Return the page."""
    rows = (
        f"| `{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {one.text} |"
        for one in metrics()
    )
    return HEAD + "\n".join(rows) + "\n"


def _texts(node: ast.AST | None) -> tuple[str, ...]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (node.value,)
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(text for part in node.elts for text in _texts(part))
    return ()
