"""HTTP for probes, dashboards and people, as `endpoints` declares it.

Serves what `app` hands in; a port that is taken is said once and tried again, and nothing here ever stops the data.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from aiohttp import hdrs, http_exceptions, web
from aiohttp.typedefs import Handler

from proxy import __version__
from proxy.access import Access, admin_access
from proxy.operations import endpoints
from proxy.operations.caller import caller
from proxy.operations.desk import Desk
from proxy.operations.doors import Doors, Refusal
from proxy.operations.exposition import CONTENT_TYPE, Families, exposition
from proxy.operations.intervention_request import RequestError
from proxy.operations.page import page
from proxy.operations.reload import Reload
from proxy.operations.steps import Steps
from proxy.operations.stream import READERS, Stream, TooManyError
from proxy.operations.visitors import Visitors
from proxy.settings import AdminSettings

if TYPE_CHECKING:
    from proxy.operations.endpoints import Endpoint

RETRY_SECONDS = 1.0
"""Between two attempts at a port that can't be had, and between two looks for connections that say nothing."""
WAITING = 64
"""Connections that the system holds until they are taken."""
BODY_BYTES = 64 * 1024
"""Of a question."""
_WORDS = {
    Refusal.NO_PROOF: (
        401,
        "a proof is needed: Authorization: Bearer TOKEN, or a client certificate, as the settings say",
    ),
    Refusal.WRONG_TOKEN: (401, "the token is wrong; it must be the one of admin.token, after the word Bearer"),
    Refusal.UNGUARDED: (403, "served on this address only with admin.token or admin.tls.client_ca_file"),
    Refusal.FOREIGN_NAME: (403, "asked under another name than this host's, or by a page from elsewhere"),
}
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
        faults: Callable[[], dict[str, str]] = dict,
        stream: Stream | None = None,
        desk: Desk | None = None,
        reload: Reload | None = None,
        access: Access | None = None,
    ) -> None:
        """Make one; without `access` it is made from the settings, and never renewed; without `desk` nobody can act."""
        self._desk = desk
        self._reload = reload
        self._listen = settings.listen
        self._access = access or admin_access(settings)
        self.doors = Doors(settings, self._access, lambda: asyncio.get_running_loop().time())
        self._faults = faults
        """Gives what is stuck, and why."""
        self._status = status
        """Gives a JSON object with at least `ready` (bool)."""
        self._scaling = scaling
        """Gives a JSON object."""
        self._state = state
        self._families = families
        self._stream = stream or Stream()
        self._visitors: Visitors | None = None
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
        @web.middleware
        async def at_the_door(request: web.Request, handler: Handler) -> web.StreamResponse:
            assert visitors is not None
            visitors.on_asked(request.protocol)
            try:
                return self._refusal(request) or await handler(request)
            except RequestError as error:
                return web.json_response({"error": str(error)}, status=error.status)
            except web.HTTPException as error:
                error_headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
                return web.json_response({"error": error.reason}, status=error.status, headers=error_headers)
            finally:
                visitors.on_asked(request.protocol)

        visitors: Visitors | None = None
        site_app = web.Application(middlewares=[at_the_door], client_max_size=BODY_BYTES)
        for one, handler in self._served().items():
            site_app.router.add_route(one.method, one.path, handler)
            if one.method == hdrs.METH_GET:
                site_app.router.add_route(hdrs.METH_HEAD, one.path, handler)
        host, _, port = listen.rpartition(":")
        runner = web.AppRunner(site_app, access_log=None, handle_signals=False, shutdown_timeout=1.0, logger=_http_log)
        await runner.setup()
        server = None
        try:
            assert runner.server is not None
            loop = asyncio.get_running_loop()
            visitors = Visitors(
                runner.server,
                loop.time,
                context=lambda: self._access.context,
                on_failed=lambda address: self.doors.on_refused(Refusal.WRONG_CERTIFICATE, address),
            )
            self._visitors = visitors
            server = await loop.create_server(visitors, host.strip("[]") or None, int(port), backlog=WAITING)
            self.port = server.sockets[0].getsockname()[1]
            _say.info("admin_listening", host=host, port=self.port)
            while True:
                await asyncio.sleep(RETRY_SECONDS)
                visitors.end_silent()
        finally:
            self.port = None
            self._stream.end()
            if server is not None:
                server.close()
            if visitors is not None:
                await visitors.close()
            await runner.cleanup()

    def _served(self) -> "dict[Endpoint, Handler]":
        """Return what answers at which endpoint."""
        served: dict[Endpoint, Handler] = {
            endpoints.HEALTH: self._health,
            endpoints.READY: self._ready,
            endpoints.METRICS: self._metrics,
            endpoints.SCALING: self._wanted,
            endpoints.STATE: self._told,
            endpoints.STREAM: self._streamed,
            endpoints.PAGE: self._page,
            endpoints.OPENAPI: self._described,
        }
        if self._desk is not None:
            served |= {endpoints.LIST: self._asked, endpoints.BEGIN: self._begun, endpoints.END: self._ended}
        if self._reload is not None:
            served[endpoints.RELOAD] = self._reloaded
        return served

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Return what is answered to somebody who is not let in; None to anybody else."""
        resource = request.match_info.route.resource
        path = request.path if resource is None else resource.canonical
        address = request.remote or ""
        why = self.doors.judge(endpoints.openness(request.method, path), caller(request))
        if why is None:
            return None
        self.doors.on_refused(why, address)
        status, words = _WORDS[why]
        headers = {"WWW-Authenticate": 'Bearer realm="tidegate"'} if status == web.HTTPUnauthorized.status_code else {}
        return web.json_response({"error": words}, status=status, headers=headers)

    async def _health(self, _request: web.Request) -> web.Response:
        faults = self._faults()
        return web.json_response(
            {"alive": False, "stuck": faults} if faults else {"alive": True}, status=503 if faults else 200
        )

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
        allowed = [one.name for one in endpoints.STATE.parameters]
        unknown = sorted(request.query.keys() - set(allowed))
        if unknown:
            words = f"{unknown[0]} is no parameter; allowed: {', '.join(allowed)}"
            return web.json_response({"error": words}, status=400)
        async with self._long_answer:
            try:
                told = await self._state(
                    Steps(), after=request.query.get("after", ""), types=request.query.getall("type", ())
                )
            except KeyError as unknown_type:
                return web.json_response({"error": f"nothing is told of type {unknown_type.args[0]}"}, status=404)
        return web.Response(text=told, content_type="application/json")

    async def _streamed(self, request: web.Request) -> web.StreamResponse:
        if request.method == hdrs.METH_HEAD:
            return web.Response(content_type="text/event-stream")
        transport, visitors = request.transport, self._visitors
        assert transport is not None
        assert visitors is not None
        try:
            reader = self._stream.join(transport.abort)
        except TooManyError:
            return web.json_response({"error": f"{READERS} look already; end one of them"}, status=503)
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        try:
            await answer.prepare(request)
            async for event in reader:
                await answer.write(event)
                visitors.on_told(request.protocol)
        except ConnectionError:
            pass  # it has gone, or was dropped
        finally:
            self._stream.leave(reader)
        return answer

    async def _page(self, _request: web.Request) -> web.Response:
        text, headers = page()
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def _asked(self, _request: web.Request) -> web.Response:
        assert self._desk is not None
        return await self._desk.told()

    async def _begun(self, request: web.Request) -> web.Response:
        assert self._desk is not None
        return await self._desk.begin(request, self._proof(request))

    async def _ended(self, request: web.Request) -> web.Response:
        assert self._desk is not None
        return await self._desk.end(request, self._proof(request))

    async def _reloaded(self, request: web.Request) -> web.Response:
        assert self._reload is not None
        if self._reload.is_loading:
            raise RequestError(429, "the files are being read: ask again in a moment")
        told = await self._reload.now(self._proof(request))
        return web.json_response(told, status=409 if "error" in told else 200)

    def _proof(self, request: web.Request) -> str:
        return self.doors.name(caller(request), request.remote or "")

    async def _described(self, _request: web.Request) -> web.Response:
        return web.json_response(endpoints.document(__version__))

    async def _metrics(self, _request: web.Request) -> web.Response:
        async with self._long_answer:
            body = await exposition(self._families(), Steps())
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})


def _is_our_fault(record: logging.LogRecord) -> bool:
    """Return whether the HTTP server tells of something else than what is no HTTP, as any stranger may send it."""
    return record.exc_info is None or not isinstance(record.exc_info[1], http_exceptions.HttpProcessingError)


_http_log.addFilter(_is_our_fault)
