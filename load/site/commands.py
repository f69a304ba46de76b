"""The page of all commands: what each says of itself under `--help`."""

import os
import re
import subprocess
import sys

HEAD = """# Commands

What each command says of itself. Exit codes: 0 done, 1 something nobody expected, 2 a mistake that you can mend.
"""
SECONDS = 60.0
WIDTH = "110"


def names(told: str) -> list[str]:
    """Return the commands that `tidegate --help` names, in its order."""
    listed = told.partition("examples:")[0]
    return re.findall(r"^    ([a-z]+)(?=  | *$)", listed, re.MULTILINE)


def page() -> str:
    """Return the page. Raises `subprocess.CalledProcessError` when a command has no help."""
    first = _help()
    parts = [HEAD, f"```text\n{first}\n```\n"]
    parts += [f"## tidegate {name}\n\n```text\n{_help(name)}\n```\n" for name in names(first)]
    return "\n".join(parts)


def _help(*command: str) -> str:
    environment = os.environ | {"COLUMNS": WIDTH, "NO_COLOR": "1"}
    run = [sys.executable, "-m", "proxy", *command, "--help"]
    done = subprocess.run(run, check=True, capture_output=True, text=True, timeout=SECONDS, env=environment)
    return done.stdout.strip()
