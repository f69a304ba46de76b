"""The client of the management API against a server that answers as it likes."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from proxy.access import management_access
from proxy.bridge.broker import QueueInsight
from proxy.errors import BrokerError
from proxy.rabbitmq import management
from proxy.rabbitmq.management import RabbitManagement
from proxy.settings import BrokerSettings, Management

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
BUSY = {
    "messages_ready": 3,
    "messages_unacknowledged": 40,
    "message_stats": {
        "ack": 900,
        "ack_details": {"rate": 30.0},
        "deliver_details": {"rate": 35.5},
        "deliver_no_ack_details": {"rate": 2.0},
    },
}


@asynccontextmanager
async def asking(handler: Handler, *, virtual_host: str = "/", **chosen: str) -> AsyncIterator[RabbitManagement]:
    """Serve the handler on a free port and give a client of it."""
    app = web.Application()
    app.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    broker = BrokerSettings(hosts=["127.0.0.1:5672"], username="bridge", virtual_host=virtual_host)
    settings = Management.model_validate({"url": f"http://127.0.0.1:{port}/", **chosen})
    client = RabbitManagement(broker, settings, management_access(broker, settings))
    try:
        yield client
    finally:
        await client.close()
        await client.close()
        await runner.cleanup()


async def test_few_queues_are_asked_for_by_name_when_they_are_odd_as_well() -> None:
    seen = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.raw_path.split("?")[0], request.headers["Authorization"]))
        return web.json_response(BUSY) if "100" in request.path else web.json_response({}, status=404)

    async with asking(handler, virtual_host="a/b") as client:
        found = await client.ask(["100%/ü", "gone"])
    assert found == {"100%/ü": QueueInsight(3, 40, 900), "gone": None}
    login = "Basic YnJpZGdlOmd1ZXN0"
    assert sorted(seen) == [("/api/queues/a%2Fb/100%25%2F%C3%BC", login), ("/api/queues/a%2Fb/gone", login)]


async def test_many_queues_are_asked_for_in_one_listing() -> None:
    paths = []

    async def handler(request: web.Request) -> web.Response:
        paths.append(request.raw_path.split("?")[0])
        assert "messages_unacknowledged" in request.query["columns"]
        return web.json_response([{"name": f"q{number}", **BUSY} for number in range(90)] + [{"name": "new"}])

    queues = [f"q{number}" for number in range(100)] + ["new"]
    async with asking(handler, username="watcher", password="secret") as client:
        found = await client.ask(queues)
    assert paths == ["/api/queues/%2F"]
    assert list(found) == queues
    assert [queue for queue, insight in found.items() if insight is None] == queues[90:]


@pytest.mark.parametrize("more", [{}, {"message_stats": []}, {"message_stats": {"ack_details": []}}], ids=str)
async def test_nothing_was_acknowledged_yet_when_a_queue_has_no_statistics(more: dict[str, object]) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response({"messages_ready": 5, "messages_unacknowledged": 0, **more})

    async with asking(handler) as client:
        assert await client.ask(["q"]) == {"q": QueueInsight(5, 0, 0)}


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (401, "{}", "refuses 'bridge'"),
        (403, "{}", "tag `management`"),
        (500, "{}", "status 500"),
        (302, "", "status 302"),
        (200, "<html>", "something else than queues"),
        (200, "[1]", "something else than queues"),
        (200, '{"messages_unacknowledged": "many"}', "something else than queues"),
        (200, '{"messages_unacknowledged": 1, "message_stats": 7}', "something else than queues"),
        (200, json.dumps("x" * 2000), "more than 1000 bytes"),
    ],
)
async def test_the_answer_is_refused_with_its_reason_when_it_is_no_list_of_queues(
    status: int, body: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(management, "ANSWER_BYTES", 1000)

    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body, headers={"Location": "/elsewhere"} if status == 302 else None)

    async with asking(handler) as client:
        with pytest.raises(BrokerError) as caught:
            await client.ask(["q"])
    assert why in str(caught.value)
    assert "guest" not in str(caught.value)


@pytest.mark.parametrize("body", ["[" * 200_000, '{"messages_unacknowledged": 1e400}'], ids=["deep", "endless"])
async def test_the_answer_is_refused_when_it_is_beyond_what_can_be_read(body: str) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(text=body)

    async with asking(handler) as client:
        with pytest.raises(BrokerError, match="something else than queues"):
            await client.ask(["q"])


async def test_the_question_ends_in_time_when_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(management, "DEADLINE", 0.2)
    asked = 0

    async def handler(_: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        if asked == 1:
            await asyncio.sleep(1)
        return web.json_response(BUSY)

    async with asking(handler) as client, asyncio.timeout(2):
        with pytest.raises(BrokerError, match=r"no answer within 0.2 s"):
            await client.ask(["q"])
        assert (await client.ask(["q"]))["q"] is not None


async def test_the_refusal_names_the_host_when_nobody_listens() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response(BUSY)

    async with asking(handler) as client:
        pass
    with pytest.raises(BrokerError, match=r"http://127\.0\.0\.1:\d+: "):
        await client.ask(["q"])
    await client.close()


@pytest.mark.parametrize("url", ["localhost:15672", "ftp://host", "http://user:secret@host", "http://host/?a=1"])
def test_a_url_is_refused_when_it_is_not_one_of_an_api(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        Management(url=url)


def test_a_login_is_refused_when_half_of_it_is_missing() -> None:
    with pytest.raises(ValueError, match="go together"):
        Management(url="http://host:15672", username="watcher")
