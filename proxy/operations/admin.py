"""HTTP for probes, dashboards and people: /health (alive), /ready (moving data), /metrics, /scaling, /state.

Serves what `app` hands in; a port that is taken is said once and tried again, and nothing here ever stops the data.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

import structlog
from aiohttp import http_exceptions, web

from proxy.operations.exposition import CONTENT_TYPE, Families, exposition
from proxy.operations.steps import Steps
from proxy.operations.visitors import Visitors
from proxy.settings import AdminSettings

RETRY_SECONDS = 1.0
"""Between two attempts at a port that can't be had, and between two looks for connections that say nothing."""
WAITING = 64
"""Connections that the system holds until they are taken."""
_OF_STATE = {"after", "type"}
_http_log = logging.getLogger("tidegate.admin.http")

_say = structlog.get_logger("tidegate.admin")


class Tell(Protocol):
    """Who writes /state; see `State.told`."""

    def __call__(self, steps: Steps, *, after: str = "", types: Iterable[str] = ()) -> Awaitable[str]:
        """Return JSON. Raises `KeyError` with the name of an event type that is unknown."""
        ...


async def _nothing(steps: Steps, *, after: str = "", types: Iterable[str] = ()) -> str:  # noqa: ARG001
    return "{}"


class Admin:
    """The HTTP server; `run` it as a task."""

    def __init__(
        self,
        settings: AdminSettings,
        *,
        status: Callable[[], dict[str, Any]],
        families: Callable[[], Families],
        scaling: Callable[[], dict[str, Any]] = dict,
        state: Tell = _nothing,
    ) -> None:
        self._listen = settings.listen
        self._status = status
        """Gives a JSON object with at least `ready` (bool)."""
        self._scaling = scaling
        """Gives a JSON object."""
        self._state = state
        self._families = families
        self._long_answer = asyncio.Lock()
        """One at a time: whoever asks often takes no more of the loop than whoever asks once."""
        self.port: int | None = None
        """The port listened on; None while there is none."""

    async def run(self) -> None:
        """Serve until cancelled."""
        if self._listen is None:
            return
        why = None
        while True:
            try:
                await self._serve(self._listen)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with probes, data flows on
                again = (error.strerror if isinstance(error, OSError) else None) or repr(error)
                if again != why:
                    effect = "no probes, data flows on; tried again every second"
                    _say.warning("admin_unavailable", listen=self._listen, why=again, effect=effect)
                why = again
            await asyncio.sleep(RETRY_SECONDS)

    async def _serve(self, listen: str) -> None:
        site_app = web.Application()
        site_app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/ready", self._ready),
                web.get("/metrics", self._metrics),
                web.get("/scaling", self._wanted),
                web.get("/state", self._told),
            ]
        )
        host, _, port = listen.rpartition(":")
        runner = web.AppRunner(site_app, access_log=None, handle_signals=False, shutdown_timeout=1.0, logger=_http_log)
        await runner.setup()
        server = None
        try:
            assert runner.server is not None
            loop = asyncio.get_running_loop()
            visitors = Visitors(runner.server, loop.time)
            server = await loop.create_server(visitors, host.strip("[]") or None, int(port), backlog=WAITING)
            self.port = server.sockets[0].getsockname()[1]
            _say.info("admin_listening", host=host, port=self.port)
            while True:
                await asyncio.sleep(RETRY_SECONDS)
                visitors.end_silent()
        finally:
            self.port = None
            if server is not None:
                server.close()
            await runner.cleanup()

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def _ready(self, _request: web.Request) -> web.Response:
        status = self._status()
        return web.json_response(status, status=200 if status["ready"] else 503)

    async def _wanted(self, request: web.Request) -> web.Response:
        """Answer with all that is told, or with what `route=` and `queue=` ask for: names may hold dots."""
        told, place = self._scaling(), ""
        for kind in ("route", "queue"):
            name = request.query.get(kind)
            if name is None:
                continue
            place += f" {kind} {name}"
            told = told.get(f"{kind}s", {}).get(name)
            if told is None:
                return web.json_response({"error": f"nothing is told of{place}"}, status=404)
        return web.json_response(told)

    async def _told(self, request: web.Request) -> web.Response:
        unknown = sorted(request.query.keys() - _OF_STATE)
        if unknown:
            allowed = ", ".join(sorted(_OF_STATE))
            return web.json_response({"error": f"{unknown[0]} is no parameter; allowed: {allowed}"}, status=400)
        async with self._long_answer:
            try:
                told = await self._state(
                    Steps(), after=request.query.get("after", ""), types=request.query.getall("type", ())
                )
            except KeyError as unknown_type:
                return web.json_response({"error": f"nothing is told of type {unknown_type.args[0]}"}, status=404)
        return web.Response(text=told, content_type="application/json")

    async def _metrics(self, _request: web.Request) -> web.Response:
        async with self._long_answer:
            body = await exposition(self._families(), Steps())
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})


def _is_our_fault(record: logging.LogRecord) -> bool:
    """Return whether the HTTP server tells of something else than what is no HTTP, as any stranger may send it."""
    return record.exc_info is None or not isinstance(record.exc_info[1], http_exceptions.HttpProcessingError)


_http_log.addFilter(_is_our_fault)
