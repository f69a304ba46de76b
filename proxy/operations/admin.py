"""HTTP for probes and dashboards: /health (alive), /ready (moving data), /metrics (Prometheus text), /scaling (JSON).

Serves what `app` hands in; a port that is taken is said once and never stops the data.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from proxy.settings import AdminSettings

_say = structlog.get_logger("tidegate.admin")


class _Families(Collector):
    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        return self._read()


class Admin:
    """The HTTP server; `run` it as a task."""

    def __init__(
        self,
        settings: AdminSettings,
        *,
        status: Callable[[], dict[str, Any]],
        families: Callable[[], Iterable[Metric]],
        scaling: Callable[[], dict[str, Any]] = dict,
    ) -> None:
        self._listen = settings.listen
        self._status = status
        """Gives a JSON object with at least `ready` (bool)."""
        self._scaling = scaling
        """Gives a JSON object."""
        self._registry = CollectorRegistry()
        self._registry.register(_Families(families))
        self.port: int | None = None
        """The port listened on; None while there is none."""

    async def run(self) -> None:
        """Serve until cancelled."""
        if self._listen is None:
            return
        host, _, port = self._listen.rpartition(":")
        site_app = web.Application()
        site_app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/ready", self._ready),
                web.get("/metrics", self._metrics),
                web.get("/scaling", self._wanted),
            ]
        )
        runner = web.AppRunner(site_app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host.strip("[]"), int(port))
            await site.start()
            self.port = runner.addresses[0][1]
            _say.info("admin_listening", host=host, port=self.port)
            await asyncio.Event().wait()
        except OSError as error:
            _say.warning(
                "admin_unavailable", listen=self._listen, why=error.strerror, effect="no probes, data flows on"
            )
        finally:
            self.port = None
            await runner.cleanup()

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def _ready(self, _request: web.Request) -> web.Response:
        status = self._status()
        return web.json_response(status, status=200 if status["ready"] else 503)

    async def _wanted(self, _request: web.Request) -> web.Response:
        return web.json_response(self._scaling())

    async def _metrics(self, _request: web.Request) -> web.Response:
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
