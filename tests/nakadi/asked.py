"""What requests ask, checked: wrong JSON and wrong shapes are the client's fault, and are told."""

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.nakadi.event_types import Problem
from tests.nakadi.reading import Key
from tests.nakadi.stream import Parameters

WHOLE = ("batch_limit", "max_uncommitted_events", "stream_limit", "stream_keep_alive_limit")
SECONDS = ("batch_flush_timeout", "stream_timeout", "commit_timeout")
CURSOR = ("event_type", "partition", "offset")


async def body(request: web.Request) -> Any:
    """Return the JSON of a request."""
    try:
        return json.loads(await request.read())
    except ValueError as error:
        raise Problem(400, f"Could not read JSON: {error}") from None


async def mapping(request: web.Request) -> dict[str, Any]:
    """Return the JSON object of a request."""
    asked = await body(request)
    if not isinstance(asked, dict):
        raise Problem(422, "a JSON object was expected")
    return asked


async def cursors(request: web.Request, *, token: bool) -> list[dict[str, str]]:
    """Return the cursors of a request, with a token each if that is needed."""
    items = (await mapping(request)).get("items")
    needed = (*CURSOR, "cursor_token") if token else CURSOR
    if not isinstance(items, list):
        raise Problem(422, "items may not be null")
    for item in items:
        for name in needed:
            if not isinstance(item, dict) or not isinstance(item.get(name), str) or not item[name]:
                raise Problem(422, f"items: {name} may not be empty")
    return items


def parameters(told: Mapping[str, Any], partitions: Any = None) -> Parameters:
    """Return what a stream is asked for, by query or body."""
    values: dict[str, Any] = {}
    for name in (*WHOLE, *SECONDS):
        if name in told:
            try:
                values[name] = int(told[name])
            except (TypeError, ValueError):
                raise Problem(400, f"{name} must be a number, not {told[name]!r}") from None
    keys: list[Key] = []
    for each in partitions or []:
        if not isinstance(each, dict) or not all(isinstance(each.get(name), str) for name in CURSOR[:2]):
            raise Problem(422, "partitions: event_type and partition may not be null")
        keys.append((each["event_type"], each["partition"]))
    return Parameters(**values, partitions=tuple(keys))
