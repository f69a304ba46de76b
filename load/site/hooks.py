"""What mkdocs calls: adds the pages that are made from the code, the design pages' index and the changelog."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from load.site import api, commands, metrics, settings

CHECKOUT = Path(__file__).resolve().parents[2]
DESIGN = CHECKOUT / "docs" / "design"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made."""
    made = {
        "settings": settings.page(),
        "metrics": metrics.page(),
        "api": api.page(),
        "commands": commands.page(),
        "design": design_index(),
        "changes": changes((CHECKOUT / "CHANGELOG.md").read_text("utf-8")),
    }
    for name, text in made.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def design_index() -> str:
    """Return the list of all design pages."""
    lines = [
        "# Design pages\n",
        "Why things are as they are: question, choice, price, measurement. They speak to who changes the code.\n",
    ]
    for path in sorted(DESIGN.glob("*.md")):
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}](../design/{path.name})")
    return "\n".join(lines) + "\n"


def changes(text: str) -> str:
    """Return the changelog with its links as they are from its page."""
    return re.sub(r"\]\(docs/", "](../", text)
