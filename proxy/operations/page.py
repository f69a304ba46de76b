"""GET /: one page without a figure, which asks for /stream; nothing foreign is loaded, and nothing can be.

Scripts and style stand in it, and its policy names them by their hash: whatever a name of the log holds stays text.
"""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_SCRIPTS = ("dom.js", "words.js", "model.js", "curves.js", "routes.js", "types.js", "actions.js", "link.js", "page.js")


@cache
def page() -> tuple[str, Mapping[str, str]]:
    """Return the page as HTML, and the headers it is served with."""
    style = _asset("page.css")
    script = "'use strict';\n" + "\n".join(_asset(name) for name in _SCRIPTS)
    text = _asset("page.html").replace("/*STYLE*/", style).replace("/*SCRIPT*/", script)
    policy = (
        f"default-src 'none'; connect-src 'self'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text, {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }


def _asset(name: str) -> str:
    return files("proxy.operations").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
