"""The form of every JSON answer of the admin address, and of what it is asked, as JSON Schema."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def _object(**fields: Schema) -> Schema:
    """Return an object that has all of these fields and no others."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _by_name(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _or_null(schema: Schema) -> Schema:
    kind = schema["type"]
    return {**schema, "type": [*([kind] if isinstance(kind, str) else kind), "null"]}


OBJECT: Schema = {"type": "object"}
_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}
_TRUTH: Schema = {"type": "boolean"}

ERROR = _object(error=_TEXT)

ALIVE = _object(alive=_TRUTH)
STUCK = _object(alive=_TRUTH, stuck=_by_name(_TEXT))

READY = _object(
    ready=_TRUTH,
    routes=_by_name(_TEXT),
    event_types=_WHOLE,
    log_reached=_TRUTH,
    unread_types=_list(_TEXT),
    outside_group=_or_null(_TEXT),
    partitions=_WHOLE,
    standing_partitions=_WHOLE,
    standing=_by_name(_TEXT),
    stopped_types=_list(_TEXT),
    waiting_types=_by_name(_TEXT),
    missing_queues=_list(_TEXT),
)

_LANE = _object(state=_TEXT, in_flight=_WHOLE, window=_WHOLE, oldest_s=_NUMBER)
_QUEUE = _object(ready=_or_null(_WHOLE), consumers=_or_null(_WHOLE), delay_s=_or_null(_NUMBER))
_VERDICT = _object(
    at_ms=_WHOLE,
    congested=_or_null(_TRUTH),
    cause=_TEXT,
    why=_TEXT,
    hot=_list(_TEXT),
    queue_delay_s=_or_null(_NUMBER),
    ruled_by=_or_null(_TEXT),
    drain_rate=_or_null(_NUMBER),
    rates=_or_null(_by_name(_NUMBER)),
)
_ROUTE = _object(
    policy=_TEXT,
    shadow=_TRUTH,
    types=_WHOLE,
    lane=_LANE,
    publish_p50_s=_or_null(_NUMBER),
    verdict=_or_null(_VERDICT),
    congested_lately=_or_null(_TEXT),
    decisions=_list(_VERDICT),
    queues=_by_name(_QUEUE),
)
_CLASS = _object(
    types=_WHOLE,
    rate=_or_null(_NUMBER),
    confirmed=_WHOLE,
    lag=_or_null(_WHOLE),
    lag_age_s=_or_null(_NUMBER),
    waiting=_or_null(_WHOLE),
    catching_up=_or_null(_WHOLE),
)
_TYPE = _object(
    **{"class": _TEXT},
    route=_TEXT,
    topic=_TEXT,
    partitions=_WHOLE,
    mode=_TEXT,
    cap=_or_null(_NUMBER),
    awaits=_or_null(_TEXT),
    inbox_events=_WHOLE,
    inbox_bytes=_WHOLE,
    batch_size=_or_null(_NUMBER),
    paused=_TRUTH,
    dead_letters=_WHOLE,
    lag_age_s=_or_null(_NUMBER),
    retention_left_s=_or_null(_NUMBER),
    retention_s=_or_null(_NUMBER),
    retention_near=_WHOLE,
    goes_as=_TEXT,
)
STATE = _object(
    version=_TEXT,
    instance=_TEXT,
    at_ms=_WHOLE,
    settings_refused=_list(_TEXT),
    routes=_by_name(_ROUTE),
    dead_letters=_LANE,
    classes=_by_name(_CLASS),
    types=_by_name(_TYPE),
    types_in_all=_WHOLE,
    next=_or_null(_TEXT),
)

_ANSWER = _object(id=_TEXT, instance=_TEXT, member=_TEXT, types=_WHOLE, at_ms=_WHOLE, has_ended=_TRUTH)
INTERVENTION = _object(
    id=_TEXT,
    mode=_TEXT,
    types=_list(_TEXT),
    classes=_list(_TEXT),
    by=_TEXT,
    why=_or_null(_TEXT),
    at_ms=_WHOLE,
    until_ms=_WHOLE,
    ended_by=_or_null(_TEXT),
    ended_why=_or_null(_TEXT),
    rate=_or_null(_NUMBER),
    routes=_list(_TEXT),
    policy=_or_null(_TEXT),
    replicas=_list(_object(id=_TEXT, host=_TEXT, answer=_or_null(_ANSWER))),
    silent=_list(_TEXT),
)
INTERVENTIONS = _object(interventions=_list(INTERVENTION))
RELOADED = _object(
    result=_TEXT,
    added=_TEXT,
    removed=_TEXT,
    changed=_by_name(_list(_TEXT)),
    changed_types=_WHOLE,
    patterns=_TRUTH,
    parts=_list(_TEXT),
    changed_parts=_WHOLE,
)
NOT_RELOADED = _object(error=_TEXT, why=_list(_TEXT), mistakes=_WHOLE)
_NAMES: Schema = {"type": ["string", "array"], "items": _TEXT}
ASKED: Schema = {
    "type": "object",
    "properties": {
        "mode": _TEXT,
        "type": {**_NAMES, "description": "An event type, or several."},
        "class": {**_NAMES, "description": "A class, or several."},
        "rate": {**_NUMBER, "description": "Of a cap: events a second that all it names may send, in the group."},
        "route": {**_NAMES, "description": "Of a policy: a route, or several, in place of types and classes."},
        "policy": {**_TEXT, "description": "Of a policy: static, per_type or class_budget."},
        "for": {
            "type": ["string", "number"],
            "description": "For how long, like 10m or 2h, or a number of seconds; at most 7d.",
        },
        "until": {**_TEXT, "description": "Instead: a time of RFC 3339, with its zone."},
        "why": _TEXT,
        "who": {**_TEXT, "description": "Who asks; what is proved of them stands before it."},
    },
    "required": ["mode"],
    "additionalProperties": False,
}
"""What is asked, not answered; `intervention_request` says what is wrong with one."""
