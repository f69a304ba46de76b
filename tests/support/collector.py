"""A collector of spans: takes OTLP over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """A door that takes OTLP over HTTP."""

    def __init__(self, *, status: int = 200, hangs: bool = False, is_endless: bool = False) -> None:
        self.status = status
        self.hangs = hangs
        self.is_endless = is_endless
        """The body of its answers."""
        self.told_bytes = 0
        """Of such bodies, as far as they were taken."""
        self.spans: list[Any] = []
        self.resource: dict[str, str] = {}
        self.schemas: set[str] = set()
        self.asked = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/v1/traces", self._take)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
        finally:
            await runner.cleanup()

    async def _take(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.asked.set()
        if self.hangs:
            await asyncio.Event().wait()
        if self.status == 200:
            assert request.headers["Content-Encoding"] == "gzip"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resource = {one.key: one.value.string_value for one in resource.resource.attributes}
                for scope in resource.scope_spans:
                    self.schemas.add(scope.schema_url)
                    self.spans += scope.spans
        if self.is_endless:
            return await self._talk(request)
        return web.Response(status=self.status)

    async def _talk(self, request: web.Request) -> web.StreamResponse:
        """Answer for as long as somebody listens."""
        answer = web.StreamResponse(status=self.status, headers={"Location": "/v1/traces"})
        await answer.prepare(request)
        with suppress(ConnectionError):
            while True:
                await answer.write(bytes(64 * 1024))
                self.told_bytes += 64 * 1024
        return answer
