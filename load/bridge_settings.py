"""Settings of the Tidegate processes that are measured, written as the YAML that an operator would write."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from load.stack import Stack
from proxy.model import Order


@dataclass(frozen=True)
class Lane:
    """One event type that goes from one topic to one queue."""

    name: str
    topic: str
    queue: str
    order: Order = Order.PARTITION
    priority: str = "P1"


def write(
    file: Path,
    stack: Stack,
    group: str,
    lanes: list[Lane],
    *,
    in_flight: int | None,
    admin_port: int | None = None,
    limits: Mapping[str, Any] | None = None,
    policy: str = "static",
    amqp_port: int | None = None,
) -> Path:
    """Write the settings of one process, control off by default, metric log beside the file; return the file.

    One route for all queues, through the default exchange; None in flight: the window adapts. What is not named here is
    at its default.
    """
    folder = file.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "log": {"hosts": [stack.kafka], "group": group},
        "broker": {"hosts": [f"127.0.0.1:{amqp_port or stack.amqp_port}"]},
        "routes": {
            "queues": {
                "exchange": "",
                "queues": sorted({lane.queue for lane in lanes}),
                "policy": policy,
                "in_flight_events": in_flight,
            }
        },
        "event_types": {
            lane.name: {
                "topic": lane.topic,
                "class": lane.priority,
                "route": "queues",
                "routing_key": {"constant": lane.queue},
                "order": lane.order.value,
            }
            for lane in lanes
        },
        "limits": dict(limits or {}),
        "metric_log": {"folder": str(folder)},
        "admin": {"listen": None if admin_port is None else f"127.0.0.1:{admin_port}"},
    }
    file.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return file
