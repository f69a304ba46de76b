"""Notices to a real HTTP server that is slow, fails, hangs, or is gone: in order, bounded, signed, never in the way."""

import asyncio
import hashlib
import hmac
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from load.stack.authority import Authority
from proxy.access import notice_access
from proxy.operations import notices
from proxy.operations.notices import Notices
from proxy.operations.webhook import WebhookDestination
from proxy.settings import Webhook
from proxy.steering.episodes import Episode
from tests.support.tidegate import until

WALL = 1_700_000_000.0
KINDS = {"string": str, "integer": int, "number": (int, float), "null": type(None)}
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def episode(number: int = 1, *, is_over: bool = False) -> Episode:
    return Episode("main", "P3", number, is_over, "depth", 12.5, 41.25)


async def hang(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


class Listening:
    """Somebody who takes notices, and answers as the test says: the last answer again and again."""

    def __init__(self, *answers: int | Answer) -> None:
        self.answers = list(answers)
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.port = 0

    @property
    def ids(self) -> list[str]:
        return [json.loads(body)["id"] for body in self.bodies]

    async def take(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        self.headers.append(request.headers)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return web.Response(status=answer) if isinstance(answer, int) else await answer(request)


@asynccontextmanager
async def listening(*answers: int | Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Listening]:
    there = Listening(*answers)
    app = web.Application()
    app.router.add_post("/{path:.*}", there.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    there.port = runner.addresses[0][1]
    try:
        yield there
    finally:
        await runner.cleanup()


@asynccontextmanager
async def noticing(port: int, key: Any = None, *, scheme: str = "http", **more: Any) -> AsyncIterator[Notices]:
    settings = Webhook.model_validate({"url": f"{scheme}://localhost:{port}/tell?who=me", "key": key} | more)
    made = Notices(
        WebhookDestination(settings, notice_access(settings), lambda: WALL),
        {"P3": 7}.get,
        group="g",
        instance="i",
        wall=lambda: WALL,
    )
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(notices, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(notices, "DEADLINE", 0.3)
    monkeypatch.setattr(notices, "GIVE_UP", 1.0)


async def test_notices_come_in_order_and_once_each_when_the_server_fails_at_first() -> None:
    async with listening(500, 503, 429, 200) as there, noticing(there.port) as made:
        for number in (1, 2, 3):
            made.put(episode(number))
        await until(lambda: made.counts["sent"] == 3)
    assert there.ids == [*["i/1/start"] * 4, "i/2/start", "i/3/start"]


async def test_it_is_signed_by_the_key_that_is_in_the_file_now_when_that_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("first-key\n")
    async with listening(200) as there, noticing(there.port, {"file": str(file)}) as made:
        made.put(episode(1))
        await until(lambda: made.counts["sent"] == 1)
        (tmp_path / "next").write_text("second-key\n")
        (tmp_path / "next").rename(file)
        made.put(episode(2))
        await until(lambda: made.counts["sent"] == 2)
    for key, body, headers in zip((b"first-key", b"second-key"), there.bodies, there.headers, strict=True):
        signed = hmac.new(key, b"1700000000." + body, hashlib.sha256).hexdigest()
        assert headers["Tidegate-Signature"] == f"t=1700000000,v1={signed}"


async def test_it_goes_over_tls_and_to_nobody_else_when_the_address_says_so(tmp_path: Path) -> None:
    there_is, others = Authority(tmp_path / "ours"), Authority(tmp_path / "others")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*there_is.issue("hook", tmp_path / "hook"))
    others.issue("other", tmp_path / "other")
    async with listening(200, tls=context) as there:
        async with noticing(there.port, scheme="https", ca_file=str(there_is.certificate)) as made:
            made.put(episode())
            await until(lambda: made.counts["sent"] == 1)
        for trusted in ({}, {"ca_file": str(others.certificate)}):
            async with noticing(there.port, scheme="https", **trusted) as made:
                made.put(episode(2))
                await until(lambda made=made: made.counts["given_up"] == 1)
    assert there.ids == ["i/1/start"]


async def test_it_is_tried_again_when_the_server_hangs() -> None:
    async with listening(hang, hang, 200) as there, noticing(there.port) as made:
        with capture_logs() as said:
            made.put(episode())
            await until(lambda: made.counts["sent"] == 1)
    assert len(there.ids) == 3
    assert [line["event"] for line in said] == ["notices_wait", "notices_go_on"]


async def test_what_waits_for_another_try_has_it_at_once_when_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "FIRST_PAUSE", 60.0)
    monkeypatch.setattr(notices, "GIVE_UP", 600.0)
    async with listening(500, 200) as there, noticing(there.port) as made:
        made.put(episode(1))
        made.put(episode(2))
        await until(lambda: there.bodies)
        await made.finish()
        assert made.counts["sent"] == 2
    assert there.ids == ["i/1/start", "i/1/start", "i/2/start"]


async def fail_slowly(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(0.02)  # else all are tried within the last word where the machine is quick
    return web.Response(status=500)


@pytest.mark.parametrize("answer", [hang, fail_slowly])
async def test_the_process_ends_and_says_how_many_are_untold_when_nobody_takes_them(
    monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    monkeypatch.setattr(notices, "LAST_WORD", 0.1)
    async with listening(answer) as there, noticing(there.port) as made:
        with capture_logs() as said:
            for number in range(500):
                made.put(episode(number))
            async with asyncio.timeout(10.0):
                await made.finish()
    (told,) = [line for line in said if line["event"] == "notices_untold"]
    assert 0 < told["waiting"] <= 500
    assert len(set(there.ids)) == len(there.ids), "each once more at most"


async def test_it_is_given_up_and_counted_when_nobody_is_there_and_the_next_one_is_tried() -> None:
    async with listening(200) as there:
        port = there.port
    async with noticing(port) as made:
        with capture_logs() as said:
            made.put(episode(1))
            made.put(episode(2))
            await until(lambda: made.counts["given_up"] == 2)
    assert [line["outcome"] for line in said if line["event"] == "notice_lost"] == ["given_up"] * 2
    assert "who=me" not in str(said), "the path may be secret"


@pytest.mark.parametrize("status", [302, 307, 400, 401, 404])
async def test_it_is_lost_at_once_and_no_redirect_is_followed_when_it_is_refused(status: int) -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    async with listening(refuse) as there, noticing(there.port) as made:
        made.put(episode())
        await until(lambda: made.counts["refused"] == 1)
    assert len(there.bodies) == 1


async def test_new_notices_are_dropped_counted_and_said_once_when_as_many_wait_as_may() -> None:
    async with listening(500) as there, noticing(there.port) as made:
        with capture_logs() as said:
            for number in range(notices.WAITING + 3):
                made.put(episode(number))
        assert made.counts["dropped"] == 3
        assert [line["event"] for line in said] == ["notices_dropped"]
        told = {(one.name, *sample.labels.values()): sample.value for one in made.families() for sample in one.samples}
        assert told["tidegate_notices", "dropped"] == 3
        assert told["tidegate_notices_waiting",] == notices.WAITING


async def test_a_notice_has_the_fields_of_its_schema_and_no_signature_when_no_key_is_given() -> None:
    async with listening(200) as there, noticing(there.port) as made:
        made.put(episode())
        made.put(episode(is_over=True))
        await until(lambda: made.counts["sent"] == 2)
    schema = _schema()
    for body in there.bodies:
        told = json.loads(body)
        assert told.keys() == schema["properties"].keys() == set(schema["required"])
        for name, value in told.items():
            kinds = schema["properties"][name].get("type", "string")
            allowed = tuple(KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))
            assert any(isinstance(value, kind) for kind in allowed), name
            assert value in schema["properties"][name].get("enum", [value])
    assert json.loads(there.bodies[0]) == {
        "v": 1,
        "id": "i/1/start",
        "phase": "start",
        "group": "g",
        "instance": "i",
        "route": "main",
        "class": "P3",
        "cause": "depth",
        "at_ms": 1_700_000_000_000,
        "since_ms": 1_699_999_987_500,
        "suggested_rate": 41.25,
        "backlog": 7,
    }
    assert json.loads(there.bodies[1])["suggested_rate"] is None
    assert "Tidegate-Signature" not in there.headers[0]


def _schema() -> Any:
    """Return it; read by the one test that needs it: deliberate bugs are tried on a tree without docs."""
    return json.loads(Path("docs/notice.schema.json").read_text(encoding="utf-8"))
