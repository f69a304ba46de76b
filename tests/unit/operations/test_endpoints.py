"""What is described is what is served, and the committed document is the one that is served."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import Metric

from proxy import __version__
from proxy.operations import endpoints
from proxy.operations.admin import Admin
from proxy.operations.endpoints import Endpoint
from proxy.settings import AdminSettings, Route
from tests.support.events import PARTITION, events
from tests.support.process import Process

DOCUMENT = Path("docs/openapi.json")
KINDS: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def test_the_committed_document_is_the_one_that_is_served() -> None:
    committed = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    assert committed == endpoints.document(__version__), "write it anew: python -m proxy.operations.endpoints > " + str(
        DOCUMENT
    )


def test_operations_have_names_of_their_own_and_every_answer_a_meaning() -> None:
    names = [one.name for one in endpoints.ENDPOINTS]
    assert len(set(names)) == len(names)
    for one in endpoints.ENDPOINTS:
        assert one.summary.endswith(".")
        assert all(told.meaning.endswith(".") for told in one.told.values())


def misfit(schema: Mapping[str, Any], value: object, place: str = "answer") -> str:
    """Return where a value is not of a form; "" if it is."""
    allowed = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    is_number_by_name = isinstance(value, bool) and "boolean" not in allowed
    if is_number_by_name or not any(isinstance(value, KINDS[kind]) for kind in allowed):
        return f"{place} is {value!r}, no {allowed}"
    if isinstance(value, list) and "items" in schema:
        return next((bad for one in value if (bad := misfit(schema["items"], one, f"{place}[]"))), "")
    if isinstance(value, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        if missing := set(schema.get("required", ())) - value.keys():
            return f"{place} lacks {missing}"
        for name, one in value.items():
            form = fields.get(name, others)
            if form is False:
                return f"{place} has {name}, which is not described"
            if form and (bad := misfit(form, one, f"{place}.{name}")):
                return bad
    return ""


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"type": "integer"}, True, "answer is True"),
        ({"type": ["integer", "null"]}, "1", "answer is '1'"),
        ({"type": "object", "required": ["a"]}, {}, "answer lacks {'a'}"),
        ({"type": "object", "additionalProperties": False}, {"a": 1}, "answer has a"),
        (
            {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}},
            [{"a": 1}],
            "answer[].a",
        ),
    ],
)
def test_what_does_not_fit_is_seen(schema: dict[str, Any], value: object, words: str) -> None:
    assert misfit(schema, value).startswith(words)


ASKED: tuple[tuple[Endpoint, str, int], ...] = (
    (endpoints.HEALTH, "", 200),
    (endpoints.READY, "", 200),
    (endpoints.METRICS, "", 200),
    (endpoints.SCALING, "", 200),
    (endpoints.SCALING, "?route=none", 404),
    (endpoints.STATE, "", 200),
    (endpoints.STATE, "?after=m", 200),
    (endpoints.STATE, "?type=orders&type=news.a", 200),
    (endpoints.STATE, "?type=none", 404),
    (endpoints.STATE, "?tpye=orders", 400),
    (endpoints.OPENAPI, "", 200),
)


async def test_every_path_answers_as_described_when_a_process_runs() -> None:
    process = Process(routes={"r": Route(exchange="x", queues=("q1",))})
    admin = Admin(
        AdminSettings(listen="127.0.0.1:0"),
        status=process.app.status.ready,
        families=lambda: list[Metric | None](process.app.status.families()),
        scaling=process.app.steering.wanted.told,
        state=process.app.state.told,
    )
    serving = asyncio.create_task(admin.run())
    try:
        async with asyncio.timeout(20):
            while PARTITION.topic not in process.app.assignment.listeners or admin.port is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            process.log.paused |= set(process.app.assignment.on_assigned([PARTITION]))
            process.log.fetched = {PARTITION: events(0, 3)}
            while not process.app.totals.verdicts or not process.app.totals.of_classes:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            async with aiohttp.ClientSession(f"http://127.0.0.1:{admin.port}") as client:
                for endpoint, query, status in ASKED:
                    async with client.get(endpoint.path + query) as answer:
                        told = endpoint.told[answer.status]
                        assert (answer.status, answer.content_type) == (status, told.content), endpoint.path
                        if told.schema is not None:
                            assert misfit(told.schema, await answer.json()) == ""
                for method in ("POST", "PUT", "DELETE", "PATCH"):
                    for endpoint in endpoints.ENDPOINTS:
                        async with client.request(method, endpoint.path) as answer:
                            assert answer.status == 405, f"{method} {endpoint.path}"
    finally:
        serving.cancel()
        process.app.stop()
        await asyncio.gather(process.running, serving, return_exceptions=True)
    assert {endpoint for endpoint, _, _ in ASKED} == set(endpoints.ENDPOINTS)
