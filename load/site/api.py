"""The page of the HTTP API, from the document that the admin address serves."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"

HEAD = """# HTTP API

What the admin address serves, made from the same document that it serves at `/openapi.json` ([for
programs](../openapi.json)). [The admin API](../admin-api.md) says who may ask and what the fields mean.
"""


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield method, path and description of each operation."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def page() -> str:
    """Return the page."""
    lines = [HEAD]
    for method, path, operation in operations(json.loads(DOCUMENT.read_text("utf-8"))):
        lines += [f"\n## {method} {path}\n", operation["summary"], ""]
        if told := operation.get("parameters"):
            lines += ["| parameter | in | meaning |", "|---|---|---|"]
            lines += [f"| `{one['name']}` | {one['in']} | {one['description']} |" for one in told]
            lines.append("")
        lines += ["| answer | when |", "|---|---|"]
        lines += [f"| {code} | {answer.get('description', '')} |" for code, answer in operation["responses"].items()]
    return "\n".join(lines) + "\n"
