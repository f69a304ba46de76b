"""What a running Tidegate tells of itself over HTTP."""

import http.client
import json
import re
import urllib.request

ASK_SECONDS = 2.0


def owned(port: int) -> int:
    """Return how many partitions the Tidegate at this admin port reads; 0 while it does not answer or is not ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=ASK_SECONDS) as answer:
            return int(json.load(answer)["partitions"])
    except (OSError, http.client.HTTPException):
        return 0


def tasks(port: int) -> int | None:
    """Return how many tasks the Tidegate at this admin port has; None while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=ASK_SECONDS) as answer:
            found = re.search(r"^tidegate_tasks (\d+)", answer.read().decode(), re.MULTILINE)
    except (OSError, http.client.HTTPException):
        return None
    return int(found[1]) if found else None
