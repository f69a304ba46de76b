"""The bus by HTTP: an aiohttp application, on real sockets as on those in memory."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tests.nakadi import asked, publishing, views
from tests.nakadi.bus import Bus
from tests.nakadi.event_types import Problem
from tests.nakadi.mischief import REFUSALS, SLOW_SECONDS, Mischief
from tests.nakadi.streaming import Manners, Streams, cut
from tests.nakadi.subscription import Subscription

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LARGEST = 64 * 1024 * 1024
"""Bytes of a request's body."""


class Face:
    """Serves a bus; `clock` says the seconds since 1970."""

    def __init__(
        self, bus: Bus, clock: Callable[[], float], mischief: Mischief, manners: Manners | None = None
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._mischief = mischief
        self._streams = Streams(bus, clock, mischief, manners or Manners())

    def application(self) -> web.Application:
        """Return the application; its runner must cancel handlers whose connection is lost."""
        app = web.Application(middlewares=[self._answer], client_max_size=LARGEST)
        here = "/subscriptions/{id}"
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/event-types", self._event_types),
                web.post("/event-types", self._create),
                web.get("/event-types/{name}", self._event_type),
                web.delete("/event-types/{name}", self._delete),
                web.post("/event-types/{name}/events", self._publish),
                web.get("/event-types/{name}/partitions", self._partitions),
                web.get("/event-types/{name}/partitions/{partition}", self._partition),
                web.post("/event-types/{name}/cursor-distances", self._distances),
                web.post("/event-types/{name}/shifted-cursors", self._shifted),
                web.get("/subscriptions", self._subscriptions),
                web.post("/subscriptions", self._subscribe),
                web.get(here, self._subscription),
                web.delete(here, self._unsubscribe),
                web.get(f"{here}/events", self._streams.read),
                web.post(f"{here}/events", self._streams.read_named),
                web.get(f"{here}/cursors", self._cursors),
                web.post(f"{here}/cursors", self._commit),
                web.patch(f"{here}/cursors", self._move),
                web.get(f"{here}/stats", self._stats),
            ]
        )
        app.on_shutdown.append(self._streams.end_all)
        app.on_cleanup.append(self._streams.forget)
        return app

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        mischief = self._mischief
        try:
            if mischief.rates:
                if mischief.strikes("slow"):
                    await asyncio.sleep(mischief.chance.uniform(0, SLOW_SECONDS))
                if mischief.strikes("unheard"):
                    return cut(request)
                if mischief.strikes("refused"):
                    raise Problem(mischief.chance.choice(REFUSALS), "by chance")
            if request.path != "/health":
                kind, _, token = request.headers.get("Authorization", "").partition(" ")
                self._bus.allow(token if kind == "Bearer" else None, self._clock())
            response = await handler(request)
        except Problem as refused:
            response = web.json_response(
                views.problem(refused), status=refused.status, content_type="application/problem+json"
            )
        if mischief.rates and not response.prepared and mischief.strikes("unanswered"):
            return cut(request)
        return response

    # -- event types --------------------------------------------------------------------------------------------------

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response(text="OK")

    async def _event_types(self, _: web.Request) -> web.Response:
        return web.json_response([views.event_type(each) for each in self._bus.event_types.values()])

    async def _create(self, request: web.Request) -> web.Response:
        told = await asked.mapping(request)
        name, statistic = told.get("name"), told.get("default_statistic") or {}
        if not isinstance(name, str) or not name or "category" not in told or "schema" not in told:
            raise Problem(422, "name, category and schema may not be null")
        self._bus.create(
            name,
            max(statistic.get("read_parallelism", 1), statistic.get("write_parallelism", 1)),
            owning_application=told.get("owning_application", "nobody"),
            category=told["category"],
            partition_strategy=told.get("partition_strategy", "random"),
            partition_key_fields=told.get("partition_key_fields", []),
            cleanup_policy=told.get("cleanup_policy", "delete"),
            created_at=self._clock(),
            **({"retention_ms": told["options"]["retention_time"]} if told.get("options") else {}),
        )
        return web.Response(status=201, headers={"Location": f"/event-types/{name}"})

    async def _event_type(self, request: web.Request) -> web.Response:
        return web.json_response(views.event_type(self._bus.event_type(request.match_info["name"])))

    async def _delete(self, request: web.Request) -> web.Response:
        self._bus.delete(request.match_info["name"])
        return web.Response()

    async def _publish(self, request: web.Request) -> web.Response:
        found = self._bus.event_type(request.match_info["name"])
        events = await asked.body(request)
        now = self._clock()
        for number, kept in publishing.sort(found, events, request.headers.get("X-Flow-Id", "none"), now).items():
            self._bus.append(found.name, number, kept, now)
        return web.json_response([])

    async def _partitions(self, request: web.Request) -> web.Response:
        found = self._bus.event_type(request.match_info["name"])
        return web.json_response([views.partition(found, str(place)) for place in range(len(found.partitions))])

    async def _partition(self, request: web.Request) -> web.Response:
        found = self._bus.event_type(request.match_info["name"])
        return web.json_response(views.partition(found, request.match_info["partition"]))

    async def _distances(self, request: web.Request) -> web.Response:
        found = self._bus.event_type(request.match_info["name"])
        answers = []
        for item in await asked.body(request):
            first, last = item["initial_cursor"], item["final_cursor"]
            log = found.partition(first["partition"])
            answers.append({**item, "distance": log.index(last["offset"]) - log.index(first["offset"])})
        return web.json_response(answers)

    async def _shifted(self, request: web.Request) -> web.Response:
        found = self._bus.event_type(request.match_info["name"])
        answers = []
        for item in await asked.body(request):
            log = found.partition(item["partition"])
            index = log.index(item["offset"]) + item["shift"]
            if not log.first - 1 <= index < log.end:
                raise Problem(422, "shifted cursor is not available")
            answers.append({"partition": item["partition"], "offset": log.offset(index)})
        return web.json_response(answers)

    # -- subscriptions ------------------------------------------------------------------------------------------------

    def _found(self, request: web.Request) -> Subscription:
        found = self._bus.subscription(request.match_info["id"])
        found.advance(self._clock())
        return found

    async def _subscriptions(self, request: web.Request) -> web.Response:
        owner, names = request.query.get("owning_application"), set(request.query.getall("event_type", []))
        items = [
            views.subscription(each)
            for each in self._bus.subscriptions.values()
            if owner in {None, each.owning_application} and names <= set(each.event_types)
        ]
        first, most = int(request.query.get("offset", "0")), int(request.query.get("limit", "20"))
        return web.json_response({"items": items[::-1][first : first + most], "_links": {}})

    async def _subscribe(self, request: web.Request) -> web.Response:
        found, is_new = self._bus.subscribe(await asked.mapping(request), self._clock())
        place = {"Location": f"/subscriptions/{found.id}"}
        return web.json_response(views.subscription(found), status=201 if is_new else 200, headers=place)

    async def _subscription(self, request: web.Request) -> web.Response:
        return web.json_response(views.subscription(self._found(request)))

    async def _unsubscribe(self, request: web.Request) -> web.Response:
        self._bus.unsubscribe(request.match_info["id"], self._clock())
        return web.Response(status=204)

    async def _cursors(self, request: web.Request) -> web.Response:
        return web.json_response(views.cursors(self._found(request)))

    async def _stats(self, request: web.Request) -> web.Response:
        lag = request.query.get("show_time_lag", "").lower() == "true"
        return web.json_response(views.stats(self._found(request), self._clock(), show_time_lag=lag))

    async def _commit(self, request: web.Request) -> web.Response:
        stream_id = request.headers.get("X-Nakadi-StreamId")
        if not stream_id:
            raise Problem(400, "Required header 'X-Nakadi-StreamId' is not present")
        cursors = await asked.cursors(request, token=True)
        results = self._found(request).commit(stream_id, cursors, self._clock())
        if all(result == "committed" for result in results):
            return web.Response(status=204)
        return web.json_response(views.commits(cursors, results))

    async def _move(self, request: web.Request) -> web.Response:
        cursors = await asked.cursors(request, token=False)
        found = self._found(request)
        reset = found.move(self._bus.ends(cursors), self._clock())
        if not reset.is_done:
            done = asyncio.Event()
            reset.on_done = done.set
            await done.wait()
        return web.Response(status=204)


async def serve(face: Face, host: str, port: int) -> tuple[web.AppRunner, Any]:
    """Serve on real sockets; return what ends it, and the address that was taken."""
    runner = web.AppRunner(face.application(), handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner, runner.addresses[0]
