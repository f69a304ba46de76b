"""The first page that a newcomer follows: each command of docs/start.md, as it stands there, one after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from load.stack import Stack
from load.stack.ports import choose

pytestmark = pytest.mark.timeout(150)

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "start.md").read_text("utf-8")
ELSEWHERE = ("make setup", "load.stack")
"""What this test has already: the environment, and the brokers (tests of the stack try these commands)."""
PORT = "8080"


def commands() -> list[str]:
    """Return the page's blocks of commands."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    return [block for block in blocks if not any(word in block for word in ELSEWHERE)]


def test_an_event_comes_through_and_everything_ends_well_when_the_page_is_followed(
    stack: Stack, tmp_path: Path
) -> None:
    port = str(choose(["admin"])["admin"])
    script = "set -euo pipefail\n" + "\n".join(commands()).replace(f":{PORT}", f":{port}")
    script = script.replace("docs/examples", str(CHECKOUT / "docs" / "examples"))
    done = subprocess.run(
        ["bash", "-c", script], check=False, capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env=os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "KAFKA": stack.kafka, "AMQP": stack.amqp, "AMQP_HOST": f"127.0.0.1:{stack.amqp_port}",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + (tmp_path / "first.log").read_text()
    assert re.search(r'^order-confirmed-\d-\d+-\w+ \{"order": 4711\} ', done.stdout, re.MULTILINE), done.stdout
    assert re.search(r'^tidegate_confirmed_events_total\{class="P1"\} ', done.stdout, re.MULTILINE)
    assert '"order-confirmed"' in done.stdout
