"""How things look in JSON."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.nakadi.event_types import EventType, Problem
from tests.nakadi.reading import Key
from tests.nakadi.subscription import Result, Subscription

TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


def moment(seconds: float) -> str:
    """Return a time as RFC 3339 has it, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def problem(refused: Problem) -> dict[str, Any]:
    """Return why a request was refused."""
    return {
        "type": f"https://httpstatus.es/{refused.status}",
        "title": TITLES.get(refused.status, "Refused"),
        "status": refused.status,
        "detail": refused.detail,
    }


def event_type(told: EventType) -> dict[str, Any]:
    """Return an event type."""
    return {
        "name": told.name,
        "owning_application": told.owning_application,
        "category": told.category,
        "partition_strategy": told.partition_strategy,
        "partition_key_fields": told.partition_key_fields,
        "cleanup_policy": told.cleanup_policy,
        "compatibility_mode": "forward",
        "enrichment_strategies": [] if told.category == "undefined" else ["metadata_enrichment"],
        "options": {"retention_time": told.retention_ms},
        "schema": {"type": "json_schema", "schema": "{}", "version": "1.0.0"},
        "default_statistic": {
            "messages_per_minute": 1,
            "message_size": 1,
            "read_parallelism": len(told.partitions),
            "write_parallelism": len(told.partitions),
        },
        "created_at": moment(told.created_at),
        "updated_at": moment(told.created_at),
    }


def partition(told: EventType, name: str) -> dict[str, str]:
    """Return a partition of an event type, with the offsets of the oldest event kept and of the newest there was."""
    log = told.partition(name)
    return {
        "partition": name,
        "oldest_available_offset": log.offset(log.first),
        "newest_available_offset": log.offset(log.end - 1),
    }


def subscription(told: Subscription) -> dict[str, Any]:
    """Return a subscription."""
    return {
        "id": told.id,
        "owning_application": told.owning_application,
        "event_types": sorted(told.event_types),
        "consumer_group": told.consumer_group,
        "read_from": told.read_from,
        "created_at": moment(told.created_at),
        "updated_at": moment(told.created_at),
    }


def cursors(told: Subscription) -> dict[str, Any]:
    """Return what is committed."""
    items = [
        {"event_type": key[0], "partition": key[1], "offset": offset, "cursor_token": "none"}
        for key, offset in told.cursors().items()
    ]
    return {"items": items}


def commits(asked: Sequence[Mapping[str, str]], results: Sequence[Result]) -> dict[str, Any]:
    """Return what became of each cursor."""
    return {
        "items": [{"cursor": dict(cursor), "result": result} for cursor, result in zip(asked, results, strict=True)]
    }


def stats(told: Subscription, now: float, *, show_time_lag: bool) -> dict[str, Any]:
    """Return where every partition is; lag only of what was ever read, seconds only if asked for."""
    items = []
    for name, each in told.event_types.items():
        views = [
            _stats(told, (name, str(number)), now, seconds=show_time_lag) for number in range(len(each.partitions))
        ]
        items.append({"event_type": name, "partitions": views})
    return {"items": items}


def _stats(told: Subscription, key: Key, now: float, *, seconds: bool) -> dict[str, Any]:
    part = told.parts.get(key)
    if part is None:
        return {"partition": key[1], "state": "unassigned"}
    view: dict[str, Any] = {"partition": key[1], "state": "unassigned"}
    first = max(part.committed, part.log.first)
    view["unconsumed_events"] = part.log.end - first
    if seconds:
        view["consumer_lag_seconds"] = int(now - part.log.published_at(first)) if first < part.log.end else 0
    if part.stream is not None:
        view["state"] = "assigned" if part.heir is None else "reassigning"
        view["stream_id"] = part.stream.id
        view["assignment_type"] = "direct" if key in part.stream.parameters.partitions else "auto"
    return view
