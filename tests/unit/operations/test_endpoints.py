"""What is described is what is served, and the committed document is the one that is served."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import Metric

from proxy import __version__
from proxy.config import InForce
from proxy.operations import endpoints
from proxy.operations.admin import Admin
from proxy.operations.desk import Desk
from proxy.operations.endpoints import Endpoint
from proxy.operations.reload import Files, Reload
from proxy.settings import AdminSettings, Route
from tests.support.events import PARTITION, events
from tests.support.memory_board import MemoryBoard
from tests.support.process import Process, settings
from tests.support.schemas import misfit

DOCUMENT = Path("docs/openapi.json")


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


CHANGES = {("POST", "/interventions"), ("DELETE", "/interventions/{id}"), ("POST", "/reload")}
"""What changes something: `test_desk` asks it."""
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
    (endpoints.STREAM, "", 200),
    (endpoints.PAGE, "", 200),
    (endpoints.LIST, "", 200),
    (endpoints.OPENAPI, "", 200),
)


async def _none() -> Any:
    raise AssertionError("nobody asks for it here")


async def test_every_path_answers_as_described_when_a_process_runs() -> None:
    process = Process(routes={"r": Route(exchange="x", queues=("q1",))})
    admin = Admin(
        AdminSettings(listen="127.0.0.1:0"),
        status=process.app.status.ready,
        families=lambda: list[Metric | None](process.app.status.families()),
        scaling=process.app.steering.wanted.told,
        state=process.app.state.told,
        desk=Desk(settings, MemoryBoard()),
        reload=Reload(Files(_none, _none, b""), InForce(settings()), lambda _: None, wall=lambda: 0.0),
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
                for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
                    for path in {one.path for one in endpoints.ENDPOINTS}:
                        if (method, path) in CHANGES:
                            continue
                        async with client.request(method, path.format(id="a")) as answer:
                            assert (answer.status, answer.content_type) == (405, endpoints.JSON), f"{method} {path}"
    finally:
        serving.cancel()
        process.lane.finish()
        process.app.stop()
        await asyncio.gather(process.running, serving, return_exceptions=True)
    asked = {(endpoint.method, endpoint.path) for endpoint, _, _ in ASKED}
    assert asked | CHANGES == {(one.method, one.path) for one in endpoints.ENDPOINTS}
