"""One writing for all who look, and nobody who looks is ever waited for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from structlog.testing import capture_logs

from proxy.operations import stream as module
from proxy.operations.admin import Admin
from proxy.operations.steps import Steps
from proxy.operations.stream import READERS, Reader, Stream, TooManyError
from proxy.settings import AdminSettings


class Counting:
    """Tells how often it was asked."""

    def __init__(self, padding: int = 0) -> None:
        self.looks = 0
        self.told: list[bool] = []
        self.padding = "x" * padding
        self.fault: Exception | None = None

    async def look(self, steps: Steps, *, is_told: bool) -> str:  # noqa: ARG002
        self.looks += 1
        self.told.append(is_told)
        if self.fault is not None:
            raise self.fault
        return f'{{"look":{self.looks},"padding":"{self.padding}"}}'

    def whole(self) -> str:
        return f'{{"whole":{self.looks}}}'


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.01)


@asynccontextmanager
async def running(stream: Stream) -> AsyncIterator[Stream]:
    task = asyncio.create_task(stream.run())
    try:
        yield stream
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def served(stream: Stream) -> AsyncIterator[aiohttp.ClientSession]:
    admin = Admin(AdminSettings(listen="127.0.0.1:0"), status=dict, families=list, stream=stream)
    task = asyncio.create_task(admin.run())
    try:
        async with asyncio.timeout(5):
            while admin.port is None:  # noqa: ASYNC110 - seen by looking
                await asyncio.sleep(0.001)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{admin.port}") as client:
            yield client
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def heard(reader: Reader, events: int) -> list[bytes]:
    told: list[bytes] = []
    async with asyncio.timeout(5):
        async for event in reader:
            told.append(event)
            if len(told) == events:
                break
    return told


async def test_everything_comes_first_and_then_what_changed_written_once_when_several_look() -> None:
    view = Counting()
    async with running(Stream(view)) as stream:
        one, other = stream.join(lambda: None), stream.join(lambda: None)
        told, same = await asyncio.gather(heard(one, 3), heard(other, 3))
    first = int(told[0].split(b":")[-1].split(b"}")[0])
    assert told[0] == f'event: state\ndata: {{"whole":{first}}}\n\n'.encode()
    assert told[1] == f'event: state\ndata: {{"look":{first + 1},"padding":""}}\n\n'.encode()
    assert [id(event) for event in told] == [id(event) for event in same]


async def test_event_types_are_not_looked_at_when_nobody_looks() -> None:
    view = Counting()
    async with running(Stream(view)) as stream:
        reader = stream.join(lambda: None)
        await heard(reader, 2)
        stream.leave(reader)
        seen = view.looks
        async with asyncio.timeout(5):
            while view.looks < seen + 3:  # noqa: ASYNC110 - seen by looking
                await asyncio.sleep(0.001)
    assert view.told[:2] == [True, True]
    assert view.told[seen + 1 :] == [False] * (view.looks - seen - 1)


async def test_a_reader_that_takes_nothing_is_cut_off_while_the_others_go_on() -> None:
    cut: list[str] = []
    async with running(Stream(Counting())) as stream:
        stream.join(lambda: cut.append("slow"))
        quick_one = stream.join(lambda: cut.append("quick"))
        await heard(quick_one, 20)
    assert cut == ["slow"]


async def test_no_more_than_so_many_look_at_a_time_and_the_place_of_one_that_left_is_free() -> None:
    stream = Stream(Counting())
    readers = [stream.join(lambda: None) for _ in range(READERS)]
    with pytest.raises(TooManyError):
        stream.join(lambda: None)
    stream.leave(readers[0])
    stream.join(lambda: None)


async def test_it_is_said_once_and_goes_on_when_looking_fails() -> None:
    view = Counting()
    view.fault = RuntimeError("no view")
    with capture_logs() as said:
        async with running(Stream(view)) as stream:
            reader = stream.join(lambda: None)
            async with asyncio.timeout(5):
                while view.looks < 3:  # noqa: ASYNC110 - seen by looking
                    await asyncio.sleep(0.001)
            view.fault = None
            await heard(reader, 1)
    assert [line["event"] for line in said] == ["stream_failed"]


async def test_a_browser_gets_events_over_http_and_is_refused_with_the_reason_when_too_many_look() -> None:
    async with running(Stream(Counting())) as stream, served(stream) as client:
        async with client.get("/stream") as answer:
            assert (answer.status, answer.content_type) == (200, "text/event-stream")
            assert answer.headers["Cache-Control"] == "no-store"
            assert await answer.content.readuntil(b"\n\n") != b""
        async with asyncio.timeout(5):
            while stream.readers:  # noqa: ASYNC110 - it has gone
                await asyncio.sleep(0.001)
        for _ in range(READERS):
            stream.join(lambda: None)
        async with client.get("/stream") as answer:
            assert (answer.status, await answer.json()) == (503, {"error": f"{READERS} look already; end one of them"})


async def test_a_connection_is_cut_when_what_it_is_told_is_never_read() -> None:
    view = Counting(padding=200_000)
    async with running(Stream(view)) as stream, served(stream) as client:
        async with client.get("/stream"):
            async with asyncio.timeout(10):
                while not stream.readers:  # noqa: ASYNC110 - it has come
                    await asyncio.sleep(0.001)
                while stream.readers:  # noqa: ASYNC110 - it was dropped
                    await asyncio.sleep(0.01)
        before = view.looks
        async with asyncio.timeout(5):
            while view.looks < before + 3:  # noqa: ASYNC110 - it goes on
                await asyncio.sleep(0.001)


async def test_the_stream_ends_at_once_when_the_address_closes() -> None:
    loop = asyncio.get_running_loop()
    async with running(Stream(Counting())) as stream, aiohttp.ClientSession() as outer:
        async with served(stream) as client:
            answer = await outer.get(client._base_url.join(client._base_url.with_path("/stream")))
            await answer.content.readuntil(b"\n\n")
            began = loop.time()
        assert loop.time() - began < 0.9  # the server's own patience is 1 s
        answer.close()


async def test_the_page_has_its_policy_and_nothing_foreign_in_it() -> None:
    async with served(Stream()) as client, client.get("/") as answer:
        text = await answer.text()
        policy = answer.headers["Content-Security-Policy"]
        assert (answer.status, answer.content_type) == (200, "text/html")
    assert policy.startswith("default-src 'none'; connect-src 'self';")
    assert "unsafe" not in policy
    assert "http://" not in text
    assert "https://" not in text
    assert "/*STYLE*/" not in text
    assert len(text.encode()) < 100_000
