"""What a running Tidegate tells of itself over HTTP."""

import http.client
import json
import urllib.request

ASK_SECONDS = 2.0


def owned(port: int) -> int:
    """Return how many partitions the Tidegate at this admin port reads; 0 while it does not answer or is not ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=ASK_SECONDS) as answer:
            return int(json.load(answer)["partitions"])
    except (OSError, http.client.HTTPException):
        return 0
