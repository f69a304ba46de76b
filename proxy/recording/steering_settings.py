"""The settings that steer, as a record tells them, so that what was recorded can be replayed as it was steered."""

import json
from typing import Any

from proxy.settings import DEFAULT_CLASSES, PriorityClass, Settings

PARTS = ("class_budget", "throttling", "statistics", "detector", "retention", "limits")
OF_BROKER = {"depth_interval", "depth_polls"}
OF_ROUTE = {
    *("policy", "law", "shadow", "cap", "message_priority"),
    *("in_flight_events", "in_flight_bound", "in_flight_bytes"),
}
"""Nothing else of broker and routes is told: hosts, logins and names are not for a log that many may read."""
OF_CLASS = set(PriorityClass.model_fields) - {"slo"}
"""A target steers nothing; `start` has it in a field of its own."""


def steering_settings(settings: Settings) -> str:
    """Return what steers and is set otherwise than by default, as JSON, in the form of the settings file."""
    told: dict[str, Any] = {name: _told(getattr(settings, name)) for name in PARTS}
    told["broker"] = _told(settings.broker, OF_BROKER)
    told["routes"] = {name: own for name, route in settings.routes.items() if (own := _told(route, OF_ROUTE))}
    classes, usual = (
        {name: _told(one, OF_CLASS) for name, one in every.items()} for every in (settings.classes, DEFAULT_CLASSES)
    )
    if classes != usual:
        told["classes"] = classes
    return json.dumps({name: part for name, part in told.items() if part}, separators=(",", ":"))


def _told(part: Any, fields: set[str] | None = None) -> dict[str, Any]:
    told: dict[str, Any] = part.model_dump(mode="json", include=fields, exclude_defaults=True)
    return told
