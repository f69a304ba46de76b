"""The bus by HTTP, on real sockets."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import aiohttp
import pytest

from tests.nakadi.bus import Bus
from tests.nakadi.face import Face, serve
from tests.nakadi.mischief import Mischief
from tests.nakadi.streaming import Manners

DEADLINE = 10.0
NUMBERED = b'{"n":%d}'


class Client:
    """Speaks to one server."""

    def __init__(self, bus: Bus, mischief: Mischief, session: aiohttp.ClientSession, url: str) -> None:
        self.bus = bus
        self.mischief = mischief
        self.session = session
        self.url = url

    async def ask(self, method: str, path: str, what: Any = None, **more: Any) -> tuple[int, Any]:
        async with self.session.request(method, self.url + path, json=what, **more) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text.startswith(("{", "[")) else text

    async def subscribe(self, *names: str, **more: Any) -> str:
        asked = {"owning_application": "tests", "event_types": list(names), "read_from": "begin"} | more
        status, told = await self.ask("POST", "/subscriptions", asked)
        assert status in {200, 201}, told
        return f"/subscriptions/{told['id']}"

    @asynccontextmanager
    async def open(self, subscription: str, **asked: int) -> AsyncIterator[aiohttp.ClientResponse]:
        asked = {"batch_flush_timeout": 1} | asked
        async with self.session.get(f"{self.url}{subscription}/events", params=asked) as answer:
            assert answer.status == 200, await answer.text()
            yield answer

    async def commit(self, subscription: str, stream: aiohttp.ClientResponse, line: Any) -> tuple[int, Any]:
        told = {"X-Nakadi-StreamId": stream.headers["X-Nakadi-StreamId"]}
        return await self.ask("POST", f"{subscription}/cursors", {"items": [line["cursor"]]}, headers=told)


@asynccontextmanager
async def client(manners: Manners | None = None) -> AsyncIterator[Client]:
    bus, mischief = Bus(Random(1)), Mischief(Random(1))
    runner, (host, port) = await serve(Face(bus, time.time, mischief, manners), "127.0.0.1", 0)
    try:
        async with asyncio.timeout(DEADLINE), aiohttp.ClientSession() as session:
            yield Client(bus, mischief, session, f"http://{host}:{port}")
    finally:
        await runner.cleanup()


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 -- within the client's deadline
        await asyncio.sleep(0.01)


async def line(stream: aiohttp.ClientResponse) -> Any:
    return json.loads(await stream.content.readline())


async def test_events_are_read_and_committed_when_a_client_keeps_the_rules() -> None:
    async with client() as here:
        here.bus.create("a")
        here.bus.append("a", 0, [NUMBERED % number for number in range(4)], time.time())
        subscription = await here.subscribe("a")
        async with here.open(subscription, batch_limit=2) as stream:
            first, second = await line(stream), await line(stream)
            assert [first["events"], second["events"]] == [[{"n": 0}, {"n": 1}], [{"n": 2}, {"n": 3}]]
            assert await here.commit(subscription, stream, second) == (204, "")
            status, told = await here.commit(subscription, stream, first)
            assert (status, told["items"][0]["result"]) == (200, "outdated")
            assert "events" not in await line(stream)  # a keep-alive, after the flush timeout
            here.bus.append("a", 0, [NUMBERED % number for number in (4, 5)], time.time())
            assert (await line(stream))["events"] == [{"n": 4}, {"n": 5}]
        _, told = await here.ask("GET", f"{subscription}/cursors")
        assert told["items"][0]["offset"] == second["cursor"]["offset"]


async def test_a_commit_is_taken_when_the_connection_has_closed() -> None:
    async with client() as here:
        here.bus.create("a")
        here.bus.append("a", 0, [b"{}"], time.time())
        subscription = await here.subscribe("a")
        async with here.open(subscription) as stream:
            sent = await line(stream)
            stream.close()
        found = next(iter(here.bus.subscriptions.values()))
        await until(lambda: next(iter(found.streams.values())).state == "closing")
        assert (await here.ask("GET", f"{subscription}/events"))[0] == 409
        assert await here.commit(subscription, stream, sent) == (204, "")
        assert (await here.commit(subscription, stream, sent))[0] == 422
        assert not found.streams


async def test_a_streams_connection_ends_when_its_time_is_over() -> None:
    async with client() as here:
        here.bus.create("a")
        subscription = await here.subscribe("a")
        async with here.open(subscription, stream_timeout=1) as stream:
            lines = (await stream.content.read()).splitlines()
        assert json.loads(lines[-1])["info"] == {"debug": "Stream timeout reached"}


@pytest.mark.parametrize("holds", [True, False])
async def test_a_closing_streams_connection_stays_or_goes_as_it_is_told(holds: bool) -> None:
    async with client(Manners(holds_closing=holds)) as here:
        here.bus.create("a")
        here.bus.append("a", 0, [b"{}"], time.time())
        subscription = await here.subscribe("a")
        async with here.open(subscription, stream_timeout=1) as stream:
            sent = await line(stream)
            while "info" not in (last := await line(stream)):
                pass
            assert last["info"] == {"debug": "Stream timeout reached"}
            if holds:
                assert await here.commit(subscription, stream, sent) == (204, "")
            assert await stream.content.read() == b""
        if not holds:
            assert await here.commit(subscription, stream, sent) == (204, "")


async def test_a_move_hangs_until_what_was_sent_is_committed() -> None:
    async with client() as here:
        here.bus.create("a")
        here.bus.append("a", 0, [b"{}"], time.time())
        subscription = await here.subscribe("a")
        async with here.open(subscription) as stream:
            sent = await line(stream)
            to = {"items": [{"event_type": "a", "partition": "0", "offset": "BEGIN"}]}
            moving = asyncio.create_task(here.ask("PATCH", f"{subscription}/cursors", to))
            while "Resetting" not in str(await line(stream)):
                pass
            assert (await here.ask("PATCH", f"{subscription}/cursors", to))[0] == 409
            assert (await here.ask("GET", f"{subscription}/events"))[0] == 409
            assert not moving.done()
            assert (await here.commit(subscription, stream, sent))[0] == 204
            assert await moving == (204, "")
        async with here.open(subscription) as stream:
            assert (await line(stream))["events"] == [{}]


async def test_a_request_is_refused_when_its_token_is_not_good() -> None:
    async with client() as here:
        here.bus.tokens = {"good": time.time() + 3_600}
        assert (await here.ask("GET", "/event-types"))[0] == 401
        assert (await here.ask("GET", "/event-types", headers={"Authorization": "Bearer bad"}))[0] == 401
        assert await here.ask("GET", "/event-types", headers={"Authorization": "Bearer good"}) == (200, [])


async def test_an_event_type_is_made_and_published_to_by_http() -> None:
    async with client() as here:
        asked = {
            "name": "orders",
            "owning_application": "shop",
            "category": "business",
            "schema": {"type": "json_schema", "schema": "{}"},
            "partition_strategy": "hash",
            "partition_key_fields": ["number"],
            "default_statistic": {"read_parallelism": 3, "write_parallelism": 2},
            "options": {"retention_time": 1_000},
        }
        assert (await here.ask("POST", "/event-types", asked))[0] == 201
        assert (await here.ask("POST", "/event-types", asked))[0] == 409
        _, told = await here.ask("GET", "/event-types")
        assert [(each["name"], each["options"]) for each in told] == [("orders", {"retention_time": 1_000})]
        event = {"metadata": {"eid": "e-1", "occurred_at": "2026-01-01T00:00:00Z"}, "number": 7}
        assert (await here.ask("POST", "/event-types/orders/events", [event] * 3))[0] == 200
        assert (await here.ask("POST", "/event-types/orders/events", [{"number": 7}]))[0] == 422
        _, told = await here.ask("GET", "/event-types/orders/partitions")
        newest = [each["newest_available_offset"] for each in told]
        assert sorted(newest) == ["001-0001-000000000000000002", "BEGIN", "BEGIN"]
        subscription = await here.subscribe("orders")
        async with here.open(subscription, batch_limit=3) as stream:
            events = (await line(stream))["events"]
        assert [each["metadata"]["event_type"] for each in events] == ["orders"] * 3


async def test_what_a_request_gets_wrong_is_told() -> None:
    async with client() as here:
        here.bus.create("a")
        subscription = await here.subscribe("a")
        assert (await here.ask("GET", "/subscriptions/none/events"))[0] == 404
        assert (await here.ask("GET", f"{subscription}/events?batch_limit=many"))[0] == 400
        assert (await here.ask("POST", f"{subscription}/cursors", {"items": []}))[0] == 400  # no stream's id
        told = {"X-Nakadi-StreamId": "x"}
        assert (await here.ask("POST", f"{subscription}/cursors", {"items": [{}]}, headers=told))[0] == 422
        named = {"partitions": [{"event_type": "a", "partition": "9"}]}
        assert (await here.ask("POST", f"{subscription}/events", named))[0] == 422
        here.bus.event_types["a"].is_forbidden = True
        status, told = await here.ask("GET", f"{subscription}/events")
        assert (status, told["title"]) == (403, "Forbidden")


async def test_a_commit_holds_when_its_answer_is_lost() -> None:
    async with client() as here:
        here.bus.create("a")
        here.bus.append("a", 0, [b"{}"], time.time())
        subscription = await here.subscribe("a")
        async with here.open(subscription) as stream:
            sent = await line(stream)
            here.mischief.rates = {"unanswered": 1.0}
            with pytest.raises(aiohttp.ClientError):
                await here.commit(subscription, stream, sent)
            here.mischief.rates = {}
            assert (await here.commit(subscription, stream, sent))[0] == 200  # it was taken


async def test_a_line_is_cut_or_ends_short_when_chance_will_have_it() -> None:
    async with client() as here:
        here.bus.create("a")
        here.bus.append("a", 0, [b'{"n":"%b"}' % (b"x" * 1000)] * 50, time.time())
        subscription = await here.subscribe("a")
        here.mischief.rates = {"short": 1.0}
        async with here.open(subscription, batch_limit=50, max_uncommitted_events=50, commit_timeout=1) as stream:
            half = await stream.content.read()
        assert not half.endswith(b"\n")
        here.mischief.rates = {"refused": 1.0}
        assert (await here.ask("GET", subscription))[0] in {500, 502, 503, 429}
        here.mischief.rates = {"unheard": 1.0}
        with pytest.raises(aiohttp.ClientError):
            await here.ask("GET", subscription)
        here.mischief.rates = {"conflict": 1.0}
        found = next(iter(here.bus.subscriptions.values()))
        await until(lambda: not found.streams)
        assert (await here.ask("GET", f"{subscription}/events"))[0] == 409
        here.mischief.rates = {"cut": 1.0}
        with pytest.raises(aiohttp.ClientError):
            async with here.open(subscription, batch_limit=50, max_uncommitted_events=50) as stream:
                await stream.content.read()
