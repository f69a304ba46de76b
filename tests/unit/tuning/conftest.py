"""Records as the bridge writes them, made by hand."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def interval() -> Make:
    """A `class` record of P1 at a second; changed as told."""

    def make(at: float, **changes: Any) -> dict[str, Any]:
        fields = {name.rstrip("_"): value for name, value in changes.items()}
        return {
            "kind": "class",
            "instance": "one",
            "at_ms": round(1000 * at),
            "interval_s": 1.0,
            "class": "P1",
            "received": 0,
            "received_bytes": 0,
            "confirmed": 0,
            "dead_lettered": {},
            "lag": 0,
            "ahead": 0,
            "lag_age_s": None,
            "bridge_us": {},
            **fields,
        }

    return make


@pytest.fixture
def verdict() -> Make:
    """A `verdict` record of route r under `class_budget`; changed as told."""

    def make(at: float, **changes: Any) -> dict[str, Any]:
        return {
            "kind": "verdict",
            "instance": "one",
            "at_ms": round(1000 * at),
            "route": "r",
            "errors": 0,
            "samples": 0,
            "depth": 0,
            "drain_rate": 100.0,
            "queue_delay_us": 0,
            **changes,
        }

    return make


@pytest.fixture
def route() -> Make:
    """A `route` record of route r; changed as told."""

    def make(at: float, **changes: Any) -> dict[str, Any]:
        return {
            "kind": "route",
            "instance": "one",
            "at_ms": round(1000 * at),
            "interval_s": 1.0,
            "route": "r",
            "state": "open",
            "confirmed": 0,
            "nacked": 0,
            "depth": 0,
            "consumers": 4,
            "queues": {"q": 0},
            "publish_us": {},
            **changes,
        }

    return make
