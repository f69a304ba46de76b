"""What a producer sends: an array of events, checked, given the server's metadata and a partition each."""

import json
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from tests.nakadi import views
from tests.nakadi.event_types import EventType, Problem

DEEPEST = 1_000_000
"""Bytes an event may have."""


def sort(event_type: EventType, events: Any, flow_id: str, now: float) -> dict[int, list[bytes]]:
    """Return by partition what is to be kept, or raise a Problem: of a batch all is taken or nothing."""
    if not isinstance(events, list) or not events:
        raise Problem(422, "an array of events was expected")
    found: dict[int, list[bytes]] = {}
    for event in events:
        if not isinstance(event, dict):
            raise Problem(422, "an event is a JSON object")
        number = _partition(event_type, event)
        if event_type.category != "undefined":
            _enrich(event_type, event, number, flow_id, now)
        kept = json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()
        if len(kept) > DEEPEST:
            raise Problem(422, f"Event is larger than {DEEPEST} bytes")
        found.setdefault(number, []).append(kept)
    return found


def _enrich(event_type: EventType, event: dict[str, Any], number: int, flow_id: str, now: float) -> None:
    metadata = event.get("metadata")
    if not isinstance(metadata, dict) or not all(
        isinstance(metadata.get(name), str) for name in ("eid", "occurred_at")
    ):
        raise Problem(422, "#/metadata: eid and occurred_at are required")
    metadata |= {
        "event_type": event_type.name,
        "partition": str(number),
        "received_at": views.moment(now),
        "flow_id": flow_id,
        "version": "1.0.0",
    }


def _partition(event_type: EventType, event: dict[str, Any]) -> int:
    many = len(event_type.partitions)
    if event_type.partition_strategy == "user_defined":
        named = _at(event, ["metadata", "partition"])
        if not isinstance(named, str) or not named.isdecimal() or int(named) >= many:
            raise Problem(422, "Failed to resolve partition: metadata.partition is none of the event type's")
        return int(named)
    if event_type.partition_strategy == "hash":
        values = [_at(event, _path(event_type, name)) for name in event_type.partition_key_fields]
        return crc32(json.dumps(values).encode()) % many
    event_type.turn += 1
    return event_type.turn % many


def _path(event_type: EventType, name: str) -> list[str]:
    path = name.split(".")
    return ["data", *path] if event_type.category == "data" and path[0] != "metadata" else path


def _at(event: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(event, dict) or name not in event:
            raise Problem(422, f"Failed to resolve partition: {'.'.join(path)} is missing")
        event = event[name]
    return event
