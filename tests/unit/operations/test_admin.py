"""What probes and Prometheus get, and that no port of theirs can stop the data."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest import mock

import aiohttp
import pytest
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from structlog.testing import capture_logs

from proxy.operations.admin import Admin
from proxy.settings import AdminSettings


def families() -> Iterable[Metric]:
    gauge = GaugeMetricFamily("tidegate_lag_events", "Events not yet confirmed.", labels=["type"])
    gauge.add_metric(['a"\\\n'], 7)
    return [gauge]


def admin(listen: str | None, status: dict[str, Any] | None = None) -> Admin:
    return Admin(AdminSettings(listen=listen), status=lambda: status or {"ready": True}, families=families)


@asynccontextmanager
async def serving(made: Admin) -> AsyncIterator[str]:
    """Run it; give its address."""
    running = asyncio.create_task(made.run())
    try:
        async with asyncio.timeout(5):
            while made.port is None:  # noqa: ASYNC110 -- seen by looking
                await asyncio.sleep(0.001)
        yield f"http://127.0.0.1:{made.port}"
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@pytest.mark.parametrize("is_ready", [True, False])
async def test_readiness_is_told_by_the_status_code_and_liveness_stays_when_it_is_not_ready(is_ready: bool) -> None:
    status = {"ready": is_ready, "routes": {"main": "open"}}
    async with serving(admin("127.0.0.1:0", status)) as address, aiohttp.ClientSession() as client:
        async with client.get(f"{address}/ready") as answer:
            assert (answer.status, await answer.json()) == (200 if is_ready else 503, status)
        async with client.get(f"{address}/health") as answer:
            assert (answer.status, await answer.json()) == (200, {"alive": True})


async def test_liveness_is_told_by_the_status_code_with_its_reason_when_something_is_stuck() -> None:
    stuck = {"type orders": "events wait, and none is sent"}
    made = Admin(AdminSettings(listen="127.0.0.1:0"), status=dict, families=families, faults=lambda: stuck)
    async with (
        serving(made) as address,
        aiohttp.ClientSession() as client,
        client.get(f"{address}/health") as answer,
    ):
        assert (answer.status, await answer.json()) == (503, {"alive": False, "stuck": stuck})


async def test_what_is_wanted_of_consumers_is_told_as_json() -> None:
    told = {"routes": {"main": {"wanted_consumers": 8}}}
    made = Admin(AdminSettings(listen="127.0.0.1:0"), status=dict, families=families, scaling=lambda: told)
    async with (
        serving(made) as address,
        aiohttp.ClientSession() as client,
        client.get(f"{address}/scaling") as answer,
    ):
        assert (answer.status, await answer.json()) == (200, told)


OF_QUEUE = {"wanted_consumers": 8}
OF_ROUTE = {"wanted_consumers": None, "queues": {"a.b&c": OF_QUEUE}}


@pytest.mark.parametrize(
    ("asked", "status", "expected"),
    [
        ({"route": "main"}, 200, OF_ROUTE),
        ({"queue": "a.b&c", "route": "main"}, 200, OF_QUEUE),
        ({"route": "mein"}, 404, {"error": "nothing is told of route mein"}),
        ({"route": "main", "queue": "d"}, 404, {"error": "nothing is told of route main queue d"}),
        ({"queue": "a.b&c"}, 404, {"error": "nothing is told of queue a.b&c"}),
    ],
)
async def test_what_is_wanted_of_one_route_or_queue_is_told_when_it_is_asked_for(
    asked: dict[str, str], status: int, expected: dict[str, Any]
) -> None:
    told = {"routes": {"main": OF_ROUTE}}
    made = Admin(AdminSettings(listen="127.0.0.1:0"), status=dict, families=families, scaling=lambda: told)
    async with (
        serving(made) as address,
        aiohttp.ClientSession() as client,
        client.get(f"{address}/scaling", params=asked) as answer,
    ):
        assert (answer.status, await answer.json()) == (status, expected)


async def test_metrics_are_asked_anew_and_escaped_when_they_are_scraped() -> None:
    async with (
        serving(admin("127.0.0.1:0")) as address,
        aiohttp.ClientSession() as client,
        client.get(f"{address}/metrics") as answer,
    ):
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert 'tidegate_lag_events{type="a\\"\\\\\\n"} 7.0\n' in await answer.text()


async def test_it_listens_as_soon_as_it_can_when_the_port_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.operations.admin.RETRY_SECONDS", 0.01)
    loop = asyncio.get_running_loop()
    attempts = mock.Mock(side_effect=loop.create_server)
    monkeypatch.setattr(loop, "create_server", attempts)
    with socket.create_server(("127.0.0.1", 0)) as taken, capture_logs() as said:
        made = admin(f"127.0.0.1:{taken.getsockname()[1]}")
        running = asyncio.create_task(made.run())
        async with asyncio.timeout(5):
            while not said:  # noqa: ASYNC110 -- seen by looking
                await asyncio.sleep(0.001)
            while attempts.call_count < 3:  # noqa: ASYNC110 -- likewise
                await asyncio.sleep(0.001)
        taken.close()
        async with asyncio.timeout(5):
            while made.port is None:  # noqa: ASYNC110 -- seen by looking
                await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert [(entry["event"], entry["log_level"]) for entry in said] == [
        ("admin_unavailable", "warning"),  # once, however often it was tried
        ("admin_listening", "info"),
    ]


async def test_data_is_left_alone_when_listening_fails_as_nobody_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise IndexError("as uvloop does without descriptors")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_server", fail)
    with capture_logs() as said:
        running = asyncio.create_task(admin("127.0.0.1:0").run())
        async with asyncio.timeout(5):
            while not said:  # noqa: ASYNC110 -- seen by looking
                await asyncio.sleep(0.001)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert said[0]["event"] == "admin_unavailable"


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00" * 50 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 500,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /health HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /health HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    ],
    ids=["nuls", "tls", "http2", "long", "length", "chunk"],
)
async def test_nothing_is_logged_and_it_serves_on_when_no_http_is_sent(
    garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(admin("127.0.0.1:0")) as address:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(garbage)
        async with asyncio.timeout(5):
            await reader.read(1)
        writer.close()
        async with aiohttp.ClientSession() as client, client.get(f"{address}/health") as answer:
            assert answer.status == 200
    assert caplog.records == []


async def test_it_is_logged_when_an_answer_fails(caplog: pytest.LogCaptureFixture) -> None:
    made = Admin(AdminSettings(listen="127.0.0.1:0"), status=dict, families=families)
    async with (
        serving(made) as address,
        aiohttp.ClientSession() as client,
        client.get(f"{address}/ready") as answer,
    ):
        assert answer.status == 500
    assert [record.name for record in caplog.records] == ["tidegate.admin.http"]


async def test_nothing_listens_when_no_address_is_given() -> None:
    made = admin(None)
    async with asyncio.timeout(5):
        await made.run()
    assert made.port is None


async def test_the_port_is_free_again_when_it_is_cancelled() -> None:
    made = admin("127.0.0.1:0")
    async with serving(made):
        port = made.port
    assert made.port is None
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
