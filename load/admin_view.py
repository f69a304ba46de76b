"""What a running Tidegate tells of itself over HTTP."""

import http.client
import json
import re
import urllib.request
from typing import NamedTuple

ASK_SECONDS = 2.0


def owned(port: int) -> int:
    """Return how many partitions the Tidegate at this admin port reads; 0 while it does not answer or is not ready."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=ASK_SECONDS) as answer:
            return int(json.load(answer)["partitions"])
    except (OSError, http.client.HTTPException):
        return 0


class Held(NamedTuple):
    """What a process holds by its own count; None while it does not answer."""

    tasks: int | None
    """Of the event loop."""
    blocks: int | None
    """Of memory, as Python's allocator counts them."""


def held(port: int) -> Held:
    """Return what the Tidegate at this admin port holds."""
    text = _metrics(port)
    return Held(_gauge(text, "tidegate_tasks"), _gauge(text, "tidegate_memory_blocks"))


def lag(port: int) -> int:
    """Return how many events its partitions have before them; 0 while it does not answer."""
    return sum(
        int(float(value)) for value in re.findall(r"^tidegate_lag_events\{\S+ (\S+)", _metrics(port), re.MULTILINE)
    )


def wanted(port: int, route: str, queue: str) -> int | None:
    """Return how many consumers of a queue, or of all on its route, it wants; None if it does not know or answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/scaling", timeout=ASK_SECONDS) as answer:
            of_route = json.load(answer)["routes"].get(route, {"queues": {}})
    except (OSError, http.client.HTTPException):
        return None
    told = (of_route["queues"][queue] if of_route["queues"] else of_route).get("wanted_consumers")
    return None if told is None else int(told)


def _metrics(port: int) -> str:
    """Return what it tells Prometheus; nothing while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=ASK_SECONDS) as answer:
            return str(answer.read().decode())
    except (OSError, http.client.HTTPException):
        return ""


def _gauge(text: str, name: str) -> int | None:
    found = re.search(rf"^{name} (\S+)", text, re.MULTILINE)
    return int(float(found[1])) if found else None
