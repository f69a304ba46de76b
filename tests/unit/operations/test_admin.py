"""What probes and Prometheus get, and that no port of theirs can stop the data."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

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


async def test_what_is_wanted_of_consumers_is_told_as_json() -> None:
    told = {"routes": {"main": {"wanted_consumers": 8}}}
    made = Admin(AdminSettings(listen="127.0.0.1:0"), status=dict, families=families, scaling=lambda: told)
    async with (
        serving(made) as address,
        aiohttp.ClientSession() as client,
        client.get(f"{address}/scaling") as answer,
    ):
        assert (answer.status, await answer.json()) == (200, told)


async def test_metrics_are_asked_anew_and_escaped_when_they_are_scraped() -> None:
    async with (
        serving(admin("127.0.0.1:0")) as address,
        aiohttp.ClientSession() as client,
        client.get(f"{address}/metrics") as answer,
    ):
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert 'tidegate_lag_events{type="a\\"\\\\\\n"} 7.0\n' in await answer.text()


async def test_it_ends_with_a_warning_and_no_error_when_the_port_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, capture_logs() as said:
        made = admin(f"127.0.0.1:{taken.getsockname()[1]}")
        async with asyncio.timeout(5):
            await made.run()
    assert [(entry["event"], entry["log_level"]) for entry in said] == [("admin_unavailable", "warning")]
    assert made.port is None


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
