"""A collector of spans: takes OTLP over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """A door that takes OTLP over HTTP."""

    def __init__(self, *, status: int = 200, hangs: bool = False) -> None:
        self.status = status
        self.hangs = hangs
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

    async def _take(self, request: web.Request) -> web.Response:
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
        return web.Response(status=self.status)
